/** The machines, in the one shape in which the runtime executes them. */
import {
  freeLock,
  type Lock,
  type LockCommand,
  type LockOutcome,
  lockTransition,
  type Moment,
  newSemaphore,
  NONE,
  type Passed,
  type Request,
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreOutcome,
  semaphoreTransition,
  type Step,
  UNUSED,
  usedSlots,
} from '../core/index.ts';
import type { ResourceKind } from './layout.ts';

/** What every coordinated state looks like to the runtime. */
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
  /** The version of the records it writes; newer ones are refused rather than misread. */
  readonly version: number;
  /** What a resource that nobody has used yet looks like. */
  readonly unused: State;
  transition(state: State, command: Command, at: Moment): Step<State, Outcome>;
  /** No request could be granted now, whoever waits. */
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

const unusedSemaphore = newSemaphore(0);

export const semaphoreMachine: Machine<Semaphore, SemaphoreCommand, SemaphoreOutcome> = {
  kind: 'semaphore',
  version: 1,
  unused: unusedSemaphore,
  // The first to name a capacity makes the semaphore; it may have been configured before.
  transition(semaphore, command, at) {
    if (semaphore.record.capacity > 0) return semaphoreTransition(semaphore, command, at);
    const capacity = command.kind === 'acquire' || command.kind === 'resize' ? command.capacity : undefined;
    if (capacity !== undefined) {
      // This tells of it itself, from 0 on.
      if (command.kind === 'resize') return semaphoreTransition(semaphore, command, at);
      const made: Semaphore = { record: { ...semaphore.record, capacity }, waiting: semaphore.waiting };
      const step = semaphoreTransition(made, command, at);
      // A request that is refused makes nothing.
      if (step.state === made) return { ...step, state: semaphore };
      // One that was only configured is there already: that it has slots now is to be told.
      if (semaphore.record === unusedSemaphore.record) return step;
      const resized = { type: 'semaphore:resized', at: at.now, holder: '', capacity, from: 0 };
      return { ...step, events: [resized, ...step.events] };
    }
    if (command.kind !== 'acquire') return semaphoreTransition(semaphore, command, at);
    return {
      state: semaphore,
      outcome: { kind: 'impossible', why: UNUSED, capacity: 0 },
      events: NONE,
      answers: NONE,
      losses: NONE,
    };
  },
  isClosed: (semaphore) => usedSlots(semaphore) >= semaphore.record.capacity,
  settle: { kind: 'settle' },
};
