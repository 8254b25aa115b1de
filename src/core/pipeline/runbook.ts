/** The runbook: what a pipeline is to do, as the machine takes it. What people write is read by `parse.ts`. */
import type { Guard, OnFailure } from '../guard/index.ts';
import type { LockMode } from '../lock.ts';

export interface Runbook {
  readonly name: string;
  /** For all phases; those of a phase go before. */
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
  /** Of the command, each time that it runs. */
  readonly timeoutMs?: number;
  /** How often a command that fails is run again, and how long before the first time; twice as long before each next. */
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

/** Before attempt `attempt`, which is 2 for the first that is a repetition. */
export function backoffMs({ backoffMs: first }: Phase, attempt: number): number {
  // More doublings make no difference, and nought times infinity is not a number.
  const doublings = Math.min(30, Math.max(0, attempt - 2));
  return Math.min(first * 2 ** doublings, Math.max(first, LONGEST_BACKOFF_MS));
}
