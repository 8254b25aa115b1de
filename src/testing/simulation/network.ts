/**
 * The network between one simulated process and the store: it delays, loses requests before and answers after they were applied,
 * applies requests late that their sender gave up, and cuts watches. A request that was sent goes on without its sender; an
 * answer reaches a process only while it lives.
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
import type { Call, Faults } from './faults.ts';
import type { SimulatedProcess, World } from './world.ts';

/** After this a client no longer expects an answer. */
const ANSWER_TIMEOUT_MS = 800;

const WINDOW_MS = 10_000;

/** How many calls a process may make per second, over ten seconds, and the function to call when it makes more. */
export interface Bound {
  readonly most: number;
  readonly exceeded: (calls: number) => void;
}

export class Network implements Store {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #inner: Store;
  readonly #faults: Faults;
  readonly #post: Post;
  readonly #bound: Bound;
  #window = 0;
  #calls = 0;
  readonly #watches = new Set<CutWatch>();

  constructor(world: World, process: SimulatedProcess, inner: Store, faults: Faults, post: Post, bound: Bound) {
    this.#world = world;
    this.#process = process;
    this.#inner = inner;
    this.#faults = faults;
    this.#post = post;
    this.#bound = bound;
  }

  transaction(transaction: Transaction): Promise<TransactionResult> {
    const isRead = transaction.success.every(reads) && transaction.failure.every(reads);
    return this.#call(isRead ? 'read' : 'write', async () =>
      this.#post.opened(await this.#inner.transaction(transaction)),
    );
  }

  grantLease(ttlMs: number): Promise<Lease> {
    return this.#call('write', () => this.#inner.grantLease(ttlMs), 'grantLease');
  }

  keepLeaseAlive(id: LeaseId): Promise<Lease | null> {
    return this.#call('read', () => this.#inner.keepLeaseAlive(id), 'keepLeaseAlive');
  }

  revokeLease(id: LeaseId): Promise<void> {
    return this.#call('write', () => this.#inner.revokeLease(id), 'revokeLease');
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
    const end = (): void => watch.end();
    const watch = new CutWatch(this.#world, this.#process, this.#faults, this.#post, inner.since, () => {
      over.abort();
      // A process that opens a watch again after each cut follows with one signal.
      signal.removeEventListener('abort', end);
      this.#watches.delete(watch);
    });
    this.#watches.add(watch);
    signal.addEventListener('abort', end);
    void watch.pump(inner);
    return watch;
  }

  cutWatches(): void {
    for (const watch of this.#watches) watch.cut();
  }

  async close(): Promise<void> {
    for (const watch of this.#watches) watch.end();
  }

  /** Notices a process that calls the store in a loop without progress. */
  #countCall(): void {
    const window = Math.floor(this.#world.now / WINDOW_MS);
    if (window !== this.#window) [this.#window, this.#calls] = [window, 0];
    this.#calls += 1;
    const { most, exceeded } = this.#bound;
    if (this.#calls > (most * WINDOW_MS) / 1000) exceeded(this.#calls);
  }

  #call<T>(kind: 'read' | 'write', apply: () => Promise<T>, call?: Call): Promise<T> {
    const world = this.#world;
    const process = this.#process;
    this.#countCall();
    const fate = this.#faults.fateOf(kind, process, call);
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

/** Delays deliveries but keeps their order; a cut watch throws after the changes that were delivered. */
class CutWatch implements Watch {
  readonly since: Revision;
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #faults: Faults;
  readonly #post: Post;
  readonly #closed: () => void;
  readonly #queue: Changes[] = [];
  #failure: Error | undefined;
  #ended = false;
  #wake: (() => void) | undefined;
  #latest = 0;
  /** What is on its way, in order. Two times that are equal by intent may differ by a rounding error. */
  readonly #coming: (() => void)[] = [];

  constructor(
    world: World,
    process: SimulatedProcess,
    faults: Faults,
    post: Post,
    since: Revision,
    closed: () => void,
  ) {
    this.since = since;
    this.#post = post;
    this.#world = world;
    this.#process = process;
    this.#faults = faults;
    this.#closed = closed;
  }

  async pump(inner: AsyncIterable<Changes>): Promise<void> {
    try {
      for await (const changes of inner) {
        if (this.#ended || this.#failure !== undefined) return;
        this.#inOrder(() => this.#queue.push(this.#post.changes(changes)));
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
    this.#coming.push(arrive);
    this.#latest = Math.max(this.#latest, this.#world.now + this.#faults.watchDelayMs(this.#process));
    this.#world.schedule(
      this.#latest - this.#world.now,
      () => {
        this.#coming.shift()?.();
        this.#wake?.();
      },
      this.#process,
    );
  }
}

/**
 * Passes everything as text, so that a process never gets an object of another. Parses each text once for all receivers.
 * `isSealed` freezes the result as well, so that a process that changes it fails at once.
 */
export class Post {
  readonly #isSealed: boolean;
  readonly #opened = new WeakMap<Value, Value>();

  constructor(isSealed: boolean) {
    this.#isSealed = isSealed;
  }

  opened(result: TransactionResult): TransactionResult {
    return { ...result, results: result.results.map((each) => this.#result(each)) };
  }

  changes({ revision, changes }: Changes): Changes {
    return {
      revision,
      changes: changes.map((change) =>
        change.kind === 'put' ? { kind: 'put', pair: this.#pair(change.pair) } : change,
      ),
    };
  }

  #result(result: OperationResult): OperationResult {
    if (result.do === 'read') return { ...result, pairs: result.pairs.map((pair) => this.#pair(pair)) };
    if (result.do === 'transaction') return { ...result, results: result.results.map((each) => this.#result(each)) };
    return result;
  }

  #pair(pair: KeyValue): KeyValue {
    let value = this.#opened.get(pair.value);
    if (value === undefined) {
      value = Value.text(pair.value.text);
      // Values of tasks and of the bus may be plain words instead of documents.
      if (this.#isSealed && value.text.startsWith('{')) freeze(value.json);
      this.#opened.set(pair.value, value);
    }
    return { ...pair, value };
  }
}

/** The network as a process sees it, except that asking for the store's health always works. */
export function withHealthOf(network: Network, store: Store): Store {
  return {
    transaction: (transaction) => network.transaction(transaction),
    grantLease: (ttlMs) => network.grantLease(ttlMs),
    keepLeaseAlive: (id) => network.keepLeaseAlive(id),
    revokeLease: (id) => network.revokeLease(id),
    leaseState: (id) => network.leaseState(id),
    watch: (range, since, signal) => network.watch(range, since, signal),
    compact: (revision) => network.compact(revision),
    health: () => store.health(),
    close: () => network.close(),
  };
}

function reads(operation: Operation): boolean {
  return operation.do === 'read';
}

function freeze(document: unknown): void {
  if (typeof document !== 'object' || document === null) return;
  Object.freeze(document);
  for (const part of Object.values(document)) freeze(part);
}
