/** The task API of a signalbox: publish, claim, end, look, subscribe. Checks what callers pass; `Dispatch` does the claiming. */
import {
  type AsJson,
  BACKOFF_OWNER,
  claimEntryOf,
  type ClaimName,
  type ClaimRefusal,
  DETACHED_TTL_MS,
  documentProblem,
  type Ending,
  type Json,
  LARGEST_DATA_BYTES,
  nameProblem,
  requestProblem,
  statusOf,
  type TaskStatus,
  termsOf,
  type Token,
  shapeProblem,
} from '../../core/index.ts';
import { Failure, refuseInvalid, shown } from '../../failure.ts';
import type { Revision } from '../../store/index.ts';
import { type Subscription, LISTEN, listening, type ListenOptions } from '../subscription.ts';
import {
  aName,
  flag,
  refuseUnlessFunction,
  refuseWrongValues,
  valuesProblem,
  wholeNumber,
  wholeNumberFromZero,
} from '../options.ts';
import { refreshed } from '../holds/detached.ts';
import type { RenewOutcome } from '../holds/terms.ts';
import type { Runtime } from '../runtime.ts';
import {
  type CompleteOutcome,
  endClaim,
  type EndOutcome,
  type FailOutcome,
  type TaskClaim,
  type TaskReleaseOutcome,
} from './claim.ts';
import { readKnown } from './claiming.ts';
import type { DetachedClaim, Dispatch } from './dispatch.ts';
import { requestOf } from './end-request.ts';
import { taskResource } from './keys.ts';
import type { TaskHandler } from './notifier.ts';
import { type Forgetting, type ForgetOutcome, forgetTask, type RequeueOutcome, requeueTask } from './unclaimed.ts';
import { type ListOptions, listTasks } from './listing.ts';
import { configureRetention, keepTime, type Retention, retentionOf } from './retention.ts';
import { dataToPublish, publishTask, type PublishOptions, type PublishOutcome } from './publishing.ts';
import { type TaskView, viewOf } from './reading.ts';
import type { TaskWaitOptions } from './task-waiters.ts';

/** Who claims. */
export interface ClaimOptions {
  /** The name of the worker. Without it, every claim has a holder name of its own. */
  readonly holder?: string;
  /** What the worker can do. It may claim a task that asks for no other capability. */
  readonly capabilities?: readonly string[];
}

/** Who claims, on a lease of its own. */
export interface DetachedClaimOptions extends ClaimOptions {
  /** The name of the worker, by which any process can renew and end the claim. */
  readonly holder: string;
  /** The task is pending again if the claim is not renewed for this long. */
  readonly ttlMs?: number;
}

interface Claimed<Data, Result> {
  readonly ok: true;
  readonly kind: 'claimed';
  readonly claim: TaskClaim<Data, Result>;
}

/** What `tryClaim` answers: `ok` says whether there is a claim, `kind` why there is none. */
export type ClaimAttempt<Data = Json, Result = Json> = Claimed<Data, Result> | (ClaimRefusal & { readonly ok: false });

/** What `tryClaimNext` answers. */
export type NextAttempt<Data = Json, Result = Json> =
  | Claimed<Data, Result>
  | { readonly ok: false; readonly kind: 'none' };

/** What `forceRelease` answers. */
export type ForceOutcome =
  | { readonly kind: 'released'; readonly owner: string }
  /** Nothing was taken. With a token, `running` says that another claim has the task by now. */
  | { readonly kind: 'not-claimed'; readonly status: TaskStatus | undefined };

/** Who takes a task from its owner, and why. */
export interface ForceOptions {
  /** Who takes it; shown to people. */
  readonly holder: string;
  /** Why; the owner gets to see it. */
  readonly reason: string;
  /** The claim that is meant; any, if not given. */
  readonly token?: Token;
}

/** Who makes a task pending again. */
export interface RequeueOptions {
  /** Shown to people. */
  readonly by?: string;
  /** How often it was claimed when this was decided: a task that was claimed since is left as it is. */
  readonly attempts?: number;
}

const CLAIM = ['holder', 'capabilities'];
const WAIT = ['waitMs', 'signal'];

/** The tasks of a store, and the workers that claim them. `Data` and `Result`: the JSON that a task carries. */
export class Tasks {
  readonly #runtime: Runtime;
  readonly #dispatch: Dispatch;

  /** @internal */
  constructor(runtime: Runtime, dispatch: Dispatch) {
    this.#runtime = runtime;
    this.#dispatch = dispatch;
  }

  /** Publishes a task and tells all subscribers. `data` is any JSON; the terms of the task are part of it, or in `options`. */
  async publish<Data = Json>(
    id: string,
    data: Data & AsJson<Data>,
    options: PublishOptions = {},
  ): Promise<PublishOutcome> {
    this.#runtime.refuseIfClosed();
    return publishTask(this.#runtime, id, dataToPublish(id, data as Json, options), options, this.#wrote);
  }

  /** Claims this task, or answers at once why not. Of any number of claimers exactly one gets it. */
  async tryClaim<Data = Json, Result = Json>(
    id: string,
    options: ClaimOptions = {},
  ): Promise<ClaimAttempt<Data, Result>> {
    this.#checkClaim(id, options, CLAIM);
    return this.#dispatch.tryClaim(id, options) as Promise<ClaimAttempt<Data, Result>>;
  }

  /** Waits until the task can be claimed. Throws `NotAcquired` if it cannot: it is done, it does not exist, time is over. */
  async claim<Data = Json, Result = Json>(
    id: string,
    options: ClaimOptions & TaskWaitOptions = {},
  ): Promise<TaskClaim<Data, Result>> {
    this.#checkClaim(id, options, [...CLAIM, ...WAIT]);
    return this.#dispatch.claim(id, options) as Promise<TaskClaim<Data, Result>>;
  }

  /** Claims the best task that fits: the oldest of the highest priority, or one of the oldest where many workers compete. */
  async tryClaimNext<Data = Json, Result = Json>(options: ClaimOptions = {}): Promise<NextAttempt<Data, Result>> {
    this.#checkClaim(undefined, options, CLAIM);
    return this.#dispatch.tryClaimNext(options) as Promise<NextAttempt<Data, Result>>;
  }

  /** Waits until there is a task that fits, and claims it. Throws `NotAcquired` when the wait is over. */
  async claimNext<Data = Json, Result = Json>(
    options: ClaimOptions & TaskWaitOptions = {},
  ): Promise<TaskClaim<Data, Result>> {
    this.#checkClaim(undefined, options, [...CLAIM, ...WAIT]);
    return this.#dispatch.claim(undefined, options) as Promise<TaskClaim<Data, Result>>;
  }

  // Detached claims: each has a lease of its own; any process that knows its holder or token can renew and end it.

  /** Waits until the task can be claimed, on a lease of its own: for scripts and agents that do not stay connected. */
  async claimDetached<Data = Json>(
    id: string,
    options: DetachedClaimOptions & TaskWaitOptions,
  ): Promise<DetachedClaim<Data>> {
    return this.#claimDetached(id, options) as Promise<DetachedClaim<Data>>;
  }

  /** Waits until there is a task that fits, and claims it on a lease of its own. */
  async claimNextDetached<Data = Json>(options: DetachedClaimOptions & TaskWaitOptions): Promise<DetachedClaim<Data>> {
    return this.#claimDetached(undefined, options) as Promise<DetachedClaim<Data>>;
  }

  /** Renews a detached claim for its full time. A claim that rests on a session is renewed only by its own process. */
  async renew(id: string, claim: ClaimName): Promise<RenewOutcome> {
    const { task } = await readKnown(this.#runtime, this.#checkName(id, claim));
    const { owner } = task;
    if (owner === undefined || owner.holder === '' || statusOf(task) !== 'running') return { kind: 'lost' };
    const isMeant =
      (claim.holder ?? owner.holder) === owner.holder && (claim.token === undefined || claim.token === owner.token);
    if (!isMeant) return { kind: 'not-owner' };
    const { store, stopped } = this.#runtime;
    if (owner.lease === null) return { kind: 'lost' };
    const isAttached = claimEntryOf(task)?.detached !== true;
    const kept = isAttached
      ? await store.leaseState(owner.lease, stopped)
      : await store.keepLeaseAlive(owner.lease, stopped);
    if (kept === null) return { kind: 'lost' };
    return isAttached ? { kind: 'attached', ttlMs: kept.ttlMs } : refreshed(kept.ttlMs);
  }

  /** Releases a claim that is named by its token, its holder, or both. Changes nothing if that is not the owner. */
  release(id: string, claim: ClaimName): Promise<TaskReleaseOutcome> {
    return this.#end(id, claim, { how: 'release' }) as Promise<TaskReleaseOutcome>;
  }

  /** Completes the task of a claim that is named by its token, its holder, or both: no worker can claim it again. */
  complete<Result = Json>(id: string, claim: ClaimName, result?: Result): Promise<CompleteOutcome> {
    const problem = result === undefined ? undefined : documentProblem(result, 'result', LARGEST_DATA_BYTES);
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${taskResource(id)}: ${problem}`));
    const ending: Ending = { how: 'complete', ...(result !== undefined && { result: result as Json }) };
    return this.#end(id, claim, ending) as Promise<CompleteOutcome>;
  }

  /** Reports failure of a claim: the task is pending again while it has retries left, else failed. */
  fail(id: string, claim: ClaimName, reason: string, options: { readonly retry?: boolean } = {}): Promise<FailOutcome> {
    const problem = requestProblem({ reason }, ['reason']) ?? valuesProblem(options, { retry: flag });
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${taskResource(id)}: ${problem}`));
    return this.#end(id, claim, { how: 'fail', reason, retry: options.retry ?? true }) as Promise<FailOutcome>;
  }

  /**
   * Takes the task from its owner, even one without a lease, for an administrator. The owner hears that it lost the claim.
   * With a token, only that claim is ended: a task that another worker has by now stays with it.
   */
  async forceRelease(id: string, { token, ...by }: ForceOptions): Promise<ForceOutcome> {
    refuseInvalid(nameProblem(id, 'task') ?? requestProblem(by, ['holder', 'reason']));
    if (token !== undefined) refuseWrongValues({ token }, { token: wholeNumber });
    if (by.reason === '')
      throw new Failure(
        'invalid',
        `${taskResource(id)}: the reason is empty; say why you take the task from its owner`,
      );
    const view = await this.show(id);
    const isMeant = token === undefined || view?.token === token;
    if (view?.owner === undefined || view.status !== 'running' || !isMeant) {
      return { kind: 'not-claimed', status: view?.status };
    }
    const ending: Ending = { how: 'force', by: by.holder, reason: by.reason };
    const outcome = await this.#end(id, { token: view.token as Token }, ending);
    if (outcome.kind === 'released') return { kind: 'released', owner: view.owner };
    return { kind: 'not-claimed', status: (await this.status(id)) ?? undefined };
  }

  /** Makes a failed task pending again, with all its retries, and ends the pause of one that waits for its next attempt. */
  retry(id: string, options: RequeueOptions = {}): Promise<RequeueOutcome> {
    return this.#requeue(id, 'failed', options);
  }

  /** Makes any task pending again that no worker has, a complete one too: its result is dropped and it is done again. */
  requeue(id: string, options: RequeueOptions = {}): Promise<RequeueOutcome> {
    return this.#requeue(id, 'any', options);
  }

  async #requeue(id: string, only: 'failed' | 'any', options: RequeueOptions): Promise<RequeueOutcome> {
    this.#runtime.refuseIfClosed();
    const { by = '', attempts } = options;
    refuseInvalid(
      nameProblem(id, 'task') ??
        shapeProblem(options, ['by', 'attempts']) ??
        requestProblem(options.by === undefined ? {} : { holder: by }),
    );
    if (attempts !== undefined) refuseWrongValues({ attempts }, { attempts: wholeNumberFromZero });
    return requeueTask(this.#runtime, id, { only, by, attempts }, this.#wrote);
  }

  /** Deletes a task that no worker has; its id is free again. Refused while tasks depend on it that are not complete. */
  async forget(id: string, options: Forgetting = {}): Promise<ForgetOutcome> {
    this.#runtime.refuseIfClosed();
    refuseInvalid(nameProblem(id, 'task') ?? valuesProblem(options, { by: aName, publishedBy: aName }));
    await this.#dispatch.waiters.caughtUp();
    const by = this.#dispatch.cache.dependentsOf(id);
    return by.length > 0 ? { kind: 'needed', by } : forgetTask(this.#runtime, id, this.#wrote, undefined, options);
  }

  /** How long finished tasks are kept before maintenance forgets them, and how many. */
  async retention(): Promise<Retention> {
    this.#runtime.refuseIfClosed();
    return retentionOf(this.#runtime);
  }

  /** Changes how long and how many, for all processes that use this store. */
  async configure(settings: Partial<Retention>): Promise<Retention> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(settings, { keepMs: keepTime, keepMost: wholeNumber });
    return configureRetention(this.#runtime, settings);
  }

  readonly #wrote = (revision: Revision): void => this.#dispatch.waiters.wrote(revision);

  async #end(id: string, claim: ClaimName, ending: Ending): Promise<EndOutcome> {
    this.#runtime.refuseIfClosed();
    const named = this.#checkName(id, claim);
    return endClaim(this.#runtime, named, claim, ending, undefined, this.#wrote, requestOf(claim));
  }

  // Looking

  /** One task; undefined if there is no such task. */
  async show<Data = Json, Result = Json>(id: string): Promise<TaskView<Data, Result> | undefined> {
    this.#runtime.refuseIfClosed();
    refuseInvalid(nameProblem(id, 'task'));
    const { task, status } = await readKnown(this.#runtime, id);
    return task.data === undefined ? undefined : (viewOf(task, status) as TaskView<Data, Result>);
  }

  /** Undefined if there is no such task. */
  async status(id: string): Promise<TaskStatus | undefined> {
    return (await this.show(id))?.status;
  }

  /** The worker that does the task, or did; undefined if there was none. */
  async ownerOf(id: string): Promise<string | undefined> {
    return (await this.show(id))?.owner;
  }

  /** All tasks, in the order of publication. With `limit` or `after`, a page of them, in the order of their ids. */
  async list<Data = Json, Result = Json>(options: ListOptions = {}): Promise<readonly TaskView<Data, Result>[]> {
    this.#runtime.refuseIfClosed();
    const { status, limit, after } = options;
    refuseInvalid(
      shapeProblem(options, ['status', 'limit', 'after']) ??
        statusProblem(status) ??
        (limit === undefined || (Number.isSafeInteger(limit) && limit > 0)
          ? undefined
          : `limit is ${shown(limit)}; expected a whole number from 1`) ??
        (after === undefined ? undefined : nameProblem(after, 'after')),
    );
    return (await listTasks(this.#runtime, options)) as readonly TaskView<Data, Result>[];
  }

  /**
   * Calls `handler` for every task that is published from now on, in order, and for tasks that are pending again. Resolves
   * once no such task can be missed. With `pending`, it begins with the tasks that are pending already.
   */
  async subscribe<Data = Json, Result = Json>(
    handler: TaskHandler<Data, Result>,
    options: { readonly pending?: boolean } & ListenOptions = {},
  ): Promise<Subscription> {
    this.#runtime.refuseIfClosed();
    refuseUnlessFunction('the handler', handler);
    refuseWrongValues(options, { pending: flag, ...LISTEN });
    const { pending, ...listen } = options;
    const { notifier } = this.#dispatch;
    return listening(this.#runtime, listen, () => notifier.subscribe(handler as TaskHandler, pending === true));
  }

  #checkClaim(id: string | undefined, options: ClaimOptions, known: readonly string[]): void {
    this.#runtime.refuseIfClosed();
    const { holder, capabilities, waitMs, signal } = options as ClaimOptions & TaskWaitOptions;
    refuseInvalid(
      (id === undefined ? undefined : nameProblem(id, 'task')) ??
        shapeProblem(options, known) ??
        requestProblem({ holder, waitMs }) ??
        (holder === BACKOFF_OWNER ? `holder is ${shown(holder)}, which marks a pause; use another name` : undefined) ??
        (capabilities === undefined ? undefined : termsOf({ capabilities }).problem) ??
        (signal === undefined || signal instanceof AbortSignal
          ? undefined
          : `signal is ${shown(signal)}, not an AbortSignal`),
    );
  }

  #claimDetached(id: string | undefined, options: DetachedClaimOptions & TaskWaitOptions): Promise<DetachedClaim> {
    this.#checkClaim(id, options, [...CLAIM, ...WAIT, 'ttlMs']);
    refuseInvalid(requestProblem(options, ['holder']));
    return this.#dispatch.claimDetached(id, options, options.ttlMs ?? DETACHED_TTL_MS);
  }

  #checkName(id: string, { holder, token }: ClaimName): string {
    refuseInvalid(nameProblem(id, 'task') ?? requestProblem({ holder, token }));
    if (holder === undefined && token === undefined) {
      throw new Failure(
        'invalid',
        `${taskResource(id)}: neither token nor holder is given; one of them must name the claim`,
      );
    }
    return id;
  }
}

function statusProblem(status: unknown): string | undefined {
  const accepted: readonly unknown[] = ['pending', 'running', 'complete', 'failed'] satisfies TaskStatus[];
  if (status === undefined || accepted.includes(status)) return undefined;
  return `status is ${shown(status)}; expected ${accepted.map(shown).join(' or ')}`;
}
