/**
 * Who may do what over the network. A role allows everything that the roles before it allow:
 *
 *     viewer ──▶ worker ──▶ administrator
 *     looks      takes part  forces, configures, gives out tokens
 *
 * The token of a worker may be bound to holders: it then acts only for these, so that one agent cannot release the
 * holds of another.
 */
import { LONGEST_NAME, nameProblem } from '../name.ts';
import { shown } from '../shown.ts';

export const ROLES = ['viewer', 'worker', 'administrator'] as const;
/** What a token allows. */
export type Role = (typeof ROLES)[number];

/** What the store keeps of a token: everything but the secret itself. */
export interface TokenEntry {
  /** Names the token; not secret. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  /** What it allows. */
  readonly role: Role;
  /** The holders that it may act for, such as `agent:*`; absent: any. */
  readonly holders?: readonly string[];
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  /** When it was made, by the clock of the process that made it. */
  readonly createdAt: number;
  /** When it stops being accepted; absent: never. */
  readonly expiresAt?: number;
}

export const MOST_HOLDER_PATTERNS = 100;

export function allows(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

export function isExpired({ expiresAt }: Pick<TokenEntry, 'expiresAt'>, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt;
}

/** A `*` stands for any text, also for none. */
export function fitsPattern(pattern: string, holder: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === holder;
  const last = rest.pop() as string;
  if (!holder.startsWith(first) || !holder.endsWith(last) || holder.length < first.length + last.length) return false;
  let at = first.length;
  const end = holder.length - last.length;
  for (const part of rest) {
    const found = holder.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

export function mayActFor({ holders }: Pick<TokenEntry, 'holders'>, holder: string): boolean {
  return holders === undefined || holders.some((pattern) => fitsPattern(pattern, holder));
}

/** The holder that a token acts for when the caller names none. */
export function tokenHolder(name: string): string {
  return `token:${[...name].slice(0, LONGEST_TOKEN_NAME).join('')}`;
}

/** A longer name, with `token:` before it, would exceed the longest holder. */
export const LONGEST_TOKEN_NAME = LONGEST_NAME - 'token:'.length;

/** What is wrong with the terms of a new token, and what is accepted; undefined if nothing is. */
export function tokenProblem(
  terms: {
    readonly name?: unknown;
    readonly role?: unknown;
    readonly holders?: unknown;
    readonly ttlMs?: unknown;
  },
  longestName = LONGEST_TOKEN_NAME,
): string | undefined {
  const { name, role, holders, ttlMs } = terms;
  const problem = nameProblem(name, 'name', longestName);
  if (problem !== undefined) return problem;
  if (!ROLES.some((one) => one === role)) return `role is ${shown(role)}; expected ${ROLES.map(shown).join(' or ')}`;
  if (ttlMs !== undefined && !(typeof ttlMs === 'number' && Number.isFinite(ttlMs) && ttlMs > 0))
    return `ttlMs is ${shown(ttlMs)}; expected a number of milliseconds above zero`;
  if (holders === undefined) return undefined;
  if (role !== 'worker') return `holders are for the role "worker"; a ${String(role)} is not bound to any`;
  if (!Array.isArray(holders) || holders.length === 0 || holders.length > MOST_HOLDER_PATTERNS)
    return `holders is ${shown(holders)}; expected 1 to ${MOST_HOLDER_PATTERNS} patterns such as "agent:*"`;
  for (const holder of holders as readonly unknown[]) {
    const wrong = nameProblem(holder, 'holders');
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
