/** The claim that a worker holds while it does a task, and the ways to end a claim: complete, fail, release, force. */
import {
  claimEntryOf,
  type ClaimName,
  decideEnd,
  documentProblem,
  type Ending,
  type Json,
  LARGEST_DATA_BYTES,
  type LossReason,
  type NotOwner,
  notOwner,
  requestProblem,
  type Task,
  type TaskBookkeeping,
  type Token,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Operation, Revision } from '../../store/index.ts';
import type { Held } from '../holds/lookout.ts';
import { encode, type Letter, mailboxKey, processOf } from '../layout.ts';
import { flag, valuesProblem } from '../options.ts';
import { ownCopy } from '../own-copy.ts';
import { HoldLost } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Trace } from '../tracer.ts';
import { persistently, writeOnce } from '../write/write-once.ts';
import { BackoffLease } from './backoff-lease.ts';
import type { Claimed } from './claiming.ts';
import { taskDeeds } from './witnessed.ts';
import { taskResource } from './keys.ts';
import { readTask, taskIn } from './reading.ts';
import { endTransaction } from './writing.ts';

/** What `release` answers. */
export type TaskReleaseOutcome = { readonly kind: 'released' } | NotOwner;
/** What `complete` answers. */
export type CompleteOutcome = { readonly kind: 'completed' } | NotOwner;
/** What `fail` answers. */
export type FailOutcome =
  | { readonly kind: 'failed'; readonly attempts: number }
  /** It is pending again, and can be claimed after `backoffMs`. */
  | { readonly kind: 'retried'; readonly attempts: number; readonly retriesLeft: number; readonly backoffMs: number }
  | NotOwner;
export type EndOutcome = TaskReleaseOutcome | CompleteOutcome | FailOutcome;

type LossNotice = { readonly why: LossReason; readonly by?: string; readonly reason?: string };

/** Repeats `end`, which ends the claim, until the store answers, the claim is lost, or `stop` aborts. */
export let endPersistently: (
  claim: TaskClaim,
  stop: AbortSignal,
  end: () => Promise<EndOutcome>,
) => Promise<EndOutcome>;

/** An attached claim: it lasts as long as the session of this process, which releases it when it closes. */
export class TaskClaim<Data = Json, Result = Json> implements AsyncDisposable {
  /** The id of the task. */
  readonly id: string;
  /** The token of the claim: larger for every later one of this task. */
  readonly token: Token;
  /** The name of the worker. */
  readonly holder: string;
  /** The data of the task. */
  readonly data: Data;
  /** One for the first worker that tries, two for the next. */
  readonly attempt: number;
  readonly #process: string;
  readonly #runtime: Runtime;
  readonly #task: Task;
  readonly #claim: string;
  readonly #wrote: (revision: Revision) => void;
  readonly #trace: Trace | undefined;
  #controller: AbortController | undefined;
  #lost: HoldLost | undefined;
  /** Set once the worker ends the claim; what happens after that is not a loss. */
  #ending: Promise<EndOutcome> | undefined;
  /** A loss that arrived while the end was being written. It counts if the outcome of that write stays unknown. */
  #heard: LossNotice | undefined;

  static {
    // No method: a claim shows its users only what they may call.
    endPersistently = (claim, stop, end) => persistently(claim.#runtime, AbortSignal.any([claim.signal, stop]), end);
  }

  /** @internal `wrote`: gets the revision of each write of this claim. */
  constructor(
    runtime: Runtime,
    { task, token }: Claimed,
    process: string,
    wrote: (revision: Revision) => void,
    trace?: Trace,
  ) {
    this.#runtime = runtime;
    this.#trace = trace;
    this.#wrote = wrote;
    this.#task = task;
    this.#claim = task.bookkeeping?.entry.claim?.id as string;
    this.id = task.id;
    this.token = token;
    this.holder = task.owner?.holder as string;
    this.data = ownCopy(task.data?.json as Json) as Data;
    this.attempt = task.bookkeeping?.entry.attempts as number;
    this.#process = process;
    runtime.holds.set(this.#claim, this.#held());
  }

  /** The claim as the runtime keeps it. */
  #held(): Held {
    const isValid = (): boolean => this.isValid;
    return {
      resource: this.resource,
      process: this.#process,
      holder: this.holder,
      token: this.token,
      get isValid() {
        return isValid();
      },
      lose: (loss) => this.#lose(loss),
      surrender: () => this.#surrender(),
    };
  }

  /** `task/42`. */
  get resource(): string {
    return taskResource(this.id);
  }

  /** The id of this claim: the next claim of the task has another one. */
  get claimId(): string {
    return this.#claim;
  }

  /** Aborts with a `HoldLost` if the claim ends without its worker ending it, before another worker can have the task. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#lost !== undefined) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  /** Whether the task is still ours, by the clock at the moment of the call. */
  get isValid(): boolean {
    if (this.#lost !== undefined || this.#ending !== undefined) return false;
    return this.#runtime.session?.id === this.#process && this.#lost === undefined;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.#lost;
  }

  /** Throws `HoldLost` if the task is not ours any more. Call it before a step that cannot be undone. */
  check(): void {
    if (!this.isValid) throw this.#lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
  }

  /** Completes the task: no worker can claim it again. Answers `not-owner` and changes nothing if it is not ours any more. */
  complete(result?: Result): Promise<CompleteOutcome> {
    const problem = result === undefined ? undefined : documentProblem(result, 'result', LARGEST_DATA_BYTES);
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    return this.#end({ how: 'complete', ...(result !== undefined && { result: ownCopy(result as Json) }) });
  }

  /** Reports failure: the task is pending again while it has retries left, else failed. With `retry: false`, failed at once. */
  fail(reason: string, options: { readonly retry?: boolean } = {}): Promise<FailOutcome> {
    const problem = requestProblem({ reason }, ['reason']) ?? valuesProblem(options, { retry: flag });
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    return this.#end({ how: 'fail', reason, retry: options.retry ?? true });
  }

  /** Gives the task back for another worker; this counts as no attempt. Never throws for a claim that was lost. */
  release(): Promise<TaskReleaseOutcome> {
    return this.#end({ how: 'release' });
  }

  /** What is shown when a claim is printed. */
  toJSON(): { task: string; holder: string; token: Token; isValid: boolean } {
    const { id: task, holder, token, isValid } = this;
    return { task, holder, token, isValid };
  }

  /** @internal */
  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }

  /** Releases the claim, unless its worker has ended it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ending !== undefined) await this.#ending.catch(() => undefined);
    if (this.#ending === undefined && this.#lost === undefined) await this.release();
  }

  #lose(loss: LossNotice): void {
    if (this.#lost !== undefined) return;
    this.#runtime.holds.delete(this.#claim);
    if (this.#ending !== undefined) {
      this.#heard = loss;
      return;
    }
    this.#lost = new HoldLost(this.resource, loss);
    if (!this.#runtime.isClosed) this.#runtime.measures.lost(loss.why);
    this.#trace?.end(loss.why, true);
    this.#controller?.abort(this.#lost);
  }

  async #surrender(): Promise<void> {
    if (this.#ending !== undefined) return void (await this.#ending.catch(() => undefined));
    this.#lose({ why: 'released-elsewhere' });
    await this.#send({ how: 'release' }).catch(() => undefined);
  }

  /** Ends the claim once. An end that did not reach the store may be tried again. */
  #end<Outcome extends EndOutcome>(ending: Ending): Promise<Outcome> {
    if (this.#ending !== undefined) return this.#ending.then((outcome) => sameEnd(outcome, ending) as Outcome);
    const sent = this.#send(ending);
    this.#ending = sent;
    sent.then(
      ({ kind }) => {
        this.#runtime.holds.delete(this.#claim);
        this.#trace?.end(kind, kind === 'failed' || kind === 'retried' || kind === 'not-owner');
      },
      () => {
        this.#ending = undefined;
        if (this.#heard !== undefined) this.#lose(this.#heard);
      },
    );
    return sent as Promise<Outcome>;
  }

  #send(ending: Ending): Promise<EndOutcome> {
    const { id, token, holder } = this;
    // Every end of this claim uses the same request id, so that a second call finds what the first one did.
    return endClaim(this.#runtime, id, { token, holder }, ending, this.#task, this.#wrote, this.#claim);
  }
}

/** A second end of the same kind gets the first one's outcome. One of another kind gets `not-owner`: the claim has ended. */
function sameEnd(outcome: EndOutcome, { how }: Ending): EndOutcome {
  const kinds: Readonly<Record<Ending['how'], readonly string[]>> = {
    release: ['released'],
    complete: ['completed'],
    fail: ['failed', 'retried'],
    force: [],
  };
  if (outcome.kind === 'not-owner' || kinds[how].includes(outcome.kind)) return outcome;
  const status = outcome.kind === 'completed' ? 'complete' : outcome.kind === 'failed' ? 'failed' : 'pending';
  return { kind: 'not-owner', owner: undefined, status };
}

/**
 * Ends a claim, fenced by its token. `known`: the task as its owner knows it, which saves a read. `request`: a caller that
 * got no answer may repeat the call with the same id, and gets the outcome of the first one.
 */
export async function endClaim(
  runtime: Runtime,
  id: string,
  claim: ClaimName,
  ending: Ending,
  known: Task | undefined,
  wrote: (revision: Revision) => void,
  request = runtime.options.newId(),
): Promise<EndOutcome> {
  let sentFor: Task | undefined;
  const backoff = new BackoffLease(runtime);
  const ended = writeOnce<{ readonly task: Task; readonly isFresh: boolean }, EndOutcome>(runtime, {
    read: async (isFirst) => {
      const isKnown = isFirst && known !== undefined;
      const task = isKnown ? known : await readTask(runtime, id);
      const decided = decideEnd(task, claim, ending, { request, now: runtime.clock.now() });
      await backoff.adjust(decided.kind === 'write' ? decided.backoffMs : undefined);
      return { task, isFresh: !isKnown };
    },
    decide: ({ task, isFresh }, doubt) => {
      const ended = task.bookkeeping?.entry.ended;
      // An earlier call with the same id has ended it.
      if (ended?.request === request) {
        return { kind: 'answer', answer: outcomeOf(task, task.bookkeeping?.entry as TaskBookkeeping) };
      }
      const decided = decideEnd(task, claim, ending, { request, now: runtime.clock.now() });
      if (decided.kind === 'write') {
        if (decided.backoffMs !== backoff.ms) return { kind: 'look' };
        sentFor = task;
        backoff.isSent = true;
        return {
          kind: 'write',
          transaction: endTransaction(task, decided, lettersTo(runtime, task, ending), backoff.id),
          deeds: taskDeeds(task, {
            actor: ending.how === 'force' ? ending.by : (task.owner?.holder ?? ''),
            command: ending.how,
            outcome: decided.bookkeeping.ended?.how ?? 'released',
            events: decided.bookkeeping.events,
            detail: { token: task.owner?.token ?? 0 },
            reason: 'reason' in ending ? ending.reason : undefined,
            data: 'result' in ending ? ending.result : undefined,
          }),
          landed: async ({ revision }) => {
            wrote(revision);
            await cleanUp(runtime, task, ending);
            return outcomeOf(task, decided.bookkeeping);
          },
          overtaken: ({ results }) => {
            // This attempt did not land; an earlier one without an answer may have.
            if (doubt === undefined) backoff.isSent = false;
            return { task: taskIn(id, results), isFresh: true };
          },
        };
      }
      if (!isFresh) return { kind: 'look' };
      // A later claim has ended since, and overwritten the note of whether ours landed.
      const sentToken = sentFor?.owner?.token ?? Number.POSITIVE_INFINITY;
      if (doubt !== undefined && (ended?.token ?? 0) > sentToken) throw doubt;
      return { kind: 'answer', answer: notOwner(task) };
    },
    found: ({ task }) => {
      const { entry } = task.bookkeeping ?? {};
      if (sentFor === undefined || entry?.ended?.request !== request) return undefined;
      return cleanUp(runtime, sentFor, ending).then(() => outcomeOf(task, entry));
    },
    // Needs no fence: the write compares the owner key, and no later owner key has the same token.
    until: runtime.giveUpAt(),
    gone: () => backoff.forget(),
  });
  try {
    return await ended;
  } catch (error) {
    // The store has certainly refused it, so no task rests on the lease.
    if (!Failure.is(error, 'outcome-unknown')) backoff.isSent = false;
    throw error;
  } finally {
    await backoff.drop();
  }
}

function outcomeOf({ data }: Task, entry: TaskBookkeeping): EndOutcome {
  const { ended, attempts, failures = 0, retryAt, endedAt = 0 } = entry;
  switch (ended?.how) {
    case 'completed':
      return { kind: 'completed' };
    case 'failed':
      return { kind: 'failed', attempts };
    case 'retried':
      return {
        kind: 'retried',
        attempts,
        retriesLeft: Math.max(0, (data?.terms.retries ?? 0) + 1 - failures),
        backoffMs: retryAt === undefined ? 0 : retryAt - endedAt,
      };
    case 'released':
    case 'forced':
    case undefined:
      return { kind: 'released' };
  }
}

/** A letter to the process whose worker has the task: it has lost the claim. */
function lettersTo(runtime: Runtime, task: Task, ending: Ending): readonly Operation[] {
  const { owner } = task;
  const claim = claimEntryOf(task);
  if (claim === undefined || claim.detached === true || owner === undefined || owner.lease === null) return [];
  const process = processOf(claim.id);
  if (process === runtime.sender.id) return [];
  const key = mailboxKey(process);
  const loss = { id: claim.id, token: owner.token, ...lossOf(ending) };
  const letter: Letter = { answers: [], losses: [loss] };
  return [
    {
      do: 'transaction',
      compare: [{ key, target: 'version', is: '>', than: 0 }],
      success: [{ do: 'put', key, value: encode(letter), lease: 'keep' }],
      failure: [],
    },
  ];
}

function lossOf(ending: Ending): Pick<Letter['losses'][number], 'why' | 'by' | 'reason'> {
  if (ending.how !== 'force') return { why: 'released-elsewhere' };
  return { why: 'forced', by: ending.by, reason: ending.reason };
}

async function cleanUp(runtime: Runtime, task: Task, ending: Ending): Promise<void> {
  const { owner } = task;
  const claim = claimEntryOf(task);
  if (claim === undefined || owner === undefined) return;
  if (claim.detached !== true) {
    // Also remembers the loss of a claim whose answer is still on its way to this process, which gets no letter of its own.
    runtime.lost({ id: claim.id, token: owner.token, ...lossOf(ending) });
  } else if (owner.lease !== null) {
    // The lease of a detached claim keeps nothing else.
    await runtime.store.revokeLease(owner.lease).catch(() => undefined);
  }
}
