/** Tasks over HTTP: publish, claim, end, look. */
import { given } from '../core/given.ts';
import type { ClaimName, Json, TaskStatus } from '../core/index.ts';
import { taskFrom, type TaskJson } from '../json/task.ts';
import type { RenewOutcome } from '../runtime/holds/terms.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import type { CompleteOutcome, EndOutcome, FailOutcome, TaskReleaseOutcome } from '../runtime/tasks/claim.ts';
import type { DetachedClaim } from '../runtime/tasks/dispatch.ts';
import type { ForgetOutcome, RequeueOutcome } from '../runtime/tasks/unclaimed.ts';
import type { ListOptions } from '../runtime/tasks/listing.ts';
import type { PublishOptions, PublishOutcome } from '../runtime/tasks/publishing.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import type { TaskWaitOptions } from '../runtime/tasks/task-waiters.ts';
import type { ForceOptions, ForceOutcome, RequeueOptions } from '../runtime/tasks/tasks.ts';
import { abortedOr, unlessAborted } from './abandoned.ts';
import { type Instant, instant, sinceMs } from './clock.ts';
import { refusedWith } from './problem.ts';
import { newKey, type SameRequest, renewal, segment } from './requests.ts';
import { type Connected, holderIn } from './resource.ts';
import { type ClaimAnswer, RemoteClaim } from './task-claim.ts';

/** The worker that claims, over HTTP. */
export interface RemoteClaimOptions extends TaskWaitOptions {
  /** The name of the worker. Without it, every claim gets its own holder name. */
  readonly holder?: string;
  /** What the worker can do. It may claim a task if it has every capability that the task asks for. */
  readonly capabilities?: readonly string[];
  /** The task is pending again if the claim is not renewed for this long: 30 s for a claim that renews itself, else 60 s. */
  readonly ttlMs?: number;
}

/** The answer of `tryClaim` and `tryClaimNext`: `ok` says whether there is a claim, `kind` why there is none. */
export type RemoteClaimAttempt<Data = Json, Result = Json> =
  | { readonly ok: true; readonly kind: 'claimed'; readonly claim: RemoteClaim<Data, Result> }
  | { readonly ok: false; readonly kind: 'missing' | 'taken' | 'finished' | 'blocked' | 'unfit' | 'none' };

/** How long one request waits. A wait that its caller gave up may last this long at the server. */
const LONGEST_WAIT_MS = 10_000;
/** The time of a claim counts from before the request: one that is granted at the end of it must have enough time left. */
const WAITED_OF_TTL = 1 / 3;

/** The tasks of a store, at a server. */
export class RemoteTasks {
  readonly #connected: Connected;

  /** @internal */
  constructor(connected: Connected) {
    this.#connected = connected;
  }

  /** Publishes a task and wakes the workers that wait for one. `data` is any JSON. */
  async publish(id: string, data: unknown, options: PublishOptions = {}): Promise<PublishOutcome> {
    const body = { id, data, ...options };
    try {
      await this.#connected.requests.ask({ method: 'POST', path: '/v1/tasks', body, isKeyed: true });
      return { kind: 'published', id };
    } catch (error) {
      return { kind: 'exists', id, status: refusedWith(error, 'exists')['taskStatus'] as TaskStatus };
    }
  }

  /** Claims this task, or answers at once why not. However many workers claim it, exactly one gets it. */
  tryClaim<Data = Json, Result = Json>(
    id: string,
    options: RemoteClaimOptions = {},
  ): Promise<RemoteClaimAttempt<Data, Result>> {
    return attempted(this.claim<Data, Result>(id, { ...options, waitMs: 0 }));
  }

  /**
   * Waits until it can claim the task. Throws `NotAcquired` if it never can: the task is done or does not exist, or time is over.
   */
  async claim<Data = Json, Result = Json>(
    id: string,
    options: RemoteClaimOptions = {},
  ): Promise<RemoteClaim<Data, Result>> {
    return this.#kept(await this.#claimed(id, options));
  }

  /** Claims the best task that fits, or answers at once that there is none. */
  tryClaimNext<Data = Json, Result = Json>(
    options: RemoteClaimOptions = {},
  ): Promise<RemoteClaimAttempt<Data, Result>> {
    return attempted(this.claimNext<Data, Result>({ ...options, waitMs: 0 }));
  }

  /** Waits until there is a task that fits, and claims it. Throws `NotAcquired` when the wait is over. */
  async claimNext<Data = Json, Result = Json>(options: RemoteClaimOptions = {}): Promise<RemoteClaim<Data, Result>> {
    return this.#kept(await this.#claimed(undefined, options));
  }

  /**
   * Makes a claim that only `renew` keeps alive, for programs that do not stay connected. Its token is all that `renew` and
   * `complete` need.
   */
  async claimDetached(id: string, options: RemoteClaimOptions): Promise<DetachedClaim> {
    return this.#detached(id, options);
  }

  /** Waits until there is a task that fits, and claims it like `claimDetached`. */
  async claimNextDetached(options: RemoteClaimOptions): Promise<DetachedClaim> {
    return this.#detached(undefined, options);
  }

  /** Renews a claim for its full time. */
  renew(id: string, claim: ClaimName): Promise<RenewOutcome> {
    return this.renewWithin(id, claim);
  }

  /** @internal */
  async renewWithin(id: string, claim: ClaimName, retryMs?: number): Promise<RenewOutcome> {
    try {
      const path = `${taskPath(id)}/renew`;
      const limit = retryMs === undefined ? {} : renewal(retryMs);
      const { outcome, ttlMs, renewWithinMs } = await this.#connected.requests.ask<{
        outcome: 'refreshed';
        ttlMs: number;
        renewWithinMs: number;
      }>({ method: 'POST', path, body: claim, ...limit });
      return { kind: outcome, ttlMs, renewWithinMs };
    } catch (error) {
      return { kind: refusedWith(error, 'gone', 'not-owner').code === 'gone' ? 'lost' : 'not-owner' };
    }
  }

  /** Releases a claim, named by its token, its holder, or both. Changes nothing if they do not name the owner. */
  release(id: string, claim: ClaimName): Promise<TaskReleaseOutcome> {
    return this.endWith(id, 'release', claim);
  }

  /** Completes the task of a claim, named by its token, its holder, or both: no worker can claim it again. */
  complete(id: string, claim: ClaimName, result?: unknown): Promise<CompleteOutcome> {
    return this.endWith(id, 'complete', { ...claim, result });
  }

  /** Reports that a claim failed: the task is pending again while it has retries left, else failed. */
  fail(id: string, claim: ClaimName, reason: string, options: { readonly retry?: boolean } = {}): Promise<FailOutcome> {
    return this.endWith(id, 'fail', { ...claim, ...options, reason });
  }

  /** @internal `same`: the request that an earlier call has sent. */
  async endWith<T extends EndOutcome>(id: string, what: string, body: object, same?: SameRequest): Promise<T> {
    try {
      return outcomeIn<T>(await this.#post(id, what, body, same));
    } catch (error) {
      return outcomeIn<T>(refusedWith(error, 'not-owner'));
    }
  }

  /** Takes the task from its owner, for administrators; with a token, only if that claim still has it. */
  async forceRelease(id: string, by: ForceOptions): Promise<ForceOutcome> {
    try {
      const { owner } = await this.#post<{ owner: string }>(id, 'release', { ...by, force: true });
      return { kind: 'released', owner };
    } catch (error) {
      refusedWith(error, 'wrong-state');
      return { kind: 'not-claimed', status: (await this.show(id))?.status };
    }
  }

  /** Makes a failed task pending again, with all its retries. */
  retry(id: string, options: RequeueOptions = {}): Promise<RequeueOutcome> {
    return this.#put<RequeueOutcome>(this.#post(id, 'retry', options));
  }

  /** Makes a task pending again that no worker has, even a complete one. */
  requeue(id: string, options: RequeueOptions = {}): Promise<RequeueOutcome> {
    return this.#put<RequeueOutcome>(this.#post(id, 'requeue', options));
  }

  /** Deletes a task that no worker has; its id is free again. */
  forget(id: string): Promise<ForgetOutcome> {
    const asked = this.#connected.requests.ask({ method: 'DELETE', path: taskPath(id), isKeyed: true });
    return this.#put<ForgetOutcome>(asked as Promise<{ outcome: string }>);
  }

  /** One task; undefined if there is no such task. */
  async show(id: string): Promise<TaskView | undefined> {
    const found = await this.#connected.requests.found<TaskJson>(taskPath(id));
    return found && taskFrom(found);
  }

  /** Undefined if there is no such task. */
  async status(id: string): Promise<TaskStatus | undefined> {
    return (await this.show(id))?.status;
  }

  /** All tasks in the order of publication; with `limit` or `after`, one page in the order of their ids. */
  async list(options: ListOptions = {}): Promise<readonly TaskView[]> {
    const { requests } = this.#connected;
    return (await requests.get<{ tasks: readonly TaskJson[] }>('/v1/tasks', { ...options })).tasks.map(taskFrom);
  }

  async #detached(id: string | undefined, options: RemoteClaimOptions): Promise<DetachedClaim> {
    const holder = holderIn(this.#connected, options.holder);
    const { answer } = await this.#claimed(id, { ...options, holder }, false);
    const { task, ...claim } = answer;
    return { id: task, ...claim };
  }

  #kept<Data, Result>({ answer, since }: Claimed): RemoteClaim<Data, Result> {
    return new RemoteClaim<Data, Result>(this.#connected, this, answer, since);
  }

  async #claimed(id: string | undefined, options: RemoteClaimOptions, isKept = true): Promise<Claimed> {
    const { waitMs = Number.POSITIVE_INFINITY, signal, holder, capabilities, ttlMs } = options;
    const { requests, holder: named } = this.#connected;
    const { clock } = requests;
    const begun = instant(clock);
    const resource = id === undefined ? 'task' : `task/${id}`;
    const path = id === undefined ? '/v1/tasks/claim' : `${taskPath(id)}/claim`;
    const who = holder ?? named ?? `client:${newKey()}`;
    const kept = ttlMs ?? (isKept ? this.#connected.ttlMs : undefined);
    const longestMs = Math.min(LONGEST_WAIT_MS, (kept ?? Number.POSITIVE_INFINITY) * WAITED_OF_TTL);
    for (;;) {
      const since = instant(clock);
      const forMs = Math.max(0, Math.min(waitMs - sinceMs(clock, begun), longestMs));
      const body = { holder: who, capabilities, ttlMs: kept, waitMs: forMs };
      const asked = requests.ask<ClaimAnswer>({ method: 'POST', path, body, isKeyed: true, waitMs: forMs });
      const giveBack = async ({ task, token }: ClaimAnswer): Promise<void> =>
        void (await this.release(task, { holder: who, token }));
      try {
        return { answer: await unlessAborted(asked, signal, giveBack), since };
      } catch (error) {
        const isOver = sinceMs(clock, begun) >= waitMs;
        const mayComeYet = error instanceof NotAcquired && ['none', 'timed-out'].includes(error.refusal.kind);
        if (!mayComeYet || isOver || signal?.aborted === true) throw abortedOr(error, resource, signal);
      }
    }
  }

  #post<T>(id: string, what: string, body: object, same?: SameRequest): Promise<T> {
    const path = `${taskPath(id)}/${what}`;
    return this.#connected.requests.ask<T>({ method: 'POST', path, body, isKeyed: true, ...(same && { same }) });
  }

  async #put<T extends RequeueOutcome | ForgetOutcome>(asked: Promise<Readonly<Record<string, unknown>>>): Promise<T> {
    try {
      return outcomeIn<T>(await asked);
    } catch (error) {
      const problem = refusedWith(error, 'wrong-state', 'no-such-thing');
      return problem.code === 'no-such-thing' ? ({ kind: 'missing' } as T) : outcomeIn<T>(problem);
    }
  }
}

interface Claimed {
  readonly answer: ClaimAnswer;
  readonly since: Instant;
}

async function attempted<Data, Result>(
  claiming: Promise<RemoteClaim<Data, Result>>,
): Promise<RemoteClaimAttempt<Data, Result>> {
  try {
    return { ok: true, kind: 'claimed', claim: await claiming };
  } catch (error) {
    if (!(error instanceof NotAcquired)) throw error;
    return { ...error.refusal, ok: false } as RemoteClaimAttempt<Data, Result>;
  }
}

/** The task, which the caller knows, and the fields of every problem. */
const NO_DETAILS = ['task', 'type', 'title', 'status', 'code', 'detail'];

/**
 * Renames the fields of an answer: `outcome` is the kind, and the task's status has its own name, because `status` is that of the
 * HTTP answer.
 */
function outcomeIn<T>(answer: Readonly<Record<string, unknown>>): T {
  const { outcome: kind, taskStatus: status, ...rest } = answer;
  const details = Object.entries(rest).filter(([name]) => !NO_DETAILS.includes(name));
  return { kind, ...Object.fromEntries(details), ...given({ status }) } as T;
}

function taskPath(id: string): string {
  return `/v1/tasks/${segment(id)}`;
}
