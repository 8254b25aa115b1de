/** Reads the inputs of guards that are in the store: locks, semaphores, tasks, pipelines, members. */
import {
  drainTold,
  type Hold,
  type InputValues,
  isOwn,
  isStale,
  type Lock,
  type Own,
  type Semaphore,
} from '../../core/index.ts';
import { leasesOf } from '../../core/hold.ts';
import { Failure } from '../../failure.ts';
import { anchorKey, resourceKeys, stateKey } from '../layout.ts';
import { lockMachine, semaphoreMachine } from '../../core/machines.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { recordOf } from '../write/snapshot.ts';
import { type Held, heldIn } from '../observe/events.ts';
import type { Reads } from './reads.ts';

export interface Looks {
  readonly tasks: Pick<Tasks, 'status'>;
  readonly pipelines?: PipelineLooks | undefined;
}

export interface PipelineLooks {
  /** Null if there is no such pipeline. */
  look(id: string): Promise<InputValues['pipeline']>;
}

/** Gets the leases that keep the holds of a resource. */
export type SawHolds = (resource: string, held: Held) => void;

/** `own`: holds of these holders do not count. */
export async function lockInput(
  reads: Reads,
  name: string,
  own: Own | undefined,
  saw: SawHolds,
): Promise<InputValues['lock']> {
  const { record, resource } = resourceKeys('lock', name);
  const pair = await reads.read(record);
  if (pair === undefined) return null;
  const found = recordOf<Lock>(lockMachine, pair);
  saw(resource, heldIn(found, pair));
  const holds = found.holds.filter(({ holder }) => !isOwn(own, holder));
  const gone = await goneOf(reads, holds);
  const at = { now: 0, revision: 0, gone: (lease: string) => gone.has(lease) };
  return { holders: holds.map((hold) => ({ holder: hold.holder, stale: isStale(hold, at) })) };
}

export async function semaphoreInput(
  reads: Reads,
  name: string,
  own: Own | undefined,
  saw: SawHolds,
): Promise<InputValues['semaphore']> {
  const { record, resource } = resourceKeys('semaphore', name);
  const pair = await reads.read(record);
  if (pair === undefined) return null;
  const found = recordOf<Semaphore>(semaphoreMachine, pair);
  saw(resource, heldIn(found, pair));
  const { capacity, holds, drained } = found;
  // A semaphore that was configured, but never given a capacity.
  if (capacity === 0) return null;
  const counted = holds.filter(({ holder }) => !isOwn(own, holder));
  const used = counted.reduce((sum, { weight }) => sum + weight, 0);
  return { capacity, used, ...(drained !== undefined && { drained: drainTold(drained) }) };
}

export async function taskInput(tasks: Looks['tasks'], id: string): Promise<InputValues['task']> {
  const status = await tasks.status(id);
  return status === undefined ? null : { status };
}

export async function memberInput(reads: Reads, id: string): Promise<InputValues['member']> {
  return { alive: (await reads.read(stateKey('member', id))) !== undefined };
}

export async function pipelineInput(pipelines: Looks['pipelines'], id: string): Promise<InputValues['pipeline']> {
  if (pipelines === undefined)
    throw new Failure('unavailable', 'this signalbox was opened without pipelines, so a guard cannot look at one');
  return pipelines.look(id);
}

/** The leases among these that have ended. */
async function goneOf(reads: Reads, holds: readonly Hold[]): Promise<ReadonlySet<string>> {
  const leases = leasesOf(holds);
  const found = await Promise.all(leases.map((lease) => reads.read(anchorKey(lease))));
  return new Set(leases.filter((_, place) => found[place] === undefined));
}
