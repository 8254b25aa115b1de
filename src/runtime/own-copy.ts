/**
 * Copies of what callers give and are given. A store in this process keeps documents as they are: without a copy, a caller
 * that goes on changing its object, or one that it has read, would change what is stored.
 */
import type { Json } from '../core/index.ts';

export function ownCopy<T extends Json | undefined>(document: T): T {
  return typeof document === 'object' && document !== null ? (JSON.parse(JSON.stringify(document)) as T) : document;
}

/** For what is stored: refusals and outcomes show it as it is, so nobody can be able to change it. */
export function frozenCopy<T extends Json | undefined>(document: T): T {
  return frozen(ownCopy(document));
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const child of Object.values(value)) frozen(child);
  return Object.freeze(value);
}
