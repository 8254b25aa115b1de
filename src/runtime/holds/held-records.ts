/** Reads from the records who holds what now. Holds are found by their ids, which are unique for all time. */
import type { Hold as Grant, Lock, Semaphore } from '../../core/index.ts';
import { always, type KeyValue, type Operation, type ReadResult } from '../../store/index.ts';
import { anchorKey, RECORDS, type ResourceKeys, resourceKeys } from '../layout.ts';
import { lockMachine, type ResourceKind, semaphoreMachine } from '../../core/machines.ts';
import type { Runtime } from '../runtime.ts';
import { recordOf } from '../write/snapshot.ts';

/** A hold of another process that a note or a letter names. */
export interface HoldTold {
  readonly resource: string;
  readonly holder: string;
  /** Its id; not its token, which changes when a reader becomes the writer. */
  readonly hold: string;
}

const MOST_READS = 100;

/** The holds that are still there, on a lease that is alive. */
export async function stillHeld(
  runtime: Runtime,
  told: readonly HoldTold[],
): Promise<readonly { readonly resource: string; readonly grant: Grant }[]> {
  const known = told.filter(({ resource }) => /^(lock|semaphore)\/./s.test(resource));
  const records = await readEach(
    runtime,
    known.map(({ resource }) => keysOf(resource).record),
  );
  const held = known.flatMap(({ resource, holder, hold }, place) => {
    const grant = holdsIn(records[place]).find(({ id }) => id === hold);
    return grant?.holder === holder ? [{ resource, grant }] : [];
  });
  const alive = await aliveOf(runtime, new Set(held.map(({ grant }) => grant.lease)));
  return held.filter(({ grant }) => alive.has(grant.lease));
}

/** The leases that have not ended. */
export async function aliveOf(runtime: Runtime, leases: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const all = [...leases];
  const found = await readEach(runtime, all.map(anchorKey));
  return new Set(all.filter((_, place) => (found[place]?.pairs.length ?? 0) > 0));
}

export function keysOf(resource: string): ResourceKeys {
  const slash = resource.indexOf('/');
  return resourceKeys(resource.slice(0, slash) as ResourceKind, resource.slice(slash + 1));
}

export function holdsIn(read: ReadResult | undefined): readonly Grant[] {
  const pair = read?.pairs[0];
  return pair === undefined ? [] : holdsOf(pair);
}

/** The holds of a record under `r/lock/` or `r/semaphore/`. */
export function holdsOf(pair: KeyValue): readonly Grant[] {
  const machine = pair.key.startsWith(`${RECORDS}lock/`) ? lockMachine : semaphoreMachine;
  return recordOf<Lock | Semaphore>(machine, pair).holds;
}

/** Reads each key, as many in one transaction as it may have. */
async function readEach({ store, stopped }: Runtime, keys: readonly string[]): Promise<readonly ReadResult[]> {
  const found: ReadResult[] = [];
  for (let first = 0; first < keys.length; first += MOST_READS) {
    const success = keys.slice(first, first + MOST_READS).map((key): Operation => ({ do: 'read', key }));
    const { results } = await store.transaction(always(success), stopped);
    found.push(...(results as readonly ReadResult[]));
  }
  return found;
}
