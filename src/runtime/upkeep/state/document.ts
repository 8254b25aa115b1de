/**
 * Writes the coordination state as files that people can read: `locks.json`, `semaphores.json`, and what is held by nobody:
 * `tasks.json`, `pipelines.json` and `keys.json` with the keys of the bus. Keys are always in the same
 * order and names are sorted, so that the same state gives the same bytes.
 *
 * Waiting requests are not saved: each ends with the process that waits.
 */
import type { Json, LockMode, OnStale, Token } from '../../../core/index.ts';
import { DETACHED_TTL_MS } from '../../holds/resource.ts';
import type { Survey, SurveyedHold } from '../../observe/survey/index.ts';

export const STATE_VERSION = 1;

export interface SavedHold {
  readonly holder: string;
  readonly token: Token;
  /** ISO 8601. */
  readonly acquiredAt: string;
  /** The time of its lease; 60 s by default, which an attached hold gets when it is loaded. */
  readonly ttlMs?: number;
  readonly maxHoldMs?: number;
  readonly reason?: string;
  readonly metadata?: Json;
  /** The lease had ended: the hold is loaded as stale, and a person decides about it. */
  readonly isStale?: true;
  /** An event had announced that the hold is stale. */
  readonly isWarned?: true;
}

export type SavedLockHold = SavedHold & { readonly mode: LockMode };
export type SavedSemaphoreHold = SavedHold & { readonly weight: number; readonly slots: readonly number[] };

export interface SavedLock {
  readonly name: string;
  /** The last token that was granted. */
  readonly token: Token;
  readonly onStale: OnStale;
  readonly holds: readonly SavedLockHold[];
}

export interface SavedSemaphore {
  readonly name: string;
  readonly capacity: number;
  readonly token: Token;
  readonly onStale: OnStale;
  readonly holds: readonly SavedSemaphoreHold[];
}

export interface SavedTask {
  readonly id: string;
  /** A task that a worker has is saved as pending: its claim ends with this store. */
  readonly status: 'pending' | 'complete' | 'failed';
  readonly data: Json;
  /** Who completed or failed it. */
  readonly owner?: string;
  /** Attempts, result and the like. */
  readonly bookkeeping: Json;
}

export interface SavedPipeline {
  readonly id: string;
  readonly record: Json;
  /** Its runbook, and where and how it runs. */
  readonly spec: Json;
  /** What its commands printed, by phase and run. */
  readonly logs: Readonly<Record<string, Json>>;
}

export interface SavedState {
  readonly locks: readonly SavedLock[];
  readonly semaphores: readonly SavedSemaphore[];
  readonly tasks: readonly SavedTask[];
  readonly pipelines: readonly SavedPipeline[];
  /** The keys of the bus with their values; none of an etcd, where they are those of other programs too. */
  readonly keys: Readonly<Record<string, string>>;
}

/** One file for each kind of resource. */
export const STATE_FILES = {
  locks: 'locks.json',
  semaphores: 'semaphores.json',
  tasks: 'tasks.json',
  pipelines: 'pipelines.json',
  keys: 'keys.json',
} as const satisfies Record<keyof SavedState, string>;

export function stateOf({ locks, semaphores }: Survey): Pick<SavedState, 'locks' | 'semaphores'> {
  return {
    locks: locks.map(({ name, token, onStale, holds }) => ({
      name,
      token,
      onStale,
      holds: holds.map((hold) => ({ ...savedHold(hold), mode: hold.mode })),
    })),
    semaphores: semaphores.map(({ name, capacity, token, onStale, holds }) => ({
      name,
      capacity,
      token,
      onStale,
      holds: holds.map((hold) => ({ ...savedHold(hold), weight: hold.weight, slots: hold.slots })),
    })),
  };
}

function savedHold(hold: SurveyedHold): SavedHold {
  const { holder, token, acquiredAt, isAttached, lease, maxHoldMs, reason, metadata, isStale, isWarned } = hold;
  // The time of a session's lease means nothing for the hold once it is detached.
  const ttlMs = isAttached ? undefined : lease?.ttlMs;
  return {
    holder,
    token,
    acquiredAt: new Date(acquiredAt).toISOString(),
    ...(ttlMs !== undefined && ttlMs !== DETACHED_TTL_MS && { ttlMs }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
    ...(isStale && { isStale }),
    ...(isWarned && { isWarned }),
  };
}

/** The text of one file. */
export function rendered(kind: keyof SavedState, state: SavedState): string {
  return `${JSON.stringify({ version: STATE_VERSION, [kind]: state[kind] }, undefined, 2)}\n`;
}

/** The text of a file for a state without such resources. */
export function emptyFile(kind: keyof SavedState): string {
  return JSON.stringify({ version: STATE_VERSION, [kind]: kind === 'keys' ? {} : [] });
}
