/**
 * Makes one write that survives a lost answer: read, decide, send. If no answer came, it fences off the first attempt, looks
 * for it by its id, and decides again. A repeat is harmless, because every decision compares what it rests on.
 * `docs/decisions/0016-one-way-to-write.md` says why there is only this way.
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Revision, Transaction, TransactionResult } from '../../store/index.ts';
import { type Attempt, isTrouble, Recovery } from './recovery.ts';
import type { Witness } from './witness.ts';
import { commitWitnessed, type Deed } from './witnessed-commit.ts';

export type NextStep<View, Answer> =
  /** Answers without a write. */
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** Reads again: too little is known, or it is too old to refuse anything. */
  | { readonly kind: 'look' }
  | {
      readonly kind: 'write';
      readonly transaction: Transaction;
      /** What the witness enters of it; nothing, for what changes no resource, or enters itself. */
      readonly deeds: readonly Deed[];
      readonly landed: (result: TransactionResult) => Answer | Promise<Answer>;
      /** The view that the failure branch read; undefined if it has to be read. */
      readonly overtaken?: (result: TransactionResult) => View | Promise<View> | undefined;
    }
  /** A write on the way to the answer, harmless to repeat. `then` gives the view for the next decision. */
  | {
      readonly kind: 'step';
      readonly transaction: Transaction;
      readonly deeds: readonly Deed[];
      readonly then: (result: TransactionResult) => View | undefined;
    };

export interface Intent<View, Answer> {
  /** Reads what the decision rests on. The first time, it may use what is known already. */
  read(isFirst: boolean): View | Promise<View>;
  /** Must be pure: the same view gives the same decision. `doubt`: an earlier attempt may have been applied. */
  decide(view: View, doubt: Failure | undefined): NextStep<View, Answer>;
  /** The answer of an earlier attempt, found by its id; undefined if it is not there. */
  found?(view: View): Answer | Promise<Answer> | undefined;
  /** Keeps earlier attempts from landing. Without it, the comparisons of the decision have to. */
  readonly fence?: (done: () => void, failed: (error: unknown) => void) => void;
  /** When to give up on a store that cannot be reached: a time on the monotonic clock, or the abort of a signal. */
  readonly until: number | AbortSignal;
  /** A lease that the transaction needs has ended; certainly nothing was applied. */
  gone?(view: View): void;
  /** Called when it gives up because of `error`, although an attempt may have been applied. Answers the error to throw. */
  abandoned?(doubt: Failure, error: unknown): unknown;
}

export interface WriteHost {
  readonly clock: { monotonic(): number; now(): number };
  readonly witness: Witness;
  readonly revision: Revision;
  readonly stopped: AbortSignal;
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
}

export function writeOnce<View, Answer>(host: WriteHost, intent: Intent<View, Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => new Writing(host, intent, resolve, reject).begin());
}

/** Repeats `work` until the store answers. It must only read, or be harmless to repeat. */
export function persistently<T>(
  host: WriteHost,
  until: number | AbortSignal,
  work: () => T | Promise<T>,
): Promise<Awaited<T>> {
  const decide = (answer: Awaited<T>): NextStep<Awaited<T>, Awaited<T>> => ({ kind: 'answer', answer });
  return writeOnce(host, { read: async () => await work(), decide, until });
}

/** The same; undefined if `stop` aborts first. */
export async function unlessStopped<T>(
  host: WriteHost,
  stop: AbortSignal,
  work: () => T | Promise<T>,
): Promise<Awaited<T> | undefined> {
  if (stop.aborted) return undefined;
  try {
    return await persistently(host, stop, work);
  } catch (error) {
    if (!stop.aborted || !isTrouble(error)) throw error;
    return undefined;
  }
}

export function send(host: Pick<WriteHost, 'commit'>, transaction: Transaction): Promise<TransactionResult> {
  return new Promise((resolve, reject) => host.commit(transaction, resolve, reject));
}

/** The same for a write that the witness enters. */
export function sendWitnessed(
  host: WriteHost,
  transaction: Transaction,
  deeds: readonly Deed[],
): Promise<TransactionResult> {
  return new Promise((resolve, reject) => commitWitnessed(host, transaction, deeds, resolve, reject));
}

class Writing<View, Answer> implements Attempt {
  readonly keepsAlive = true;
  readonly #host: WriteHost;
  readonly #intent: Intent<View, Answer>;
  readonly #resolve: (answer: Answer | Promise<Answer>) => void;
  readonly #reject: (error: unknown) => void;
  readonly #recovery: Recovery;
  #doubt: Failure | undefined;

  constructor(
    host: WriteHost,
    intent: Intent<View, Answer>,
    resolve: (answer: Answer | Promise<Answer>) => void,
    reject: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#intent = intent;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#recovery = new Recovery(host);
  }

  begin(): void {
    this.#read(true, false);
  }

  look(afterDoubt: boolean): void {
    this.#read(false, afterDoubt);
  }

  #read(isFirst: boolean, afterDoubt: boolean): void {
    Promise.resolve()
      .then(() => this.#intent.read(isFirst))
      .then(
        (view) => {
          this.#recovery.read();
          this.#decide(view, afterDoubt);
        },
        (error: unknown) => this.#recovery.unread(error, this),
      );
  }

  #decide(view: View, afterDoubt = false): void {
    try {
      const found = this.#doubt === undefined ? undefined : this.#intent.found?.(view);
      if (found !== undefined) return this.#resolve(found);
      // The attempt was fenced off and is not there, so it never will be.
      if (afterDoubt && this.#intent.fence !== undefined) this.#doubt = undefined;
      const decision = this.#intent.decide(view, this.#doubt);
      if (decision.kind === 'answer') return this.#resolve(decision.answer);
      if (decision.kind === 'look') return this.look(false);
      commitWitnessed(
        this.#host,
        decision.transaction,
        decision.deeds,
        (result) => this.#answered(result, decision),
        (error) => {
          if (Failure.is(error, 'not-found')) this.#intent.gone?.(view);
          if (decision.kind === 'write') this.#recovery.failed(error, this);
          else this.#recovery.unread(error, this);
        },
      );
    } catch (error) {
      this.#reject(error);
    }
  }

  #answered(result: TransactionResult, sent: Extract<NextStep<View, Answer>, { kind: 'write' | 'step' }>): void {
    this.#recovery.answered();
    try {
      if (sent.kind === 'write' && result.succeeded) return this.#resolve(sent.landed(result));
      const view = sent.kind === 'write' ? sent.overtaken?.(result) : sent.then(result);
      if (view === undefined) this.look(false);
      else if (view instanceof Promise) view.then((seen: View) => this.#decide(seen), this.failed);
      else this.#decide(view);
    } catch (error) {
      this.#reject(error);
    }
  }

  doubted(error: Failure): void {
    this.#doubt = error;
  }

  get cut(): AbortSignal | undefined {
    const { until } = this.#intent;
    return typeof until === 'number' ? undefined : until;
  }

  fence(done: () => void, failed: (error: unknown) => void): void {
    if (this.#intent.fence === undefined) done();
    else this.#intent.fence(done, failed);
  }

  isWanted(error: unknown): boolean {
    const { until } = this.#intent;
    const isOver = typeof until === 'number' ? this.#host.clock.monotonic() >= until : until.aborted;
    if (!isOver && !this.#host.stopped.aborted) return true;
    this.failed(error);
    return false;
  }

  /** If the last attempt was certainly not applied, an earlier one without an answer still may have been. */
  readonly failed = (error: unknown): void => {
    const doubt = this.#doubt;
    if (doubt === undefined) return this.#reject(error);
    this.#reject(this.#intent.abandoned?.(doubt, error) ?? doubt);
  };
}
