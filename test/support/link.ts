/**
 * What lies between one process and the store: passes everything on until a test says otherwise. With `atOnce` it
 * answers as the memory engine does, in the call itself; without it, as a store elsewhere does. Beyond what the
 * `faultyStore` of the testing kit can do, it fails calls that are answered at once, applies late what was given up
 * on, and singles out a transaction by what it changes.
 */
import { Failure } from 'signalbox';
import type {
  Changes,
  Health,
  KeyRange,
  Lease,
  LeaseId,
  LeaseState,
  Revision,
  Store,
  Transaction,
  TransactionResult,
  Watch,
} from 'signalbox/store';

type Call =
  | 'transaction'
  | 'grantLease'
  | 'keepLeaseAlive'
  | 'revokeLease'
  | 'leaseState'
  | 'compact'
  | 'health'
  | 'watch';

/**
 * `refused`: certainly not applied. `lost`: not applied, but nobody knows. `unanswered`: applied, but nobody knows.
 * `late`: nobody knows, and it is applied when the test says so. `held`: applied, and answered when the test says so.
 * `delayed`: on its way until the test says so, and then applied and answered. `severed`: unanswered, and from then on
 * nothing gets through. `cut`: lost, and from then on nothing gets through.
 */
export type Trouble = 'refused' | 'lost' | 'unanswered' | 'late' | 'held' | 'delayed' | 'severed' | 'cut';

interface Scripted {
  readonly call: Call;
  readonly trouble: Trouble;
  readonly matches: (transaction: Transaction) => boolean;
}

const NO_OPERATIONS: Transaction = { compare: [], success: [], failure: [] };

export class Link implements Store {
  readonly #inner: Store;
  readonly #scripted: Scripted[] = [];
  readonly #watches = new Set<LinkWatch>();
  readonly #late: (() => void)[] = [];
  readonly #held: (() => void)[] = [];
  readonly #delayed: (() => void)[] = [];
  #down: 'refusing' | 'silent' | undefined;
  #newsHeld = false;
  #forbidden: (transaction: Transaction) => boolean = () => false;
  #refusal = forbidden;
  readonly transactionNow?: (transaction: Transaction) => TransactionResult;
  /** Plants a bug: what is sent instead. */
  spoil: (transaction: Transaction) => Transaction = (transaction) => transaction;
  /** Everything that was asked, in order. */
  readonly asked: { readonly call: Call; readonly transaction: Transaction }[] = [];

  constructor(inner: Store, atOnce: boolean) {
    this.#inner = inner;
    if (atOnce) this.transactionNow = (transaction) => this.#now(transaction);
  }

  /** The next such call meets with this trouble. */
  next(call: Call, trouble: Trouble, matches: (transaction: Transaction) => boolean = () => true): void {
    this.#scripted.push({ call, trouble, matches });
  }

  /** From now on such transactions are refused for good: by default, because this process may not write them. */
  forbid(matches: (transaction: Transaction) => boolean, refusal: () => Failure = forbidden): void {
    this.#forbidden = matches;
    this.#refusal = refusal;
  }

  /** From now on nothing gets through: every call is refused, or none is ever answered. */
  cutOff(how: 'refusing' | 'silent'): void {
    this.#down = how;
    this.cutWatches();
  }

  reconnect(): void {
    this.#down = undefined;
  }

  cutWatches(): void {
    for (const watch of [...this.#watches]) watch.cut();
  }

  /** What watches tell is on its way for as long as the test says. */
  holdNews(): void {
    this.#newsHeld = true;
  }

  deliverNews(): void {
    this.#newsHeld = false;
    for (const watch of this.#watches) watch.wake();
  }

  applyLate(): void {
    for (const apply of this.#late.splice(0)) apply();
  }

  answerHeld(): void {
    for (const answer of this.#held.splice(0)) answer();
  }

  deliverDelayed(): void {
    for (const deliver of this.#delayed.splice(0)) deliver();
  }

  transaction(transaction: Transaction): Promise<TransactionResult> {
    return this.#call('transaction', () => this.#inner.transaction(this.spoil(transaction)), transaction);
  }

  grantLease(ttlMs: number): Promise<Lease> {
    return this.#call('grantLease', () => this.#inner.grantLease(ttlMs));
  }

  keepLeaseAlive(id: LeaseId): Promise<Lease | null> {
    return this.#call('keepLeaseAlive', () => this.#inner.keepLeaseAlive(id));
  }

  revokeLease(id: LeaseId): Promise<void> {
    return this.#call('revokeLease', () => this.#inner.revokeLease(id));
  }

  leaseState(id: LeaseId): Promise<LeaseState | null> {
    return this.#call('leaseState', () => this.#inner.leaseState(id));
  }

  compact(revision: Revision): Promise<void> {
    return this.#call('compact', () => this.#inner.compact(revision));
  }

  health(): Promise<Health> {
    return this.#call('health', () => this.#inner.health());
  }

  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal): Promise<Watch> {
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    const inner = await this.#call('watch', () => this.#inner.watch(range, since, both));
    const watch: LinkWatch = new LinkWatch(
      inner,
      () => this.#newsHeld,
      () => {
        over.abort();
        this.#watches.delete(watch);
      },
    );
    this.#watches.add(watch);
    signal.addEventListener('abort', () => watch.end());
    return watch;
  }

  /** The engine is everybody's, so it stays open. */
  async close(): Promise<void> {
    for (const watch of [...this.#watches]) watch.end();
  }

  #troubleOf(call: Call, transaction: Transaction): Trouble | undefined {
    this.asked.push({ call, transaction });
    const place = this.#scripted.findIndex((scripted) => scripted.call === call && scripted.matches(transaction));
    return place < 0 ? undefined : this.#scripted.splice(place, 1)[0]?.trouble;
  }

  #now(transaction: Transaction): TransactionResult {
    const trouble = this.#troubleOf('transaction', transaction);
    const apply = (): TransactionResult => {
      const { transactionNow } = this.#inner;
      if (transactionNow === undefined) throw new TypeError('the engine does not answer at once');
      return transactionNow.call(this.#inner, transaction);
    };
    if (this.#down !== undefined || trouble === 'refused') throw notReached();
    if (this.#forbidden(transaction)) throw this.#refusal();
    if (trouble === undefined || trouble === 'held') return apply();
    if (trouble === 'unanswered' || trouble === 'severed') apply();
    if (trouble === 'severed' || trouble === 'cut') this.cutOff('refusing');
    if (trouble === 'late') this.#late.push(apply);
    throw noAnswer();
  }

  #call<T>(call: Call, apply: () => Promise<T>, transaction = NO_OPERATIONS): Promise<T> {
    const trouble = this.#troubleOf(call, transaction);
    if (this.#down === 'silent') return new Promise<T>(() => {});
    if (this.#down === 'refusing' || trouble === 'refused') return Promise.reject(notReached());
    if (this.#forbidden(transaction)) return Promise.reject(this.#refusal());
    switch (trouble) {
      case undefined:
        return apply();
      case 'lost':
        return Promise.reject(noAnswer());
      case 'unanswered':
        return apply().then(() => Promise.reject(noAnswer()));
      case 'severed':
        return apply().then(() => {
          this.cutOff('refusing');
          return Promise.reject(noAnswer());
        });
      case 'cut':
        this.cutOff('refusing');
        return Promise.reject(noAnswer());
      case 'late':
        this.#late.push(() => void apply().catch(() => undefined));
        return Promise.reject(noAnswer());
      case 'delayed':
        return new Promise<T>((resolve, reject) => this.#delayed.push(() => void apply().then(resolve, reject)));
      case 'held': {
        const applied = apply();
        return new Promise<T>((resolve) => this.#held.push(() => resolve(applied)));
      }
    }
  }
}

class LinkWatch implements Watch {
  readonly since: Revision;
  readonly #isHeld: () => boolean;
  readonly #closed: () => void;
  readonly #queue: Changes[] = [];
  #failure: Error | undefined;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(inner: Watch, isHeld: () => boolean, closed: () => void) {
    this.since = inner.since;
    this.#isHeld = isHeld;
    this.#closed = closed;
    void this.#pump(inner);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Changes> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const changes = this.#isHeld() ? undefined : this.#queue.shift();
      if (changes !== undefined) yield changes;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  cut(): void {
    this.#failure ??= new Failure('unavailable', 'the watch was cut');
    this.#closed();
    this.wake();
  }

  end(): void {
    this.#ended = true;
    this.#closed();
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  async #pump(inner: Watch): Promise<void> {
    try {
      for await (const changes of inner) {
        this.#queue.push(changes);
        this.wake();
      }
    } catch (error) {
      this.#failure ??= error as Error;
      this.wake();
    }
  }
}

function notReached(): Failure {
  return new Failure('unavailable', 'the store was not reached');
}

function noAnswer(): Failure {
  return new Failure('outcome-unknown', 'no answer came');
}

function forbidden(): Failure {
  return new Failure('forbidden', 'this process may not write the store');
}

// Which transaction: told by what it would change.

export const changesRecord = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.startsWith('r/'));

export const queuesTicket = ({ success, failure }: Transaction): boolean =>
  [...success, ...failure].some((operation) => operation.do === 'put' && operation.key.startsWith('q/'));
