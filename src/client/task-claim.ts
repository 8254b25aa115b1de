/**
 * Claims over HTTP: each renews itself until its worker ends it.
 *
 *     claimed ── renewed ── … ── complete, fail, release ── the server answers: ended
 *                                   └── no answer: renewed and sent again, for as long as the claim is valid
 */
import type { Json, Token } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { HoldLost } from '../runtime/refusal.ts';
import type { CompleteOutcome, EndOutcome, FailOutcome, TaskReleaseOutcome } from '../runtime/tasks/claim.ts';
import type { DetachedClaim } from '../runtime/tasks/dispatch.ts';
import { backoffMs } from '../runtime/write/backoff.ts';
import type { Instant } from './clock.ts';
import { Kept, type Renewal } from './kept.ts';
import { ServerRefusal } from './problem.ts';
import { newKey, type Requests, type SameRequest } from './requests.ts';
import type { Connected } from './resource.ts';
import type { RemoteTasks } from './tasks.ts';

/** A claim in the server's answer. */
export interface ClaimAnswer extends Omit<DetachedClaim, 'id'> {
  readonly task: string;
}

/** A claim that renews itself until its worker ends it. */
export class RemoteClaim<Data = Json, Result = Json> implements AsyncDisposable {
  /** The id of the task. */
  readonly id: string;
  /** `task/42`. */
  readonly resource: string;
  /** The token of the claim; each later claim of this task has a larger one. */
  readonly token: Token;
  /** The name of the worker. */
  readonly holder: string;
  /** The data of the task. */
  readonly data: Data;
  /** One for the first worker that tries, two for the next. */
  readonly attempt: number;
  readonly #requests: Requests;
  readonly #tasks: RemoteTasks;
  readonly #kept: Kept;
  #ended: Promise<EndOutcome> | undefined;
  /** The end that was sent last, with its content: if it is wanted again, it is the same request. */
  #sent: { readonly content: string; readonly same: SameRequest } | undefined;
  /** Why nobody knows whether an end that was sent has been carried out. */
  #doubt: Failure | undefined;
  /** No further request can tell what became of the end. */
  #isDoubtFinal = false;
  #hurry: AbortSignal | undefined;

  /** @internal */
  constructor({ requests }: Connected, tasks: RemoteTasks, answer: ClaimAnswer, since: Instant) {
    this.id = answer.task;
    this.resource = `task/${answer.task}`;
    this.token = answer.token;
    this.holder = answer.holder;
    this.data = answer.data as Data;
    this.attempt = answer.attempt;
    this.#requests = requests;
    this.#tasks = tasks;
    this.#kept = new Kept(requests, {
      ...{ resource: this.resource, ttlMs: answer.ttlMs, since },
      renew: (retryMs) => this.#renewed(retryMs),
    });
  }

  /** Identifies this claim among all claims of the task. */
  get claimId(): string {
    return `token:${this.token}`;
  }

  /**
   * Aborts with a `HoldLost` if the claim ends and its worker did not end it. If it was taken by force, it aborts at the next
   * renewal.
   */
  get signal(): AbortSignal {
    return this.#kept.signal;
  }

  /** Whether this worker still has the task, by the clock at the moment of the call. */
  get isValid(): boolean {
    return this.#kept.isValid;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.#kept.lost;
  }

  /** Throws `HoldLost` if this worker has lost the task. Call it before a step that cannot be undone. */
  check(): void {
    this.#kept.check();
  }

  /** Completes the task: no worker can claim it again. Answers `not-owner` and changes nothing if this worker has lost it. */
  complete(result?: Result): Promise<CompleteOutcome> {
    return this.#end('complete', { result });
  }

  /** Reports failure: the task is pending again while it has retries left, else failed. With `retry: false`, failed at once. */
  fail(reason: string, options: { readonly retry?: boolean } = {}): Promise<FailOutcome> {
    return this.#end('fail', { ...options, reason });
  }

  /** Gives the task back for another worker; this does not count as an attempt. */
  release(): Promise<TaskReleaseOutcome> {
    return this.#end('release', {});
  }

  /** The fields that a printed claim shows. */
  toJSON(): { task: string; holder: string; token: Token; isValid: boolean } {
    const { id: task, holder, token, isValid } = this;
    return { task, holder, token, isValid };
  }

  /** Releases it at the end of a block with `await using`, unless it was completed or failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ended?.catch(() => undefined);
    if (this.#ended !== undefined || this.lost !== undefined) return;
    await this.release().catch((error: unknown) => {
      // The call that ended the claim has thrown the doubt already.
      if (error !== this.#doubt) throw error;
    });
  }

  /** @internal Once the signal has aborted, an end is repeated only for the usual time of a request. */
  hurryAfter(signal: AbortSignal): void {
    this.#hurry = signal;
  }

  async #renewed(retryMs: number): Promise<Renewal> {
    const outcome = await this.#tasks.renewWithin(this.id, { holder: this.holder, token: this.token }, retryMs);
    if ('ttlMs' in outcome) return { ttlMs: outcome.ttlMs };
    // The server may have ended the claim as its worker wanted, and the answer to that got lost.
    if (this.#ended !== undefined) throw new Error('the claim is being ended');
    return { why: outcome.kind === 'lost' ? 'expired' : 'reclaimed' };
  }

  /** Renews the claim until the answer arrives, which may take long. An end that did not reach the store may be tried again. */
  #end<T extends EndOutcome>(what: string, more: object): Promise<T> {
    if (this.#ended === undefined) {
      const ended = this.#persistently(() => this.#send<T>(what, { holder: this.holder, token: this.token, ...more }));
      this.#ended = ended;
      ended.then(
        () => this.#kept.end(),
        () => (this.#ended = undefined),
      );
    }
    return this.#ended as Promise<T>;
  }

  /** Repeats an end for as long as the claim is valid: if it is not written, the task is done a second time. */
  async #persistently<T>(end: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await end();
      } catch (error) {
        const isFinal = !mayPass(error) || this.#isDoubtFinal;
        if (isFinal || !this.isValid || this.#hurry?.aborted === true) throw error;
        await this.#requests.pause(backoffMs(failures), this.signal);
      }
    }
  }

  async #send<T extends EndOutcome>(what: string, body: object): Promise<T> {
    const content = JSON.stringify([what, body]);
    if (this.#sent?.content !== content) this.#sent = { content, same: { key: newKey() } };
    try {
      const outcome = await this.#tasks.endWith<T>(this.id, what, body, this.#sent.same);
      // It may be the earlier request that has ended the claim.
      if (outcome.kind === 'not-owner' && this.#doubt !== undefined) {
        this.#isDoubtFinal = true;
        throw this.#doubt;
      }
      return outcome;
    } catch (error) {
      if (isDoubt(error)) this.#doubt = error;
      throw error;
    }
  }
}

/** Whether the server says itself that it does not know what became of the request. */
function isDoubt(error: unknown): error is ServerRefusal {
  return error instanceof ServerRefusal && error.problem.code === 'outcome-unknown';
}

/** Whether the server, or a proxy before it, may answer the same request otherwise a little later. */
function mayPass(error: unknown): boolean {
  // In doubt because the server refused the repeat, such as one that is bound to a token that was replaced.
  if (error instanceof Failure && error.cause instanceof ServerRefusal) return mayPass(error.cause);
  if (!(error instanceof ServerRefusal))
    return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
  const { code, status } = error.problem;
  return code === 'key-in-use' || [429, 502, 503, 504].includes(status);
}
