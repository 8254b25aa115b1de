/** The workloads of simulated users, by name. */
import { AnswersWorker } from './answers-workload.ts';
import { ManyWorker } from './many-workload.ts';
import { MemberWorker } from './member-workload.ts';
import { MomentsWorker } from './moments-workload.ts';
import { NamedWorker } from './named-workload.ts';
import { PipelineWorker } from './pipeline-workload.ts';
import { RestWorker } from './rest-workload.ts';
import { SlotsWorker } from './slots-workload.ts';
import { TaskWorker } from './task-workload.ts';
import type { Place, User } from './user.ts';
import { WitnessWorker } from './witness-workload.ts';
import { Worker } from './workload.ts';

interface Kind {
  readonly user: new (place: Place) => User;
  /** How many stories each user runs, at least and at most. */
  readonly rounds: readonly [number, number];
  /** A process that makes more calls to the store than this per virtual second, for ten seconds, is considered to spin. */
  readonly callsPerSecond: number;
  /** How many of a hundred seeds run it when no workload is named: more if more can go wrong, few if one seed takes long. */
  readonly share: number;
  /** Set if its users call code that waits for turns of the event loop. */
  readonly takesTurns?: boolean;
  /** Set if the witness is on for every seed; the processes find that out by themselves. */
  readonly isWitnessed?: boolean;
}

export const WORKLOADS = {
  holds: { user: Worker, rounds: [3, 28], callsPerSecond: 200, share: 24 },
  tasks: { user: TaskWorker, rounds: [3, 25], callsPerSecond: 200, share: 10 },
  names: { user: NamedWorker, rounds: [3, 20], callsPerSecond: 300, share: 23 },
  slots: { user: SlotsWorker, rounds: [3, 20], callsPerSecond: 300, share: 15 },
  answers: { user: AnswersWorker, rounds: [3, 12], callsPerSecond: 300, share: 2 },
  moments: { user: MomentsWorker, rounds: [3, 10], callsPerSecond: 300, share: 2 },
  rest: { user: RestWorker, rounds: [3, 20], callsPerSecond: 300, share: 4, takesTurns: true },
  members: { user: MemberWorker, rounds: [3, 15], callsPerSecond: 300, share: 5 },
  pipelines: { user: PipelineWorker, rounds: [3, 15], callsPerSecond: 300, share: 10, takesTurns: true },
  witness: {
    ...{ user: WitnessWorker, rounds: [3, 10], callsPerSecond: 300, share: 4 },
    ...{ takesTurns: true, isWitnessed: true },
  },
  many: { user: ManyWorker, rounds: [1, 3], callsPerSecond: 3000, share: 1 },
} as const satisfies Record<string, Kind>;

/** What the simulated users do. */
export type Workload = keyof typeof WORKLOADS;

export function kindOf(workload: Workload): Kind {
  return WORKLOADS[workload];
}

/**
 * One seed in seven of every workload runs with the witness; this choice draws no random number, so that it changes nothing else.
 * Only `many` never does, because one seed would take minutes.
 */
export function runsWitnessed(seed: number, workload: Workload): boolean {
  return kindOf(workload).isWitnessed === true || (seed % 7 === 4 && workload !== 'many');
}

/** Chooses the workload of a seed when none is named. In a hundred seeds in a row each workload gets its share. */
export function workloadOf(seed: number): Workload {
  // Scattered, so that even a few seeds run several workloads.
  let place = (seed * SCATTER) % ALL_SHARES;
  for (const workload of Object.keys(WORKLOADS) as Workload[]) {
    place -= WORKLOADS[workload].share;
    if (place < 0) return workload;
  }
  throw new RangeError(`the shares of the workloads are not ${ALL_SHARES}`);
}

const ALL_SHARES = 100;
/** Has no factor in common with `ALL_SHARES`. */
const SCATTER = 37;
