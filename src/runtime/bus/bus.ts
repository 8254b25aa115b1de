/** The store as a small bus: put, get, compare and swap, watch. */
import type { Clock } from '../../clock.ts';
import { Failure, shown } from '../../failure.ts';
import {
  type Compare,
  type KeyValue,
  type Operation,
  type OperationResult,
  readPages,
  type Revision,
  type Store,
  Value,
} from '../../store/index.ts';
import { begun, LISTEN, listening, type ListenOptions, type Subscription } from '../subscription.ts';
import { oneOf, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import { ALL_PLAIN, keyOf, plainKey, plainRange } from './keys.ts';
import { type BusHandler, Watcher } from './watcher.ts';

/** A key and its value. */
export interface BusPair {
  /** The key. */
  readonly key: string;
  /** Its value. */
  readonly value: string;
  /** The revision that made the key. */
  readonly createRevision: Revision;
  /** The revision that changed it last. */
  readonly modRevision: Revision;
  /** One when the key was created; every put raises it. */
  readonly version: number;
}

/** A key that does not exist has version, create and mod 0; comparing its value fails with `=` and with `!=`. */
export type BusCompare =
  | {
      readonly key: string;
      readonly target: 'version' | 'create' | 'mod';
      readonly is: '=' | '!=' | '<' | '>';
      readonly than: number;
    }
  | { readonly key: string; readonly target: 'value'; readonly is: '=' | '!='; readonly than: string };

/** One step of a transaction. */
export type BusOperation =
  | { readonly do: 'put'; readonly key: string; readonly value: string }
  | { readonly do: 'delete'; readonly key: string }
  | { readonly do: 'get'; readonly key: string };

/** What one step of a transaction answers. */
export type BusResult =
  | { readonly do: 'put' }
  | { readonly do: 'delete'; readonly deleted: number }
  | { readonly do: 'get'; readonly pair: BusPair | null };

/** What a transaction answers. */
export interface BusTransactionResult {
  /** Whether `success` was done; otherwise `failure` was. */
  readonly succeeded: boolean;
  /** The revision of the store after it. */
  readonly revision: Revision;
  /** One result for each operation that was done, in order. */
  readonly results: readonly BusResult[];
}

/** Whether the store answers, and how fast. */
export type BusHealth =
  | { readonly isHealthy: true; readonly revision: Revision; readonly latencyMs: number }
  | { readonly isHealthy: false; readonly error: string };

/** etcd accepts requests of 1.5 MiB. */
const LARGEST_VALUE_BYTES = 1024 * 1024;
/** Keys that are read at once. */
const PAGE = 100;

/** The store as a small bus: plain keys that other programs share. */
export class Bus implements AsyncDisposable {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #stopped: AbortSignal;
  readonly #watches = new Map<number, Subscription>();
  readonly #closing: () => Promise<void>;
  #lastId = 0;

  /** `closing`: closes what belongs to the bus. */
  constructor(store: Store, clock: Clock, stopped: AbortSignal | undefined, closing: () => Promise<void>) {
    this.#store = store;
    this.#clock = clock;
    this.#stopped = stopped === undefined ? this.#stop.signal : AbortSignal.any([stopped, this.#stop.signal]);
    this.#closing = closing;
  }

  /** Writes a key. */
  async put(key: string, value: string): Promise<{ readonly revision: Revision }> {
    const { revision } = await this.transaction([], [{ do: 'put', key, value }], []);
    return { revision };
  }

  /** Null if there is no such key. A `get` in a transaction also answers its revisions and version. */
  async get(key: string): Promise<string | null> {
    const { results } = await this.transaction([], [{ do: 'get', key }], []);
    return (results[0] as { readonly pair: BusPair | null }).pair?.value ?? null;
  }

  /** Deletes a key. */
  async delete(key: string): Promise<{ readonly deleted: number }> {
    const { results } = await this.transaction([], [{ do: 'delete', key }], []);
    return { deleted: (results[0] as { readonly deleted: number }).deleted };
  }

  /** The keys that begin with `prefix`, by key; all of them if it is empty. */
  async list(prefix = ''): Promise<readonly BusPair[]> {
    this.#refuseIfClosed();
    const found: BusPair[] = [];
    const range = prefix === '' ? ALL_PLAIN : plainRange(prefix);
    for await (const { pairs } of readPages(this.#store, range, PAGE, this.#stopped))
      found.push(...pairs.map(pairFrom));
    return found;
  }

  /** Does `success` if every comparison holds, else `failure`; all or nothing. */
  async transaction(
    compare: readonly BusCompare[],
    success: readonly BusOperation[],
    failure: readonly BusOperation[] = [],
  ): Promise<BusTransactionResult> {
    this.#refuseIfClosed();
    const transaction = {
      compare: compare.map(compareOf),
      success: success.map(operationOf),
      failure: failure.map(operationOf),
    };
    const { succeeded, revision, results } = await this.#store.transaction(transaction, this.#stopped);
    return { succeeded, revision, results: results.map(resultOf) };
  }

  /**
   * Calls `handler` for every change of keys that begin with `prefix`, from now on. Resolves with an id once no change can
   * be missed. A handler may be async: it gets changes in order, one at a time, and delays no other handler.
   */
  async watch(prefix: string, handler: BusHandler, options: ListenOptions = {}): Promise<number> {
    this.#refuseIfClosed();
    refuseUnlessFunction('the handler', handler);
    refuseWrongValues(options, LISTEN);
    const host = { clock: this.#clock, stopped: this.#stopped };
    const watching = await listening(host, options, () => {
      const watcher = new Watcher(this.#store, this.#clock, plainRange(prefix), handler, this.#stopped);
      return begun(
        () => watcher.start(),
        () => watcher.stop(),
      );
    });
    this.#lastId += 1;
    this.#watches.set(this.#lastId, watching);
    return this.#lastId;
  }

  /** Answers whether there was such a watch. Its handler is not called again. */
  unwatch(id: number): boolean {
    this.#watches.get(id)?.unsubscribe();
    return this.#watches.delete(id);
  }

  /** Never throws: the answer says if the store cannot be reached. */
  async healthCheck(): Promise<BusHealth> {
    const begun = this.#clock.monotonic();
    try {
      this.#refuseIfClosed();
      const { revision } = await this.#store.health(this.#stopped);
      return { isHealthy: true, revision, latencyMs: this.#clock.monotonic() - begun };
    } catch (error) {
      return { isHealthy: false, error: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Ends the watches. The keys that were put stay. */
  async close(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    for (const watching of this.#watches.values()) watching.unsubscribe();
    this.#watches.clear();
    this.#stop.abort();
    await this.#closing();
  }

  /** Closes it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #refuseIfClosed(): void {
    if (this.#stopped.aborted) throw new Failure('closed', 'this bus is closed; connect again');
  }
}

/** Refuses a comparison that a store might misread: the comparison decides which operations are done. */
function compareOf(compare: BusCompare): Compare {
  const { key, target, is, than } = Object(compare) as BusCompare;
  const isNumber = target === 'version' || target === 'create' || target === 'mod';
  const isFine = isNumber
    ? oneOf(['=', '!=', '<', '>']).fits(is) && Number.isSafeInteger(than)
    : target === 'value' && oneOf(['=', '!=']).fits(is) && typeof than === 'string';
  if (isFine) return { ...compare, key: plainKey(key) };
  const accepted =
    '{ key, target: "version", "create" or "mod", is: "=", "!=", "<" or ">", than: a whole number }, ' +
    'or { key, target: "value", is: "=" or "!=", than: text }';
  throw new Failure('invalid', `the comparison is ${shown(compare)}; expected ${accepted}`);
}

function operationOf(operation: BusOperation): Operation {
  const key = plainKey(operation.key);
  switch (operation.do) {
    case 'put':
      return { do: 'put', key, value: Value.text(checkedValue(operation.value)) };
    case 'delete':
      return { do: 'delete', key };
    case 'get':
      return { do: 'read', key };
    default:
      throw new Failure('invalid', `the operation is ${shown(operation)}; expected do: "put", "delete" or "get"`);
  }
}

function checkedValue(value: unknown): string {
  if (typeof value !== 'string') throw new Failure('invalid', `the value is ${shown(value)}, not a string`);
  const bytes = Buffer.byteLength(value);
  if (bytes <= LARGEST_VALUE_BYTES) return value;
  throw new Failure('invalid', `the value has ${bytes} bytes; expected at most ${LARGEST_VALUE_BYTES} (1024 KiB)`);
}

function resultOf(result: OperationResult): BusResult {
  switch (result.do) {
    case 'put':
      return { do: 'put' };
    case 'delete':
      return { do: 'delete', deleted: result.deleted };
    case 'read':
      return { do: 'get', pair: result.pairs[0] === undefined ? null : pairFrom(result.pairs[0]) };
    case 'transaction':
      throw new Failure(
        'corrupt',
        'the store answered a transaction with the result of a nested one, which was not asked for',
      );
  }
}

function pairFrom({ key, value, createRevision, modRevision, version }: KeyValue): BusPair {
  return { key: keyOf(key), value: value.text, createRevision, modRevision, version };
}
