/** The lock and the semaphore machine in one shape, so that one writer runs both. */
import { freeLock, type Lock, type LockCommand, type LockOutcome, lockTransition } from './lock.ts';
import type { Moment, Step } from './machine.ts';
import type { Passed } from './queue.ts';
import type { Request } from './machine.ts';
import {
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreOutcome,
  semaphoreTransition,
  unusedSemaphore,
  usedSlots,
} from './semaphore.ts';

export type ResourceKind = 'lock' | 'semaphore';

/** What is the same in the state of either machine. */
export interface Coordinated {
  readonly record: {
    readonly v: number;
    readonly kind: ResourceKind;
    readonly token: number;
    readonly holds: readonly { readonly id: string; readonly lease: string; readonly limit?: string }[];
    readonly passed: Passed | null;
  };
  readonly waiting: readonly (Request & { readonly upgrades?: string })[];
}

export interface Machine<State extends Coordinated, Command, Outcome> {
  readonly kind: ResourceKind;
  /** The newest version of the records that it writes. A reader refuses newer ones instead of misreading them. */
  readonly version: number;
  /** The state of a resource that has no record. */
  readonly unused: State;
  transition(state: State, command: Command, at: Moment): Step<State, Outcome>;
  /** Whether no request at all could be granted now. */
  isClosed(state: State): boolean;
  readonly settle: Command;
}

export const lockMachine: Machine<Lock, LockCommand, LockOutcome> = {
  kind: 'lock',
  version: 1,
  unused: freeLock,
  transition: lockTransition,
  isClosed: ({ record }) => record.holds.length === 1 && record.holds[0]?.mode === 'exclusive',
  settle: { kind: 'settle' },
};

export const semaphoreMachine: Machine<Semaphore, SemaphoreCommand, SemaphoreOutcome> = {
  kind: 'semaphore',
  // Of a drained one: see core/drain.ts.
  version: 2,
  unused: unusedSemaphore,
  transition: semaphoreTransition,
  isClosed: (semaphore) => semaphore.record.drained !== undefined || usedSlots(semaphore) >= semaphore.record.capacity,
  settle: { kind: 'settle' },
};
