/** What a worker holds while it does a task: its data, its token, and the signal that tells when it is not its own any more. */
import type { Ending, Json, LossReason, Task, Token } from '../../core/index.ts';
import { documentProblem, LARGEST_DATA_BYTES, requestProblem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Revision } from '../../store/index.ts';
import { flag, valuesProblem } from '../options.ts';
import { ownCopy } from '../own-copy.ts';
import { HoldLost } from '../refusal.ts';
import type { Held } from '../holds/holdings.ts';
import type { Runtime } from '../runtime.ts';
import type { Claimed } from './claiming.ts';
import {
  type CompleteOutcome,
  endClaim,
  type EndOutcome,
  type FailOutcome,
  type TaskReleaseOutcome,
} from './ending.ts';
import { taskResource } from './keys.ts';

/** An attached claim: it lasts as long as the session of this process, and is released with it. */
export class TaskClaim implements Held, AsyncDisposable {
  /** Of the task. */
  readonly id: string;
  readonly token: Token;
  readonly holder: string;
  /** What is to be done. */
  readonly data: Json;
  /** One for the first worker that tries, two for the next. */
  readonly attempt: number;
  readonly process: string;
  readonly #runtime: Runtime;
  readonly #task: Task;
  readonly #claim: string;
  readonly #wrote: (revision: Revision) => void;
  #controller: AbortController | undefined;
  #lost: HoldLost | undefined;
  /** How it was ended by its worker; what comes after that is not a loss. */
  #ending: Promise<EndOutcome> | undefined;
  /** What was heard while that was under way: a loss after all, should nobody know what became of it. */
  #heard: Parameters<TaskClaim['lose']>[0] | undefined;

  /** `wrote`: told of what it writes. */
  constructor(runtime: Runtime, { task, token }: Claimed, process: string, wrote: (revision: Revision) => void) {
    this.#runtime = runtime;
    this.#wrote = wrote;
    this.#task = task;
    this.#claim = task.bookkeeping?.entry.claim?.id as string;
    this.id = task.id;
    this.token = token;
    this.holder = task.owner?.holder as string;
    this.data = ownCopy(task.data?.json as Json);
    this.attempt = task.bookkeeping?.entry.attempts as number;
    this.process = process;
    runtime.holdings.holds.set(this.#claim, this);
  }

  get resource(): string {
    return taskResource(this.id);
  }

  /** Aborts with a `HoldLost` when the claim ends without its worker having said so; before anyone else can have the task. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#lost !== undefined) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  /** Whether the task is still ours, by the clock of this very moment. */
  get isValid(): boolean {
    if (this.#lost !== undefined || this.#ending !== undefined) return false;
    return this.#runtime.session?.id === this.process && this.#lost === undefined;
  }

  get lost(): HoldLost | undefined {
    return this.#lost;
  }

  /** Throws `HoldLost` if the task is not ours any more: to be asked before a step that cannot be undone. */
  check(): void {
    if (!this.isValid) throw this.#lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
  }

  /** Done: nobody can claim it again. `not-owner`, and nothing changed, if it is not ours any more. */
  complete(result?: Json): Promise<CompleteOutcome> {
    const problem = result === undefined ? undefined : documentProblem(result, 'result', LARGEST_DATA_BYTES);
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    return this.#end({ how: 'complete', ...(result !== undefined && { result: ownCopy(result) }) });
  }

  /** It could not be done: pending again while there are retries left, otherwise failed. Without `retry`, failed at once. */
  fail(reason: string, options: { readonly retry?: boolean } = {}): Promise<FailOutcome> {
    const problem = requestProblem({ reason }, ['reason']) ?? valuesProblem(options, { retry: flag });
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    return this.#end({ how: 'fail', reason, retry: options.retry ?? true });
  }

  /** Given back unharmed, for somebody else. Never throws for a claim that was lost. */
  release(): Promise<TaskReleaseOutcome> {
    return this.#end({ how: 'release' });
  }

  toJSON(): { task: string; holder: string; token: Token; isValid: boolean } {
    const { id: task, holder, token, isValid } = this;
    return { task, holder, token, isValid };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }

  /** Released, unless it was ended before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ending !== undefined) await this.#ending.catch(() => undefined);
    if (this.#ending === undefined && this.#lost === undefined) await this.release();
  }

  /** For the runtime: the claim has ended. */
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void {
    if (this.#lost !== undefined) return;
    this.#runtime.holdings.holds.delete(this.#claim);
    if (this.#ending !== undefined) {
      this.#heard = loss;
      return;
    }
    this.#lost = new HoldLost(this.resource, loss);
    this.#controller?.abort(this.#lost);
  }

  /** For the runtime: the process gives it up. */
  async surrender(): Promise<void> {
    if (this.#ending !== undefined) return void (await this.#ending.catch(() => undefined));
    this.lose({ why: 'released-elsewhere' });
    await this.#send({ how: 'release' }).catch(() => undefined);
  }

  /** One way of ending is all there is, and one that could not be told to the store may be tried again. */
  #end<Outcome extends EndOutcome>(ending: Ending): Promise<Outcome> {
    if (this.#ending !== undefined) return this.#ending.then((outcome) => sameEnd(outcome, ending) as Outcome);
    const sent = this.#send(ending);
    this.#ending = sent;
    sent.then(
      () => this.#runtime.holdings.holds.delete(this.#claim),
      () => {
        this.#ending = undefined;
        if (this.#heard !== undefined) this.lose(this.#heard);
      },
    );
    return sent as Promise<Outcome>;
  }

  #send(ending: Ending): Promise<EndOutcome> {
    const { id, token, holder } = this;
    // One name for all ways to end it, however often: then what became of the first is known to the next.
    return endClaim(this.#runtime, id, { token, holder }, ending, this.#task, this.#wrote, this.#claim);
  }
}

/** Said twice, it is as said once; said differently, the first one counts, and the claim is none any more. */
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
