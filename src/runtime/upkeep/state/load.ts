/**
 * Loads a saved state into a store. Holds come back detached, with their tokens; a process that knows holder and token renews
 * and releases them. A load overwrites nothing that is in use, and lowers no token of a lock or semaphore. Pipelines begin
 * again with the tokens of their drivers, because the drivers' locks may have smaller ones here.
 */
import {
  type Drain,
  DETACHED_TTL_MS,
  type Event,
  type LockHold,
  type LockRecord,
  type SemaphoreHold,
  type SemaphoreRecord,
  slotsOf,
  withDrain,
} from '../../../core/index.ts';
import { type Compare, type Operation, Operations, prefixed, type Revision } from '../../../store/index.ts';
import type { WitnessedCommand } from '../../../core/witness/index.ts';
import { Failure } from '../../../failure.ts';
import { type ChainEnd, encode, HEADS, HORIZON, RECORDS, resourceKeys, TICKETS } from '../../layout.ts';
import type { Runtime } from '../../runtime.ts';
import type { Session } from '../../session/session.ts';
import type { Malformed } from '../../stored.ts';
import { chainEnd, type Link } from '../../write/witness.ts';
import { type Found, foundIn } from '../../observe/survey/found.ts';
import { chunksOf } from './chunks.ts';
import type { SavedHold, SavedLock, SavedSemaphore, SavedState } from './document.ts';
import { conflictsOf, loadRest } from './rest.ts';

/** What `loadState` answers. */
export type LoadOutcome =
  | {
      readonly kind: 'loaded';
      readonly locks: number;
      readonly semaphores: number;
      readonly holds: number;
      readonly tasks: number;
      readonly pipelines: number;
      readonly keys: number;
    }
  /** `loaded`: the number of resources that were written before another process came to use one of the rest; they stay. */
  | { readonly kind: 'refused'; readonly conflicts: readonly Conflict[]; readonly loaded: number };

/** A resource that cannot be loaded. */
export interface Conflict {
  /** `lock/main-branch`. */
  readonly resource: string;
  /** Why not. */
  readonly why: string;
}

type AnyRecord = LockRecord | SemaphoreRecord;

/** A resource to be written. */
interface Planned {
  readonly kind: 'lock' | 'semaphore';
  readonly saved: SavedLock | SavedSemaphore;
}

export async function loadInto(runtime: Runtime, state: SavedState): Promise<LoadOutcome> {
  const plan: readonly Planned[] = [
    ...state.locks.map((saved) => ({ kind: 'lock' as const, saved })),
    ...state.semaphores.map((saved) => ({ kind: 'semaphore' as const, saved })),
  ];
  const session = await runtime.ready();
  const looked = await look(runtime);
  const { found, mods, horizon } = looked;
  // An earlier load that was interrupted may have written some of them.
  const missing = plan.filter((planned) => !isLoaded(planned, found.get(resourceOf(planned))));
  const conflicts = [
    ...missing.flatMap((planned) => conflictOf(planned, looked)),
    ...(await conflictsOf(runtime, state)),
  ];
  if (conflicts.length > 0) return { kind: 'refused', conflicts, loaded: 0 };

  const leases: string[] = [];
  let loaded = 0;
  try {
    for (const chunk of chunksOf(missing, ({ saved }) => JSON.stringify(saved))) {
      // A record that is deleted while this runs may have had a larger token.
      const compare: Compare[] = [{ key: HORIZON, target: 'mod', is: '=', than: horizon }];
      const success: Operation[] = [];
      for (const planned of chunk) {
        const resource = resourceOf(planned);
        const { record: key, queue, queueEnd } = resourceKeys(planned.kind, planned.saved.name);
        const there = found.get(resource)?.record;
        const record = await recordFor(runtime, session, planned, there?.token ?? 0, leases);
        const events = eventsOf(record, runtime.clock.now(), there);
        compare.push({ key, target: 'mod', is: '=', than: mods.get(resource) ?? 0 });
        compare.push({ key: queue, end: queueEnd, target: 'version', is: '=', than: 0 });
        const link = linkOf(runtime, looked, resource, key, events);
        success.push({ do: 'put', key, value: encode({ record, events, ...(link && { head: link.head }) }) });
        if (link !== undefined) success.push(link.put);
      }
      const result = await runtime.store.transaction({ compare, success, failure: [] }, runtime.stopped);
      if (!result.succeeded) {
        const why = 'another process used one of these while they were written; load again';
        await endLeases(runtime, leases);
        return { kind: 'refused', conflicts: chunk.map((one) => ({ resource: resourceOf(one), why })), loaded };
      }
      leases.length = 0;
      loaded += chunk.length;
    }
  } catch (error) {
    // What was written without an answer rests on these leases; if it was not written, they end by their time.
    if (!Failure.is(error, 'outcome-unknown')) await endLeases(runtime, leases);
    throw error;
  }
  const late = await loadRest(runtime, state);
  if (late.conflicts.length > 0) return { kind: 'refused', conflicts: late.conflicts, loaded: loaded + late.loaded };
  const holds = plan.reduce((sum, { saved }) => sum + saved.holds.length, 0);
  return {
    kind: 'loaded',
    locks: state.locks.length,
    semaphores: state.semaphores.length,
    holds,
    tasks: state.tasks.length,
    pipelines: state.pipelines.length,
    keys: Object.keys(state.keys).length,
  };
}

/** The entry of an import. The horizon and the record are compared, so the end of the chain is as it was read. */
function linkOf(
  { witness, clock, sender }: Runtime,
  { endOf, revision }: Looked,
  resource: string,
  key: string,
  events: readonly Event[],
): Link | undefined {
  if (!witness.isOn) return undefined;
  const end = { ...endOf(key), keyMod: undefined };
  const { component = resource.slice(0, resource.indexOf('/')), trace } = witness;
  const command: WitnessedCommand = {
    ...{ actor: sender.id, component, command: 'import', outcome: 'imported', events: events.map(({ type }) => type) },
    ...(trace !== undefined && { trace }),
  };
  return witness.link(resource, end, clock.now(), revision, [command], key.slice(RECORDS.length));
}

interface Looked {
  readonly found: Map<string, Found>;
  readonly revision: Revision;
  /** The end of a chain of the witness, by the key of the record; throws if another program has damaged it. */
  readonly endOf: (record: string) => ChainEnd;
  readonly mods: Map<string, Revision>;
  readonly malformed: readonly Malformed[];
  /** Records of locks with smaller tokens than this may have been deleted; 0 if none was. */
  readonly horizon: Revision;
}

async function look(runtime: Runtime): Promise<Looked> {
  const operations = new Operations();
  const recordsRead = operations.read(prefixed(RECORDS));
  const ticketsRead = operations.read(prefixed(TICKETS));
  const horizonRead = operations.read({ key: HORIZON });
  const headsRead = operations.read(prefixed(HEADS));
  const { results, revision } = await runtime.store.transaction(operations.always(), runtime.stopped);
  const records = recordsRead.in(results);
  const tickets = ticketsRead.in(results);
  const malformed: Malformed[] = [];
  const all = foundIn(records.pairs, tickets.pairs, undefined, (one) => void malformed.push(one));
  const heads = new Map(headsRead.in(results).pairs.map((pair) => [RECORDS + pair.key.slice(HEADS.length), pair]));
  const documents = new Map(records.pairs.map((pair) => [pair.key, pair]));
  const byKey = new Map(records.pairs.map((pair) => [pair.key, pair.modRevision]));
  return {
    found: new Map(all.map((one) => [one.resource, one])),
    mods: new Map(
      all.map(({ resource, name, record }) => [resource, byKey.get(resourceKeys(record.kind, name).record) ?? 0]),
    ),
    malformed,
    revision,
    endOf: (record) => chainEnd(documents.get(record), heads.get(record)),
    horizon: horizonRead.in(results).pairs[0]?.modRevision ?? 0,
  };
}

/** Whether exactly these holds are there. */
function isLoaded({ saved }: Planned, there: Found | undefined): boolean {
  const grants = (holds: readonly { readonly holder: string; readonly token: number }[]): string =>
    JSON.stringify(holds.map(({ holder, token }) => [token, holder]).toSorted());
  return saved.holds.length > 0 && there !== undefined && grants(saved.holds) === grants(there.record.holds);
}

function conflictOf(planned: Planned, { found, malformed, horizon }: Looked): readonly Conflict[] {
  const resource = resourceOf(planned);
  const there = found.get(resource);
  const { record, queue } = resourceKeys(planned.kind, planned.saved.name);
  const unreadable = malformed.find(({ key }) => key === record || key.startsWith(queue));
  if (unreadable !== undefined) return [{ resource, why: unreadable.why }];
  const oldest = Math.min(...planned.saved.holds.map(({ token }) => token));
  if (there === undefined) {
    if (planned.kind === 'semaphore' || oldest > horizon) return [];
    const why = `it may have had tokens up to ${horizon} here before its record was deleted, and ${oldest} could go back behind one; load into a new store`;
    return [{ resource, why }];
  }
  const [hold] = there.record.holds;
  if (hold !== undefined) return [{ resource, why: `it is held, by ${hold.holder}` }];
  if (there.tickets.length > 0) return [{ resource, why: 'a process waits for it' }];
  const drain = drainOf(there.record);
  if (drain !== undefined && (planned.saved as SavedSemaphore).drained === undefined) {
    return [{ resource, why: `it is drained, by ${drain.by}; undo that first` }];
  }
  if (oldest > there.record.token) return [];
  if (planned.saved.holds.length === 0) return [];
  return [{ resource, why: `token ${there.record.token} was given out here, and ${oldest} would go back behind it` }];
}

async function recordFor(
  runtime: Runtime,
  session: Session,
  { kind, saved }: Planned,
  lastToken: number,
  leases: string[],
): Promise<AnyRecord> {
  const token = Math.max(saved.token, lastToken);
  const holds = [];
  for (const hold of saved.holds) holds.push(await grantFor(runtime, session, hold, leases));
  const { onStale, limits } = saved;
  const common = { v: 1 as const, token, onStale, ...(limits !== undefined && { limits }), passed: null };
  if (kind === 'lock') return { ...common, kind, holds: holds as unknown as readonly LockHold[] };
  const { capacity, drained } = saved as SavedSemaphore;
  const grants = holds as unknown as readonly (SemaphoreHold & { readonly slots: readonly number[] })[];
  const record = { ...common, kind, capacity, holds: grants.map((hold) => ({ ...hold, slots: slotsOf(hold.slots) })) };
  return drained === undefined ? record : withDrain(record, drained);
}

/** A stale hold gets the name of a lease that never existed, so that it stays stale: a hold that has ended must not revive. */
async function grantFor(
  runtime: Runtime,
  session: Session,
  { isStale, isWarned, acquiredAt, ttlMs = DETACHED_TTL_MS, ...described }: SavedHold,
  leases: string[],
): Promise<object> {
  const newLease = async (lastsMs: number): Promise<string> => {
    const lease = await runtime.leases.make(session, lastsMs);
    leases.push(lease.leaseId);
    runtime.leases.forget(lease.name);
    return lease.name;
  };
  const { maxHoldMs } = described;
  const lease = isStale === true ? runtime.nextId(session) : await newLease(ttlMs);
  const limit = isStale === true || maxHoldMs === undefined ? undefined : await newLease(maxHoldMs);
  return {
    id: runtime.nextId(session),
    ...described,
    ttlMs,
    lease,
    ...(limit !== undefined && { limit }),
    acquiredAt: Date.parse(acquiredAt),
    ...(isWarned === true && { warned: true }),
  };
}

function drainOf(record: AnyRecord | undefined): Drain | undefined {
  return record?.kind === 'semaphore' ? record.drained : undefined;
}

/** Subscribers get events for these holds, as for any others, for free slots, and for a drain. */
function eventsOf(record: AnyRecord, at: number, there: AnyRecord | undefined): readonly Event[] {
  const capacityBefore = there?.kind === 'semaphore' ? there.capacity : 0;
  const drain = drainOf(there) === undefined ? drainOf(record) : undefined;
  const drained: readonly Event[] =
    drain === undefined
      ? []
      : [{ type: 'semaphore:drained', at, holder: drain.by, reason: drain.reason, imported: true }];
  const resized: readonly Event[] =
    record.kind === 'semaphore' && record.capacity !== capacityBefore
      ? [
          {
            ...{ type: 'semaphore:resized', at, holder: '' },
            ...{ capacity: record.capacity, from: capacityBefore, imported: true },
          },
        ]
      : [];
  const acquired = record.holds.map((hold) => ({
    type: `${record.kind}:acquired`,
    at,
    holder: hold.holder,
    token: hold.token,
    ...('mode' in hold ? { mode: hold.mode } : { weight: hold.weight, slots: hold.slots }),
    imported: true,
  }));
  return [...resized, ...drained, ...acquired];
}

async function endLeases({ store }: Runtime, leases: readonly string[]): Promise<void> {
  await Promise.all(leases.map((lease) => store.revokeLease(lease).catch(() => undefined)));
}

function resourceOf({ kind, saved }: Planned): string {
  return `${kind}/${saved.name}`;
}
