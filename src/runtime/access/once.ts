/**
 * Requests that are carried out once although they are sent twice. The first one enters its key; a later one with the same
 * key and content gets the answer of the first, from any server on this store.
 *
 *     absent ──begin──▶ running ──done──▶ answered        all on leases, so that nothing is kept for ever
 *                          │
 *                          ├──failed──▶ absent
 *                          └──the server is gone──▶ absent, or unknown if carrying it out again may do harm
 *
 * Each step is one write, which it shares with the steps of other keys that come in the same turn of the event loop: on a busy
 * server there are many. Keys of the same second share a lease, because granting and ending a lease for each would cost more
 * than most requests do. So a key may end a second before its time.
 *
 * A server that is killed between the operation and `done` leaves no answer. A repeat that a token or a lease makes harmless is
 * carried out again: a second release changes nothing, and a second acquire of the same holder gets the same hold. For the
 * rest, nobody knows what became of the request, and a repeat gets that answer.
 */
import type { Json } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import {
  type KeyValue,
  type LeaseId,
  pairIn,
  readRange,
  type Revision,
  type Transaction,
  type TransactionResult,
} from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { encode, checked, type Fields } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { SharedWrites } from '../write/shared-writes.ts';
import { persistently, send } from '../write/write-once.ts';

/** The answer that a repeat gets. */
export interface KeptAnswer {
  /** The status of the answer. */
  readonly status: number;
  /** Its body. */
  readonly body: Json;
}

/** How a request with a key begins. */
export type OnceOutcome =
  /**
   * It is the first: carry it out, then call `done`, or `failed` if it did nothing. `done` answers false if the request does not
   * count any more: it took too long, or was settled otherwise. `failed` answers whether it is certain that no answer is kept.
   */
  | {
      readonly kind: 'first';
      readonly done: (answer: KeptAnswer, keptMs: number) => Promise<boolean>;
      readonly failed: () => Promise<boolean>;
    }
  | { readonly kind: 'answered'; readonly answer: KeptAnswer }
  /** Another server, or this one, is carrying it out. */
  | { readonly kind: 'running' }
  /** It was begun, and its time is over without an answer: it may have been carried out. */
  | { readonly kind: 'unknown' }
  /** The key was used for a request with other content. */
  | { readonly kind: 'other-content' };

interface Entry {
  readonly content: string;
  readonly answer?: KeptAnswer;
  /** The number of the request at its server, which recognises its own entry by it. */
  readonly nth?: number;
  /** After this time, by a server's clock, nobody carries the request out any more. Absent if the entry itself ends then. */
  readonly until?: number;
}

const ONCE = 'k/once/';
/** New keys share a lease for this long. */
const SHARED_MS = 1_000;
/** How many leases to remember: their times differ, because requests name the time of their holds, and so of their entries. */
const MOST_LEASES = 100;

/** Requests that are carried out once although they are sent twice. */
export class OnceKeys {
  readonly #runtime: Runtime;
  /** By the time that they were granted for. */
  readonly #leases = new Map<number, { readonly at: number; readonly lease: Promise<LeaseId> }>();

  readonly #steps: SharedWrites;
  #begun = 0;

  /** @internal */
  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#steps = new SharedWrites(runtime);
  }

  /**
   * `key`, `content`: hashes. `runningMs`: after it, a request without an answer counts as never made; with `unknownMs`, it
   * counts as `unknown` until that time is over.
   */
  async begin(key: string, content: string, runningMs: number, unknownMs?: number): Promise<OnceOutcome> {
    const { clock } = this.#runtime;
    const at = ONCE + key;
    const nth = ++this.#begun;
    const entry: Entry = { content, nth, ...(unknownMs !== undefined && { until: clock.now() + runningMs }) };
    /** The leases of this server's attempts; no other server puts keys on them. */
    const leases = new Set<LeaseId | null>();
    const enter = (): Promise<TransactionResult> =>
      this.#onLease(unknownMs ?? runningMs, (lease) => {
        leases.add(lease);
        return {
          compare: [{ key: at, target: 'version', is: '=', than: 0 }],
          success: [{ do: 'put', key: at, value: encode(entry), lease }],
          failure: [{ do: 'read', key: at }],
        };
      });
    const { succeeded, revision, results } = await enter().catch((error: unknown) => {
      // The key may be entered, and this server has not begun the request: the second attempt finds the entry of the first.
      if (Failure.is(error, 'outcome-unknown')) return enter();
      throw error;
    });
    const first = (since: Revision): OnceOutcome => this.#first(at, since, content, unknownMs ?? runningMs);
    if (succeeded) return first(revision);
    const pair = pairIn(results, at);
    // The entry ended before it could be read: the client may try again.
    if (pair === undefined) return { kind: 'running' };
    const { content: known, answer, nth: theirs, until = Infinity } = entryIn(pair);
    if (theirs === nth && leases.has(pair.lease)) return first(pair.modRevision);
    if (known !== content) return { kind: 'other-content' };
    if (answer !== undefined) return { kind: 'answered', answer };
    return { kind: clock.now() < until ? 'running' : 'unknown' };
  }

  /** `lastsMs`: how long its entry stays without an answer. */
  #first(at: string, revision: Revision, content: string, lastsMs: number): OnceOutcome {
    const runtime = this.#runtime;
    const done = (answer: KeptAnswer, keptMs: number): Promise<boolean> =>
      this.#keep(at, revision, { content, answer }, keptMs);
    const dropping = ifUnchanged(at, revision, [{ do: 'delete', key: at }]);
    const drop = (): Promise<boolean> => send(runtime, dropping).then(({ succeeded }) => succeeded);
    const failed = (): Promise<boolean> =>
      drop().catch(() => {
        // What kept the request from being done, such as a store that is away, may keep the entry there as well. Nobody waits
        // until it is dropped, but later repeats would hear that the request is under way, or that nobody knows its end.
        // Dropping it late does no harm: until then no repeat is carried out.
        persistently(runtime, runtime.clock.monotonic() + lastsMs, drop).catch(() => undefined);
        return false;
      });
    return { kind: 'first', done, failed };
  }

  /**
   * Gives a request this answer although it was not carried out. A server that is carrying it out gets false from `done`.
   * Changes nothing if it is answered already.
   */
  async settle(key: string, content: string, answer: KeptAnswer, keptMs: number): Promise<void> {
    const { store, stopped } = this.#runtime;
    const at = ONCE + key;
    for (;;) {
      const { pairs } = await readRange(store, { key: at }, stopped);
      const [pair] = pairs;
      if (pair !== undefined && entryIn(pair).answer !== undefined) return;
      if (await this.#keep(at, pair?.modRevision ?? 0, { content, answer }, keptMs)) return;
    }
  }

  /** The answer that is kept for a request, if there is one. */
  async answerTo(key: string, content: string): Promise<KeptAnswer | undefined> {
    const { store, stopped } = this.#runtime;
    const [pair] = (await readRange(store, { key: ONCE + key }, stopped)).pairs;
    const entry = pair === undefined ? undefined : entryIn(pair);
    return entry?.content === content ? entry.answer : undefined;
  }

  /** `revision`: of the entry that this one replaces; 0 if there is none. */
  async #keep(key: string, revision: number, entry: Entry, keptMs: number): Promise<boolean> {
    const { succeeded } = await this.#onLease(keptMs, (lease) =>
      ifUnchanged(key, revision, [{ do: 'put', key, value: encode(entry), lease }]),
    );
    return succeeded;
  }

  /** Writes with a lease of this time, which may be one that others are on. */
  async #onLease(ttlMs: number, write: (lease: LeaseId) => Transaction): Promise<TransactionResult> {
    const shared = this.#leaseFor(ttlMs);
    try {
      return await this.#steps.send(write(await shared));
    } catch (error) {
      // This machine was asleep for longer than the lease.
      if (!Failure.is(error, 'not-found')) throw error;
      if ((await this.#leases.get(ttlMs)?.lease) === (await shared)) this.#leases.delete(ttlMs);
      return this.#steps.send(write(await this.#leaseFor(ttlMs)));
    }
  }

  #leaseFor(ttlMs: number): Promise<LeaseId> {
    const { store, clock, stopped } = this.#runtime;
    const now = clock.monotonic();
    const known = this.#leases.get(ttlMs);
    if (known !== undefined && now - known.at < Math.min(SHARED_MS, ttlMs / 4)) return known.lease;
    if (this.#leases.size >= MOST_LEASES) this.#leases.clear();
    const lease = store.grantLease(ttlMs, stopped).then(({ id }) => id);
    lease.catch(() => this.#leases.delete(ttlMs));
    this.#leases.set(ttlMs, { at: now, lease });
    return lease;
  }
}

function entryIn(pair: KeyValue): Entry {
  return checked<Entry>(pair, entryProblem);
}

function entryProblem({ content, answer, nth, until }: Fields): string | undefined {
  if (typeof content !== 'string') return `its content is ${shown(content)}`;
  if (nth !== undefined && typeof nth !== 'number') return `its nth is ${shown(nth)}`;
  if (until !== undefined && typeof until !== 'number') return `its until is ${shown(until)}`;
  if (answer === undefined) return undefined;
  const { status } = Object(answer) as { readonly status?: unknown };
  return isStatus(status) ? undefined : `its answer is ${shown(answer)}`;
}

/** Whether it is a final status: a server can send no other as an answer. */
function isStatus(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 200 && (value as number) <= 599;
}

/** The failure for a key that is too long, or has characters that no header carries. */
export function refuseUnlessKey(key: string): void {
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return;
  throw new Failure('invalid', `Idempotency-Key is ${shown(key)}; expected 1 to 200 visible characters of ASCII`);
}
