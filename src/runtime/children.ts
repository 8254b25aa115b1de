/**
 * Which child processes work under which holds, so that nobody starts a second one beside an orphan.
 *
 *     a hold is granted ── the child is there, but waits ── its note is written ── it is let go ── ... ── note deleted
 *                                                                 │
 *                              the same transaction reads the notes of others, and whether the hold is still ours
 *
 * Whoever was granted the resource after us reads our note, because it was written before our child was let go; and if
 * the resource had changed hands before we wrote it, the record tells us so, and our child is not let go at all. Notes
 * are on no lease: they outlive the hold, and are deleted by whoever finds that nothing is left of the child.
 */
import type { Hold as Grant, Token } from '../core/index.ts';
import { isProvenGone, type Offspring, type ProcessIdentity, thisProcess } from '../host/index.ts';
import { type KeyValue, type Operation, prefixed, type ReadResult } from '../store/index.ts';
import type { Hold } from './hold.ts';
import { anchorKey, decode, encode, type RecordDocument, type ResourceKind, resourceKeys } from './layout.ts';
import type { Runtime } from './runtime.ts';

export interface ChildNote {
  readonly hold: string;
  readonly token: Token;
  readonly holder: string;
  /** What the hold rests on: a child under a re-entry belongs to the outer hold. */
  readonly lease: string;
  readonly child: Offspring;
  /** Whoever started it, and looks after it. */
  readonly parent?: ProcessIdentity;
  /** How long its parent gives it to end when the hold is lost. */
  readonly graceMs: number;
  /** Its parent lets it go on when the hold is lost. */
  readonly outlivesHold: boolean;
  readonly at: number;
}

/** A note of a child whose hold is gone. */
export interface Leftover {
  readonly key: string;
  readonly resource: string;
  readonly note: ChildNote;
  /** Its parent lives, and has just lost the hold: it is about to end it by itself. */
  readonly isLookedAfter: boolean;
}

export type Entered =
  | { readonly kind: 'entered'; readonly keys: readonly string[]; readonly leftovers: readonly Leftover[] }
  /** The hold was lost before the child could be let go. */
  | { readonly kind: 'lost'; readonly resource: string };

export interface ChildTerms {
  readonly graceMs: number;
  readonly outlivesHold: boolean;
}

const READS_EACH = 2;

export class Children {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether all processes that use this store are on one machine. */
  get areOfOneMachine(): boolean {
    return this.#runtime.store.endLeaseWith !== undefined;
  }

  /** To be called before the child is let go. It must not be, unless the answer is `entered`. */
  async enter(holds: readonly Hold[], child: Offspring, terms: ChildTerms): Promise<Entered> {
    const { store, stopped, clock } = this.#runtime;
    const session = await this.#runtime.ready();
    const parent = thisProcess();
    const own = this.#runtime.nextId(session);
    const keys = holds.map((hold) => keysOf(hold.resource));
    // Without an identity nobody could find it by the note.
    const noted = child.process === undefined ? [] : keys.map(({ children }) => children + own);
    const puts = noted.map((key, place): Operation => {
      const { id, token, holder, lease } = holds[place] as Hold;
      const note: ChildNote = { hold: id, token, holder, lease, child, ...terms, at: clock.now() };
      return { do: 'put', key, value: encode(parent === undefined ? note : { ...note, parent }) };
    });
    const reads = keys.flatMap(({ children, record }): Operation[] => [
      { do: 'read', ...prefixed(children) },
      { do: 'read', key: record },
    ]);
    // Dead with nothing left behind is dead at once; with the child alive, its lease runs its time.
    if (parent !== undefined && child.process !== undefined) {
      await store.endLeaseWith?.(session.leaseId, [parent, child.process], stopped);
    }
    const { results } = await store.transaction({ compare: [], success: [...puts, ...reads], failure: [] }, stopped);
    const found = holds.map((hold, place) => {
      const first = puts.length + READS_EACH * place;
      const [notes, record] = results.slice(first, first + READS_EACH) as [ReadResult, ReadResult];
      return { hold, notes: notes.pairs.filter(({ key }) => key !== noted[place]), holds: holdsIn(record) };
    });
    const lost = found.find(({ hold, holds: current }) => !hold.isValid || !isAmong(current, hold.id));
    if (lost !== undefined) {
      await this.forget(noted);
      return { kind: 'lost', resource: lost.hold.resource };
    }
    return { kind: 'entered', keys: noted, leftovers: await this.#leftoversAmong(found) };
  }

  /** Nothing is left of these children, or nothing was let go. */
  async forget(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const success = keys.map((key): Operation => ({ do: 'delete', key }));
    await this.#runtime.store.transaction({ compare: [], success, failure: [] }, this.#runtime.stopped);
  }

  /** Of several who share a resource, those who still hold it are no leftovers. */
  async #leftoversAmong(
    found: readonly { readonly hold: Hold; readonly notes: readonly KeyValue[]; readonly holds: readonly Grant[] }[],
  ): Promise<readonly Leftover[]> {
    const notes = found.flatMap(({ hold, notes: pairs, holds }) =>
      pairs.map((pair) => {
        const note = decode<ChildNote>(pair);
        return { key: pair.key, resource: hold.resource, note, isHeld: isAmong(holds, note.hold) };
      }),
    );
    const alive = await this.#aliveOf(new Set(notes.map(({ note }) => note.lease)));
    return notes
      .filter(({ note, isHeld }) => !isHeld || !alive.has(note.lease))
      .map(({ key, resource, note }) => ({ key, resource, note, isLookedAfter: isLookedAfter(note, alive) }));
  }

  async #aliveOf(leases: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const alive = new Set<string>();
    // One read each, so many at a time as a transaction may have.
    for (const some of chunks([...leases], 100)) {
      const success = some.map((lease): Operation => ({ do: 'read', key: anchorKey(lease) }));
      const { results } = await this.#runtime.store.transaction(
        { compare: [], success, failure: [] },
        this.#runtime.stopped,
      );
      for (const [place, lease] of some.entries()) {
        if ((results[place] as ReadResult).pairs.length > 0) alive.add(lease);
      }
    }
    return alive;
  }
}

function keysOf(resource: string): ReturnType<typeof resourceKeys> {
  const slash = resource.indexOf('/');
  return resourceKeys(resource.slice(0, slash) as ResourceKind, resource.slice(slash + 1));
}

function holdsIn({ pairs: [pair] }: ReadResult): readonly Grant[] {
  return pair === undefined ? [] : decode<RecordDocument<{ readonly holds: readonly Grant[] }>>(pair).record.holds;
}

function isAmong(holds: readonly Grant[], id: string): boolean {
  return holds.some((hold) => hold.id === id);
}

function isLookedAfter({ parent, lease }: ChildNote, alive: ReadonlySet<string>): boolean {
  return alive.has(lease) && parent !== undefined && !isProvenGone(parent);
}

function* chunks<T>(items: readonly T[], size: number): Iterable<readonly T[]> {
  for (let first = 0; first < items.length; first += size) yield items.slice(first, first + size);
}
