/** What the users of a simulated run do, by name. */
import { ManyWorker } from './many-workload.ts';
import { NamedWorker } from './named-workload.ts';
import { PipelineWorker } from './pipeline-workload.ts';
import { RestWorker } from './rest-workload.ts';
import { SlotsWorker } from './slots-workload.ts';
import { TaskWorker } from './task-workload.ts';
import type { Place, User } from './user.ts';
import { Worker } from './workload.ts';

interface Kind {
  readonly user: new (place: Place) => User;
  /** How many stories each user does, at least and at most. */
  readonly rounds: readonly [number, number];
  /** More calls of the store than this per process and virtual second, for ten seconds, and the process spins. */
  readonly callsPerSecond: number;
  /** Its users call what waits for turns of the event loop. */
  readonly takesTurns?: boolean;
}

export const WORKLOADS = {
  holds: { user: Worker, rounds: [3, 28], callsPerSecond: 200 },
  tasks: { user: TaskWorker, rounds: [3, 25], callsPerSecond: 200 },
  names: { user: NamedWorker, rounds: [3, 20], callsPerSecond: 300 },
  slots: { user: SlotsWorker, rounds: [3, 20], callsPerSecond: 300 },
  rest: { user: RestWorker, rounds: [3, 20], callsPerSecond: 300, takesTurns: true },
  pipelines: { user: PipelineWorker, rounds: [3, 15], callsPerSecond: 300, takesTurns: true },
  many: { user: ManyWorker, rounds: [1, 3], callsPerSecond: 3000 },
} as const satisfies Record<string, Kind>;

export type Workload = keyof typeof WORKLOADS;

export function kindOf(workload: Workload): Kind {
  return WORKLOADS[workload];
}

/**
 * Workloads that show bugs which are known and not yet mended, with what they show. They run when they are asked for by
 * name; once one passes, it moves to the others.
 */
export const NOT_YET: Partial<Record<Workload, string>> = {
  names: 're-entries outlive the hold they rest on; a lost run is told as done; an upgrade that was given up happens',
  slots: 'requests that can never be granted wait and block everyone; a weight of 0 makes the queue unreadable',
  pipelines: 'drivers look at real files, and virtual time does not wait for those: runs differ on a busy machine',
  many: 'what does not fit into one transaction fails',
};

/** What runs when nobody says which. */
export const DEFAULTS: readonly Workload[] = (Object.keys(WORKLOADS) as Workload[]).filter(
  (workload) => NOT_YET[workload] === undefined,
);
