/**
 * Keeps notes of which child processes work under which holds, so that no process starts a second child while an orphan
 * still runs.
 *
 *     a hold is granted ── the child is started, but waits ── its note is written ── it begins ── ... ── note deleted
 *                                                                 │
 *                              the same transaction reads the notes of others, and whether the hold is still ours
 *
 * The next holder of the resource reads our note, because we wrote it before our child began; and if the resource had
 * changed hands before that write, its record says so, and our child never begins. Notes are on no lease: they outlive the
 * hold, and any process that finds that nothing is left of the child deletes them.
 *
 * A child that is started inside another child also works under what that child holds, and has a note there too: if the
 * parents of both are killed, the next holder of the outer resource has to find it.
 */
import { claimEntryOf, type Hold as Grant, type Member, type Token, unpublished } from '../../core/index.ts';
import { isProvenGone, type Offspring, thisProcess } from '../../host/index.ts';
import {
  always,
  type KeyValue,
  type Operation,
  type OperationResult,
  Operations,
  prefixed,
} from '../../store/index.ts';
import { type ChildNote, noteIn } from '../child-note.ts';
import { aliveOf, holdsIn, type HoldTold, keysOf, stillHeld } from '../holds/held-records.ts';
import { encode } from '../layout.ts';
import { memberIn, memberKey, MEMBERS, membershipId } from '../members/records.ts';
import { readEach } from '../stored.ts';
import { taskKeys } from '../tasks/keys.ts';
import { withPart } from '../tasks/reading.ts';
import { unlessStopped } from '../write/write-once.ts';
import type { Runtime } from '../runtime.ts';
import { isOfOneMachine } from '../session/session.ts';

/** What a child works under: a hold of a lock or a semaphore, the claim of a task, a membership or an asset of a member. */
export interface Ground {
  /** `lock/main-branch`, `task/build-7`, `member/agent-7`, `asset/shard/3`. */
  readonly resource: string;
  readonly id: string;
  readonly token: Token;
  readonly holder: string;
  /** The session that it rests on, or the lease. */
  readonly lease: string;
  readonly isValid: boolean;
}

/** A note in a form that signalbox does not write. It is ignored, and stays where it is. */
export interface UnreadableNote {
  readonly key: string;
  readonly resource: string;
}

/** A note of a child whose hold is gone. */
export interface Leftover {
  readonly key: string;
  readonly resource: string;
  readonly note: ChildNote;
  /** The parent lives and has just lost the hold: it is about to end the child itself. */
  readonly isLookedAfter: boolean;
}

export interface Found {
  readonly leftovers: readonly Leftover[];
  readonly unreadable: readonly UnreadableNote[];
}

export type Entered =
  | ({ readonly kind: 'entered'; readonly keys: readonly string[] } & Found)
  /** The hold was lost before the child could begin. */
  | { readonly kind: 'lost'; readonly resource: string };

export interface ChildTerms {
  readonly graceMs: number;
  readonly outlivesHold: boolean;
  /** The holder of the first hold runs one child after another, so what is left of an earlier child has to go too. */
  readonly isAlone?: boolean;
}

export class Children {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether all processes that use this store are on one machine. */
  get areOfOneMachine(): boolean {
    return isOfOneMachine(this.#runtime.store);
  }

  /** Whether other users may have written the notes: on etcd every client may, in a file only if it is shared. */
  get areOfSeveralUsers(): boolean {
    return !this.areOfOneMachine || this.#runtime.store.isOfSeveralUsers === true;
  }

  /** Filters holds of other processes: answers the ones that still exist. */
  stillHeld(told: readonly HoldTold[]): Promise<readonly { readonly resource: string; readonly grant: Grant }[]> {
    return stillHeld(this.#runtime, told);
  }

  /** Like `enter`, but tries again while the store does not answer. Undefined if it was stopped meanwhile. */
  enterUnless(stop: AbortSignal, ...given: Parameters<Children['enter']>): Promise<Entered | undefined> {
    return unlessStopped(this.#runtime, stop, () => this.enter(...given));
  }

  /**
   * Writes the notes of a child. The child may begin only after this answers `entered`. `outer`: the holds around this
   * process; holds that have ended meanwhile do not matter.
   */
  async enter(
    holds: readonly Ground[],
    child: Offspring,
    terms: ChildTerms,
    outer: readonly HoldTold[] = [],
  ): Promise<Entered> {
    const { store, stopped, clock } = this.#runtime;
    const session = await this.#runtime.ready();
    const parent = thisProcess();
    const own = this.#runtime.nextId(session);
    const around = await this.#around(
      outer.filter(({ resource }) => !holds.some((hold) => hold.resource === resource)),
    );
    const under = [...holds.map((hold) => ({ resource: hold.resource, grant: hold, ...terms })), ...around];
    const keys = under.map(({ resource }) => keysOf(resource));
    // Without an identity no process could find the child by its note.
    const noted = child.process === undefined ? [] : keys.map(({ children }) => children + own);
    const puts = noted.map((key, place): Operation => {
      const { grant, outlivesHold } = under[place] as (typeof under)[number];
      const { id, token, holder, lease } = grant;
      const { graceMs } = terms;
      const note: ChildNote = { hold: id, token, holder, lease, child, graceMs, outlivesHold, at: clock.now() };
      return { do: 'put', key, value: encode(parent === undefined ? note : { ...note, parent }) };
    });
    const entering = new Operations().add(...puts);
    const places = under.map(({ resource }) => readUnder(entering, resource));
    // A process that dies with nothing left behind counts as dead at once. While its child lives, the lease runs its time.
    if (parent !== undefined && child.process !== undefined) {
      await store.endLeaseWith?.(session.leaseId, [parent, child.process], stopped);
    }
    const { results } = await store.transaction(entering.always(), stopped);
    const found = under.map(({ resource, grant }, at) => {
      const { notes, holds: current } = places[at]!.in(results);
      // An earlier attempt to enter may have landed without an answer.
      const isOwn = (pair: KeyValue): boolean => noteIn(pair)?.child.mark === child.mark;
      const mine = notes.filter(isOwn).map(({ key }) => key);
      const others = notes.filter((pair) => !isOwn(pair));
      return { resource, id: grant.id, mine, notes: others, holds: current };
    });
    const written = [...new Set([...noted, ...found.flatMap(({ mine }) => mine)])];
    const lost = holds.find((hold) => !hold.isValid) ?? found.find(({ id, holds: current }) => !isAmong(current, id));
    if (lost !== undefined) {
      await this.forget(written);
      return { kind: 'lost', resource: lost.resource };
    }
    // Leftovers under the outer holds are for the holders of those.
    const ours = found.slice(0, holds.length);
    const looked = ours.map((one, place) => (terms.isAlone === true && place === 0 ? { ...one, holds: [] } : one));
    return { kind: 'entered', keys: written, ...(await this.#leftoversAmong(looked)) };
  }

  /** What earlier holders of these resources left behind. */
  async leftovers(holds: readonly Ground[]): Promise<Found> {
    const look = new Operations();
    const places = holds.map(({ resource }) => ({ resource, under: readUnder(look, resource) }));
    const { store, stopped } = this.#runtime;
    const { results } = await store.transaction(look.always(), stopped);
    return this.#leftoversAmong(places.map(({ resource, under }) => ({ resource, ...under.in(results) })));
  }

  /** Deletes the notes of children that are gone, or that never began. */
  async forget(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const success = keys.map((key): Operation => ({ do: 'delete', key }));
    await this.#runtime.store.transaction(always(success), this.#runtime.stopped);
  }

  /** Our child may outlive an outer hold if the holder of that hold allows its own child to. */
  async #around(
    told: readonly HoldTold[],
  ): Promise<readonly { readonly resource: string; readonly grant: Grant; readonly outlivesHold: boolean }[]> {
    const held = told.length === 0 ? [] : await this.stillHeld(told);
    if (held.length === 0) return [];
    const { store, stopped } = this.#runtime;
    const look = new Operations();
    const places = held.map((one) => ({ ...one, children: look.read(prefixed(keysOf(one.resource).children)) }));
    const { results } = await store.transaction(look.always(), stopped);
    return places.map(({ resource, grant, children }) => {
      const { pairs } = children.in(results);
      const notes = pairs.flatMap((pair) => noteIn(pair) ?? []).filter(({ hold }) => hold === grant.id);
      return { resource, grant, outlivesHold: notes.length > 0 && notes.every(({ outlivesHold }) => outlivesHold) };
    });
  }

  /** Children of processes that share the resource and still hold it are no leftovers. */
  async #leftoversAmong(
    found: readonly {
      readonly resource: string;
      readonly notes: readonly KeyValue[];
      readonly holds: readonly Held[];
    }[],
  ): Promise<Found> {
    const read = found.flatMap(({ resource, notes: pairs, holds }) =>
      pairs.map((pair) => ({ key: pair.key, resource, note: noteIn(pair), holds })),
    );
    const notes = read.flatMap(({ note, ...one }) => (note === undefined ? [] : { ...one, note }));
    const alive = await aliveOf(this.#runtime, new Set(notes.map(({ note }) => note.lease)));
    return {
      leftovers: notes
        .filter(({ note, holds }) => !isAmong(holds, note.hold) || !alive.has(note.lease))
        .map(({ key, resource, note }) => ({ key, resource, note, isLookedAfter: isLookedAfter(note, alive) })),
      unreadable: read.filter(({ note }) => note === undefined).map(({ key, resource }) => ({ key, resource })),
    };
  }
}

function isAmong(holds: readonly Held[], id: string): boolean {
  return holds.some((hold) => hold.id === id);
}

function isLookedAfter({ parent, lease }: ChildNote, alive: ReadonlySet<string>): boolean {
  return alive.has(lease) && parent !== undefined && !isProvenGone(parent);
}

type Held = Pick<Grant, 'id'>;

interface UnderRead {
  in(results: readonly OperationResult[]): { readonly notes: readonly KeyValue[]; readonly holds: readonly Held[] };
}

/** Adds the reads of the notes of a resource's children, and of who holds it. */
function readUnder(operations: Operations, resource: string): UnderRead {
  const { children, record } = keysOf(resource);
  const notes = operations.read(prefixed(children));
  const [, task] = /^task\/(.*)$/s.exec(resource) ?? [];
  if (task !== undefined) return readClaim(operations, task, notes);
  const [, member] = /^member\/(.*)$/s.exec(resource) ?? [];
  if (member !== undefined) return readMemberships(operations.read({ key: memberKey(member) }), notes, () => true);
  const [, asset] = /^asset\/(.*)$/s.exec(resource) ?? [];
  if (asset !== undefined) {
    const isOwner = ({ assets }: Member): boolean => assets.some(({ id }) => id === asset);
    return readMemberships(operations.read(prefixed(MEMBERS)), notes, isOwner);
  }
  const recordRead = operations.read({ key: record });
  return { in: (results) => ({ notes: notes.in(results).pairs, holds: holdsIn(recordRead.in(results)) }) };
}

function readMemberships(
  members: ReturnType<Operations['read']>,
  notes: ReturnType<Operations['read']>,
  isHolder: (member: Member) => boolean,
): UnderRead {
  return {
    in: (results) => ({
      notes: notes.in(results).pairs,
      holds: readEach(members.in(results).pairs, memberIn)
        .filter(isHolder)
        .map(({ id, incarnation }) => ({ id: membershipId(id, incarnation) })),
    }),
  };
}

function readClaim(operations: Operations, id: string, notes: ReturnType<Operations['read']>): UnderRead {
  const { owner, status, signalbox } = taskKeys(id);
  const reads = [owner, status, signalbox].map((key) => operations.read({ key }));
  return {
    in: (results) => {
      const claim = claimEntryOf(reads.flatMap((read) => read.in(results).pairs).reduce(withPart, unpublished(id)));
      return { notes: notes.in(results).pairs, holds: claim === undefined ? [] : [claim] };
    },
  };
}
