/**
 * The network between one simulated process and the store: it delays, loses requests before and answers after they
 * were applied, applies late what was already given up on, and cuts watches. Requests that have left go on without
 * their sender; what comes back reaches a process only while it lives.
 */
import { Failure } from '../../failure.ts';
import type {
  Changes,
  Health,
  KeyRange,
  KeyValue,
  Lease,
  LeaseId,
  LeaseState,
  Operation,
  OperationResult,
  Revision,
  Store,
  Transaction,
  TransactionResult,
  Watch,
} from '../../store/index.ts';
import { Value } from '../../store/index.ts';
import type { Faults } from './faults.ts';
import type { SimulatedProcess, World } from './world.ts';

/** After this a client no longer expects an answer. */
const ANSWER_TIMEOUT_MS = 800;

export class Network implements Store {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #inner: Store;
  readonly #faults: Faults;
  readonly #watches = new Set<CutWatch>();

  constructor(world: World, process: SimulatedProcess, inner: Store, faults: Faults) {
    this.#world = world;
    this.#process = process;
    this.#inner = inner;
    this.#faults = faults;
  }

  transaction(transaction: Transaction): Promise<TransactionResult> {
    const changes = [...transaction.success, ...transaction.failure].some((operation) => operation.do !== 'read');
    return this.#call(changes ? 'write' : 'read', async () =>
      decoded(await this.#inner.transaction(encodedTransaction(transaction))),
    );
  }

  grantLease(ttlMs: number): Promise<Lease> {
    return this.#call('write', () => this.#inner.grantLease(ttlMs));
  }

  keepLeaseAlive(id: LeaseId): Promise<Lease | null> {
    return this.#call('read', () => this.#inner.keepLeaseAlive(id));
  }

  revokeLease(id: LeaseId): Promise<void> {
    return this.#call('write', () => this.#inner.revokeLease(id));
  }

  leaseState(id: LeaseId): Promise<LeaseState | null> {
    return this.#call('read', () => this.#inner.leaseState(id));
  }

  compact(revision: Revision): Promise<void> {
    return this.#call('write', () => this.#inner.compact(revision));
  }

  health(): Promise<Health> {
    return this.#call('read', () => this.#inner.health());
  }

  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal): Promise<Watch> {
    const over = new AbortController();
    const inner = await this.#call('read', () =>
      this.#inner.watch(range, since, AbortSignal.any([signal, over.signal])),
    );
    const watch = new CutWatch(this.#world, this.#process, this.#faults, inner.since, () => {
      over.abort();
      this.#watches.delete(watch);
    });
    this.#watches.add(watch);
    signal.addEventListener('abort', () => watch.end());
    void watch.pump(inner);
    return watch;
  }

  cutWatches(): void {
    for (const watch of this.#watches) watch.cut();
  }

  async close(): Promise<void> {
    for (const watch of this.#watches) watch.end();
  }

  #call<T>(kind: 'read' | 'write', apply: () => Promise<T>): Promise<T> {
    const world = this.#world;
    const process = this.#process;
    const fate = this.#faults.fateOf(kind, process);
    return new Promise<T>((resolve, reject) => {
      const lost = (): void =>
        void world.schedule(
          ANSWER_TIMEOUT_MS,
          () =>
            reject(
              kind === 'write'
                ? new Failure('outcome-unknown', 'simulated: no answer came')
                : new Failure('unavailable', 'simulated: no answer came'),
            ),
          process,
        );
      switch (fate.kind) {
        case 'refused':
          world.schedule(fate.thereMs, () => reject(new Failure('unavailable', 'simulated: not reached')), process);
          return;
        case 'request-lost':
          lost();
          return;
        case 'answer-lost':
          world.schedule(fate.thereMs, () => void apply().catch(() => undefined));
          lost();
          return;
        case 'late':
          world.schedule(ANSWER_TIMEOUT_MS + fate.lateMs, () => void apply().catch(() => undefined));
          lost();
          return;
        case 'well':
          world.schedule(fate.thereMs, () => {
            apply().then(
              (value) => world.schedule(fate.backMs, () => resolve(value), process),
              (error: Error) => world.schedule(fate.backMs, () => reject(error), process),
            );
          });
      }
    });
  }
}

/** Deliveries are delayed but stay in order; cut, it throws after what was delivered. */
class CutWatch implements Watch {
  readonly since: Revision;
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #faults: Faults;
  readonly #closed: () => void;
  readonly #queue: Changes[] = [];
  #failure: Error | undefined;
  #ended = false;
  #wake: (() => void) | undefined;
  #latest = 0;

  constructor(world: World, process: SimulatedProcess, faults: Faults, since: Revision, closed: () => void) {
    this.since = since;
    this.#world = world;
    this.#process = process;
    this.#faults = faults;
    this.#closed = closed;
  }

  async pump(inner: AsyncIterable<Changes>): Promise<void> {
    try {
      for await (const changes of inner) {
        if (this.#ended || this.#failure !== undefined) return;
        this.#inOrder(() => this.#queue.push(decodedChanges(changes)));
      }
      this.#inOrder(() => void (this.#ended = true));
    } catch (error) {
      this.#inOrder(() => void (this.#failure ??= error as Error));
    }
  }

  cut(): void {
    this.#failure ??= new Failure('unavailable', 'simulated: the watch was cut');
    this.#closed();
    this.#world.schedule(1, () => this.#wake?.(), this.#process);
  }

  end(): void {
    this.#ended = true;
    this.#closed();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Changes> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const changes = this.#queue.shift();
      if (changes !== undefined) yield changes;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #inOrder(arrive: () => void): void {
    this.#latest = Math.max(this.#latest, this.#world.now + this.#faults.watchDelayMs());
    this.#world.schedule(
      this.#latest - this.#world.now,
      () => {
        arrive();
        this.#wake?.();
      },
      this.#process,
    );
  }
}

// Everything crosses the network as text, so that what a process gets is never an object of another's.

function encodedTransaction({ compare, success, failure }: Transaction): Transaction {
  return { compare, success: success.map(encodedOperation), failure: failure.map(encodedOperation) };
}

function encodedOperation(operation: Operation): Operation {
  if (operation.do === 'put') return { ...operation, value: Value.text(operation.value.text) };
  if (operation.do === 'transaction') return { do: 'transaction', ...encodedTransaction(operation) };
  return operation;
}

function decoded(result: TransactionResult): TransactionResult {
  return { ...result, results: result.results.map(decodedResult) };
}

function decodedResult(result: OperationResult): OperationResult {
  if (result.do === 'read') return { ...result, pairs: result.pairs.map(decodedPair) };
  if (result.do === 'transaction') return { ...result, results: result.results.map(decodedResult) };
  return result;
}

function decodedPair(pair: KeyValue): KeyValue {
  return { ...pair, value: Value.text(pair.value.text) };
}

function decodedChanges({ revision, changes }: Changes): Changes {
  return {
    revision,
    changes: changes.map((change) =>
      change.kind === 'put' ? { kind: 'put', pair: decodedPair(change.pair) } : change,
    ),
  };
}
