/** What the users of a simulated run do, by name. */
import { AnswersWorker } from './answers-workload.ts';
import { ManyWorker } from './many-workload.ts';
import { MemberWorker } from './member-workload.ts';
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
  /** How many stories each user does, at least and at most. */
  readonly rounds: readonly [number, number];
  /** More calls of the store than this per process and virtual second, for ten seconds, and the process spins. */
  readonly callsPerSecond: number;
  /** How many of a hundred seeds run it when no workload is named: more where more can go wrong, few where one takes long. */
  readonly share: number;
  /** Its users call what waits for turns of the event loop. */
  readonly takesTurns?: boolean;
  /** The witness is on for every seed, as all processes find out by themselves. */
  readonly isWitnessed?: boolean;
}

export const WORKLOADS = {
  holds: { user: Worker, rounds: [3, 28], callsPerSecond: 200, share: 24 },
  tasks: { user: TaskWorker, rounds: [3, 25], callsPerSecond: 200, share: 10 },
  names: { user: NamedWorker, rounds: [3, 20], callsPerSecond: 300, share: 23 },
  slots: { user: SlotsWorker, rounds: [3, 20], callsPerSecond: 300, share: 15 },
  answers: { user: AnswersWorker, rounds: [3, 12], callsPerSecond: 300, share: 4 },
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
 * Every workload runs with the witness for one seed in seven, which takes no number from those that the seed decides; only
 * `many` does not, because one seed would take minutes.
 */
export function runsWitnessed(seed: number, workload: Workload): boolean {
  return kindOf(workload).isWitnessed === true || (seed % 7 === 4 && workload !== 'many');
}

/** Which workload a seed runs when none is named. Of a hundred seeds in a row each workload runs its share. */
export function workloadOf(seed: number): Workload {
  // Scattered, so that a few seeds already run several of them.
  let place = (seed * SCATTER) % ALL_SHARES;
  for (const workload of Object.keys(WORKLOADS) as Workload[]) {
    place -= WORKLOADS[workload].share;
    if (place < 0) return workload;
  }
  throw new RangeError(`the shares of the workloads are not ${ALL_SHARES}`);
}

const ALL_SHARES = 100;
/** Has no factor in common with it. */
const SCATTER = 37;
