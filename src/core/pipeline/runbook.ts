/** The runbook: what a pipeline is to do, as the machine takes it. What people write is read by `parse.ts`. */
import type { Guard, OnFailure } from '../guard/guard.ts';
import type { LockMode } from '../lock.ts';

export interface Runbook {
  readonly name: string;
  /** For all phases; a phase's own variables win. */
  readonly env: Readonly<Record<string, string>>;
  /** At least one; no two of the same name. */
  readonly phases: readonly Phase[];
}

export interface Phase {
  readonly name: string;
  readonly run: PhaseWork;
  /** All of them must pass before the command runs, and after it has. */
  readonly pre: readonly Guard[];
  readonly post: readonly Guard[];
  /** Acquired together before the command runs, released when nothing of it runs any more. */
  readonly holds: readonly PhaseHold[];
  /** What becomes of a command that still fails after its retries; without it, the pipeline fails. */
  readonly onFailure?: OnFailure;
  /** The limit for each run of the command. */
  readonly timeoutMs?: number;
  /** How often a failed command is run again, and the pause before the first time; each later pause is twice as long. */
  readonly retries: number;
  readonly backoffMs: number;
  /** It may be run again when nobody knows how far it came. */
  readonly idempotent: boolean;
  readonly env: Readonly<Record<string, string>>;
}

/** A line for the shell; or a function, which only the program that defines it knows. */
export type PhaseWork = { readonly shell: string } | { readonly function: true };

export type PhaseHold =
  | { readonly lock: string; readonly mode?: LockMode }
  | { readonly semaphore: string; readonly weight?: number; readonly capacity?: number };

export const DEFAULT_BACKOFF_MS = 1_000;
export const LONGEST_BACKOFF_MS = 60_000;

/** The pause before `attempt`; the first repetition is attempt 2. */
export function backoffMs({ backoffMs: first }: Phase, attempt: number): number {
  // More doublings make no difference, and zero times infinity is not a number.
  const doublings = Math.min(30, Math.max(0, attempt - 2));
  return Math.min(first * 2 ** doublings, Math.max(first, LONGEST_BACKOFF_MS));
}
