/**
 * Copies documents of callers. A store in this process keeps documents without a copy, so a caller that later changes an
 * object which it passed or read would change what is stored.
 */
import type { Json } from '../core/index.ts';

export function ownCopy<T extends Json | undefined>(document: T): T {
  return typeof document === 'object' && document !== null ? (JSON.parse(JSON.stringify(document)) as T) : document;
}

/** A copy to store. Refusals and outcomes show it without another copy, so it is frozen. */
export function frozenCopy<T extends Json | undefined>(document: T): T {
  return frozen(ownCopy(document));
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const child of Object.values(value)) frozen(child);
  return Object.freeze(value);
}
