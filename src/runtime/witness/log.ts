/** The record of the witness, as users see it: `box.witness`. */
import type { Json } from '../../core/index.ts';
import type {
  Checkpoint,
  InclusionProof,
  Signer,
  Verification,
  VerifierOptions,
  WitnessEntry,
} from '../../core/witness/index.ts';
import { Failure, refuseInvalid, shown } from '../../failure.ts';
import type { KeyValue, Revision } from '../../store/index.ts';
import { documentProblem, nameProblem } from '../../core/index.ts';
import { keepingAlive, LISTEN, type ListenOptions, type Subscription, subscription } from '../subscription.ts';
import {
  abortSignal,
  anything,
  flag,
  refuseUnlessFunction,
  refuseWrongValues,
  shortText,
  wholeNumber,
  wholeNumberFromZero,
} from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import { iterated } from '../subscriber-iterator.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import { said } from '../write/witnessed.ts';
import { sendWitnessed } from '../write/write-once.ts';
import { entriesIn, entryIn, entryRange } from './chains.ts';
import { chainOf, FILTER, fits, type WitnessFilter } from './filter.ts';
import { configureRetention, RETENTION, retentionOf, trim, type WitnessRetention } from './retention.ts';
import { isWanted, missedSince, type Trimmed } from './missed.ts';
import { sizeOf, type WitnessSize } from './size.ts';
import { warningsOf } from './warnings.ts';
import type { WitnessWarnings } from '../../core/troubles.ts';

/** An entry of the user's own. */
export interface OwnEntry {
  /** What happened, such as `deploy:started`. */
  readonly event: string;
  /** What it happened to, or in: entries of one component are one chain. */
  readonly component: string;
  /** The trace that it belongs to; by default that of this process. */
  readonly traceId?: string;
  /** Who did it; by default this process. */
  readonly actor?: string;
  /** Any JSON; over 1 KiB only its hash is entered. */
  readonly payload?: Json;
  /** Enters only the hash of the payload. */
  readonly sensitive?: boolean;
}

/** How to verify. */
export interface VerifyOptions extends Omit<VerifierOptions, 'digest'> {
  /** Called now and then with the number of entries read so far. */
  readonly onProgress?: (entries: number) => void;
}

/** Up to where a reader has the record: the whole revision, or of that revision the keys up to this one. */
export interface WatchPlace {
  readonly revision: Revision;
  readonly key?: string;
}

/** An entry, and the place of a reader who has it. */
export interface PlacedEntry {
  readonly entry: WitnessEntry;
  readonly place: WatchPlace;
}

/** Entries that this reader has not had may have been trimmed. What still exists follows. */
export interface PlacedTrim {
  readonly entry?: undefined;
  readonly place: WatchPlace;
}

/** How to follow the record. */
export interface WatchOptions extends ListenOptions {
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal;
  /** Begins with this many existing entries; with none if not given. */
  readonly last?: number;
  /**
   * Called if this reader was so slow, or so long away from the store, that entries may have been trimmed before it had them. The
   * watch goes on with those that exist. Without this function it throws `compacted` instead.
   */
  readonly onTrimmed?: () => void;
}

/** The error for a reader whose next entries were trimmed. */
export const TRIMMED_BEFORE_READ =
  'entries of the witness were trimmed before this watch had them, so some may be missing; read an archive, or begin again';

async function* entriesOnly(
  placed: AsyncIterable<PlacedEntry | PlacedTrim>,
  onTrimmed = (): void => {
    throw new Failure('compacted', TRIMMED_BEFORE_READ);
  },
): AsyncGenerator<WitnessEntry, void> {
  for await (const { entry } of placed) {
    if (entry === undefined) onTrimmed();
    else yield entry;
  }
}

const OWN = { event: shortText, component: shortText, traceId: shortText, actor: shortText, payload: anything };
const LARGEST_PAYLOAD = 64 * 1024;

/** The error for a caller that asks for the record of a store without one. */
export const WITNESS_IS_OFF =
  'the witness of this store is off, so there is no record of its changes. To switch it on, open the store with ?witness=on at ' +
  'the end of its URL while no other process uses it';

/** The record of every change, which shows tampering. */
export class WitnessLog {
  readonly #runtime: Runtime;

  /** @internal */
  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether the witness of this store is on. */
  async isOn(): Promise<boolean> {
    this.#runtime.refuseIfClosed();
    await this.#runtime.witness.known();
    return this.#runtime.witness.isOn;
  }

  /** Refuses if the witness is off: a record that was never kept must not pass as intact. */
  async #refuseIfOff(): Promise<void> {
    if (!(await this.isOn())) throw new Failure('invalid', WITNESS_IS_OFF);
  }

  /** Adds an entry of your own to the chain of its component, and returns it. */
  async record(own: OwnEntry): Promise<WitnessEntry> {
    const runtime = this.#runtime;
    runtime.refuseIfClosed();
    refuseWrongValues(own, { ...OWN, sensitive: flag });
    const { event, component, traceId, actor, payload, sensitive } = own;
    refuseInvalid(
      nameProblem(component, 'component') ??
        (typeof event === 'string' ? undefined : `event is ${shown(event)}; expected text`) ??
        (payload === undefined ? undefined : documentProblem(payload, 'payload', LARGEST_PAYLOAD)),
    );
    await this.#refuseIfOff();
    const detail: { [name: string]: Json } = {};
    said(detail, { ...(payload !== undefined && { data: payload }), ...(sensitive === true && { sensitive: true }) });
    const resource = `component/${component}`;
    await runtime.ready();
    let made: WitnessEntry | undefined;
    await sendWitnessed(runtime, { compare: [], success: [], failure: [] }, [
      {
        resource,
        entered: (entry) => (made = entry),
        actor: actor ?? runtime.sender.id,
        command: 'record',
        outcome: 'recorded',
        component,
        events: [event],
        trace: traceId,
        detail,
      },
    ]);
    return made as unknown as WitnessEntry;
  }

  /**
   * Reads the matching entries, chain by chain, each chain in order. `after` goes on after an entry that was read before; if
   * entries after it were trimmed, this throws `compacted` and says how far. Throws the reason of `signal` when that aborts, also
   * between entries that do not match.
   */
  async *entries(
    filter: WitnessFilter = {},
    options: { readonly after?: Pick<WitnessEntry, 'resource' | 'seq'>; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<WitnessEntry, void> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(filter, FILTER);
    refuseWrongValues(options, { after: anything, signal: abortSignal });
    const { after, signal } = options;
    for await (const entry of entriesIn(this.#runtime, chainOf(filter), after)) {
      signal?.throwIfAborted();
      if (fits(entry, filter)) yield entry;
    }
  }

  /**
   * Follows the matching entries in the order of their writes: first the `last` existing ones (none if not given), then each new
   * one, without a gap. Ends when `signal` aborts or the signalbox is closed.
   */
  watch(filter: WitnessFilter = {}, options: WatchOptions = {}): AsyncIterable<WitnessEntry> {
    refuseWrongValues(options, { signal: abortSignal, last: wholeNumberFromZero, onTrimmed: anything, ...LISTEN });
    const { onTrimmed, ...how } = options;
    if (onTrimmed !== undefined) refuseUnlessFunction('onTrimmed', onTrimmed);
    return entriesOnly(this.watchPlaces(filter, how), onTrimmed);
  }

  /**
   * The same with the place of each entry. A watch that begins `after` a place misses and repeats nothing, or says that entries
   * were trimmed.
   * @internal
   */
  watchPlaces(
    filter: WitnessFilter,
    options: { readonly signal?: AbortSignal; readonly last?: number; readonly after?: WatchPlace } & ListenOptions,
  ): AsyncIterable<PlacedEntry | PlacedTrim> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(filter, FILTER);
    const { signal, ...how } = options;
    const { stopped } = this.#runtime;
    const over = signal === undefined ? stopped : AbortSignal.any([signal, stopped]);
    return iterated<PlacedEntry | PlacedTrim>(
      (handler) => this.#follow(filter, how, handler),
      over,
      this.#runtime.store.over,
    );
  }

  async #follow(
    filter: WitnessFilter,
    { last = 0, after, ...listen }: { readonly last?: number; readonly after?: WatchPlace } & ListenOptions,
    handler: (placed: PlacedEntry | PlacedTrim) => Promise<void>,
  ): Promise<Subscription> {
    const runtime = this.#runtime;
    const { store, clock, stopped } = runtime;
    const over = new AbortController();
    const signal = AbortSignal.any([stopped, over.signal]);
    const range = entryRange(chainOf(filter));
    /** Entries written from this revision on are always handed out. */
    let begun: Revision = after === undefined ? 0 : after.revision + 1;
    /** Everything before this revision was handed out, and its own keys up to this one: one write may make several entries. */
    let reached = after?.key === undefined ? undefined : { revision: after.revision, key: after.key };
    let knownTrim: Revision = 0;
    const hand = async (pair: KeyValue | Trimmed): Promise<void> => {
      if ('trimmedAt' in pair) {
        knownTrim = pair.trimmedAt;
        return handler({ place: reached?.key ? reached : { revision: (reached?.revision ?? begun) - 1 } });
      }
      const { modRevision: revision, key } = pair;
      const isNew =
        reached === undefined || revision > reached.revision || (revision === reached.revision && key > reached.key);
      if (!isNew) return;
      reached = { revision, key };
      await handler({ entry: entryIn(pair), place: reached });
    };
    const missed = (): AsyncIterable<KeyValue | Trimmed> => {
      const wanted = { since: reached?.revision ?? begun, before: reached === undefined ? last : 0, knownTrim };
      return missedSince(runtime, range, wanted, filter, signal);
    };
    const queue = new SubscriberQueue<KeyValue | Trimmed>(hand, missed);
    const alive = keepingAlive(runtime, listen);
    const stop = (): void => {
      alive();
      over.abort();
      queue.stop();
    };
    try {
      const since = await follow(
        store,
        clock,
        range,
        {
          changes: ({ changes }) => {
            const put = changes.flatMap((change) => (change.kind === 'put' ? [change.pair] : []));
            // In the order in which they are read, so that one key says how far a reader is within a write.
            put.sort((one, other) => (one.key < other.key ? -1 : 1));
            for (const pair of put) if (isWanted(pair, filter)) queue.add(pair);
          },
          resync: async () => {
            const { revision } = await store.health(signal);
            queue.restart(missed());
            return revision;
          },
        },
        signal,
        undefined,
        // The history of the store has what came after a place, trimmed or not. If it is compacted, `resync` reads the record.
        after === undefined ? 'now' : Math.max(0, after.revision - (after.key === undefined ? 0 : 1)),
      );
      if (after === undefined) begun = since + 1;
      // Read after the watch began, so that an entry written meanwhile is in one of the two; `hand` drops one that is in both.
      if (last > 0) queue.restart(missed());
      else reached ??= { revision: begun, key: '' };
    } catch (error) {
      stop();
      throw error;
    }
    return subscription(stop);
  }

  /** Reads and checks the whole record; `finding` names the first problem, if there is one. */
  async verify(options: VerifyOptions = {}): Promise<Verification> {
    await this.#refuseIfOff();
    const { onProgress, ...how } = options;
    const { verify } = await import('./proving.ts');
    return verify(this.#runtime, how, onProgress);
  }

  /** Checks the entries since the last checkpoint, and seals the record up to now. Throws if they do not verify. */
  async checkpoint(options: { readonly sign?: Signer } = {}): Promise<Checkpoint> {
    await this.#refuseIfOff();
    const { checkpoint } = await import('./sealing.ts');
    return checkpoint(this.#runtime, options);
  }

  /** The checkpoints of the store, from the oldest to the newest. */
  async checkpoints(): Promise<readonly Checkpoint[]> {
    this.#runtime.refuseIfClosed();
    const { readCheckpoints } = await import('./checkpoints.ts');
    return readCheckpoints(this.#runtime);
  }

  /** Proves to a reader who has neither the store nor the other entries that an entry is in the record. */
  async proof(entry: Pick<WitnessEntry, 'resource' | 'seq'>): Promise<InclusionProof> {
    await this.#refuseIfOff();
    const { proof } = await import('./proving.ts');
    const proven = await proof(this.#runtime, entry);
    if ('problem' in proven) throw new Failure('not-found', proven.problem);
    return proven.proof;
  }

  /**
   * The lines of an export, as JSON Lines: another machine can verify it without the store. `only`: the entries of these
   * resources alone.
   */
  async *export(
    about: { readonly by?: string; readonly store?: string; readonly only?: readonly string[] } = {},
  ): AsyncGenerator<string, void> {
    await this.#refuseIfOff();
    const { exportLines } = await import('./proving.ts');
    yield* exportLines(this.#runtime, { by: 'signalbox', ...about });
  }

  /**
   * Deletes the entries that a checkpoint covers; the newest checkpoint if you name none. Export the record before that, but
   * after the checkpoint was made: afterwards only the checkpoint vouches for the entries.
   */
  async trim(options: { readonly upTo?: number } = {}): Promise<{ readonly trimmed: number }> {
    refuseWrongValues(options, { upTo: wholeNumber });
    await this.#refuseIfOff();
    return { trimmed: await trim(this.#runtime, options.upTo) };
  }

  /** How large the record is, and what part of its limit that is. */
  async size(): Promise<WitnessSize> {
    this.#runtime.refuseIfClosed();
    return sizeOf(this.#runtime, await retentionOf(this.#runtime));
  }

  /** The warnings of maintenance: a record that fills up, damaged chains. */
  async warnings(): Promise<WitnessWarnings> {
    this.#runtime.refuseIfClosed();
    return warningsOf(this.#runtime);
  }

  /** How much of the record the store keeps. */
  async retention(): Promise<WitnessRetention> {
    this.#runtime.refuseIfClosed();
    return retentionOf(this.#runtime);
  }

  /** Changes how much it keeps, for all processes that use this store. */
  async configure(settings: Partial<WitnessRetention>): Promise<WitnessRetention> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(settings, RETENTION);
    await this.#refuseIfOff();
    return configureRetention(this.#runtime, settings);
  }
}
