/**
 * Writes the coordination state as files that people can read: `locks.json`, `semaphores.json`, and what is held by nobody:
 * `tasks.json`, `pipelines.json` and `keys.json` with the keys of the bus. Keys are always in the same
 * order and names are sorted, so that the same state gives the same bytes.
 *
 * Waiting requests are not saved: each ends with the process that waits.
 */
import { given } from '../../../core/given.ts';
import {
  DETACHED_TTL_MS,
  type Json,
  type Limits,
  type LockMode,
  type OnStale,
  type Token,
  type Drain,
} from '../../../core/index.ts';
import type { Survey, SurveyedHold } from '../../observe/survey/index.ts';
import type { Retention } from '../../tasks/retention.ts';

export const STATE_VERSION = 1;

/** A hold, as it is saved. */
export interface SavedHold {
  /** Who holds it. */
  readonly holder: string;
  /** The token of its grant. */
  readonly token: Token;
  /** ISO 8601. */
  readonly acquiredAt: string;
  /** The time of its lease; 60 s by default, which an attached hold gets when it is loaded. */
  readonly ttlMs?: number;
  /** How long it may last in all; the time begins again when it is loaded. */
  readonly maxHoldMs?: number;
  /** The reason that its holder gave. */
  readonly reason?: string;
  /** The metadata that its holder gave. */
  readonly metadata?: Json;
  /** The lease had ended: the hold is loaded as stale, and a person decides about it. */
  readonly isStale?: true;
  /** An event had announced that the hold is stale. */
  readonly isWarned?: true;
}

/** A hold of a lock, as it is saved. */
export type SavedLockHold = SavedHold & { readonly mode: LockMode };
/** A hold of slots, as it is saved. */
export type SavedSemaphoreHold = SavedHold & { readonly weight: number; readonly slots: readonly number[] };

/** A lock, as it is saved. */
export interface SavedLock {
  /** Its name. */
  readonly name: string;
  /** The last token that was granted. */
  readonly token: Token;
  /** Whether the next in line gets a stale hold, or a person decides. */
  readonly onStale: OnStale;
  /** What every holder is bound by; absent if nothing limits them. */
  readonly limits?: Limits;
  /** In the order of their grants. */
  readonly holds: readonly SavedLockHold[];
}

/** A semaphore, as it is saved. */
export interface SavedSemaphore {
  /** Its name. */
  readonly name: string;
  /** How many slots there are. */
  readonly capacity: number;
  /** The last token that was granted. */
  readonly token: Token;
  /** Whether the next in line gets a stale hold, or a person decides. */
  readonly onStale: OnStale;
  /** What every holder is bound by; absent if nothing limits them. */
  readonly limits?: Limits;
  /** Who stopped every grant, when and why; absent if nobody did. */
  readonly drained?: Drain;
  /** In the order of their grants. */
  readonly holds: readonly SavedSemaphoreHold[];
}

/** A task, as it is saved. */
export interface SavedTask {
  /** Its id. */
  readonly id: string;
  /** A task that a worker has is saved as pending: its claim ends with this store. */
  readonly status: 'pending' | 'complete' | 'failed';
  /** What it carries for its worker. */
  readonly data: Json;
  /** Who completed or failed it. */
  readonly owner?: string;
  /** Attempts, result and the like. */
  readonly bookkeeping: Json;
}

/** A pipeline, as it is saved. */
export interface SavedPipeline {
  /** Its id. */
  readonly id: string;
  /** How far it is. */
  readonly record: Json;
  /** Its runbook, and where and how it runs. */
  readonly spec: Json;
  /** What its commands printed, by phase and run. */
  readonly logs: Readonly<Record<string, Json>>;
}

/** Everything that outlives a process, as it is saved. */
export interface SavedState {
  /** The locks, by name. */
  readonly locks: readonly SavedLock[];
  /** The semaphores, by name. */
  readonly semaphores: readonly SavedSemaphore[];
  /** The tasks, in the order of publication. */
  readonly tasks: readonly SavedTask[];
  /** The pipelines, by id. */
  readonly pipelines: readonly SavedPipeline[];
  /** The keys of the bus with their values; none from etcd, where other programs have such keys too. */
  readonly keys: Readonly<Record<string, string>>;
  /** How long finished tasks are kept, beside the tasks; absent if nobody has set it. */
  readonly retention?: Retention;
}

/** What has a file of its own. */
export type SavedKind = Exclude<keyof SavedState, 'retention'>;

export function stateOf({ locks, semaphores }: Survey): Pick<SavedState, 'locks' | 'semaphores'> {
  return {
    locks: locks.map(({ name, token, onStale, limits, holds }) => ({
      name,
      token,
      onStale,
      ...savedLimits(limits),
      holds: holds.map((hold) => ({ ...savedHold(hold), mode: hold.mode })),
    })),
    semaphores: semaphores.map(({ name, capacity, token, onStale, limits, drained, holds }) => ({
      name,
      capacity,
      token,
      onStale,
      ...savedLimits(limits),
      ...(drained !== undefined && { drained }),
      holds: holds.map((hold) => ({ ...savedHold(hold), weight: hold.weight, slots: hold.slots })),
    })),
  };
}

function savedLimits(limits: Limits): { readonly limits?: Limits } {
  return Object.keys(limits).length === 0 ? {} : { limits };
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
    ...given({ maxHoldMs, reason, metadata }),
    ...(isStale && { isStale }),
    ...(isWarned && { isWarned }),
  };
}

/** The text of one file. */
export function rendered(kind: SavedKind, state: SavedState): string {
  const beside = kind === 'tasks' ? { retention: state.retention } : {};
  return `${JSON.stringify({ version: STATE_VERSION, [kind]: state[kind], ...beside }, undefined, 2)}\n`;
}

/** The text of a file for a state without such resources. */
export function emptyFile(kind: SavedKind): string {
  return JSON.stringify({ version: STATE_VERSION, [kind]: kind === 'keys' ? {} : [] });
}
