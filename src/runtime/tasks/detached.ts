/** Claims for scripts: on a lease of their own, renewed and ended by whoever knows their token or their holder. */
import type { ClaimRequest, Json, Token } from '../../core/index.ts';
import { ownCopy } from '../own-copy.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { hasPassed, isOfOneMachine, MARGIN } from '../session/session.ts';
import { attemptClaim, type Claimed, type Known, readKnown } from './claiming.ts';
import { endClaim } from './ending.ts';
import { DetachedClaimLease } from './claim-lease.ts';
import { taskResource } from './keys.ts';
import type { WaitDeadline, TaskWaitOptions } from './wait-deadline.ts';
import { type Made, NEXT, type TaskWaiters } from './task-waiters.ts';

/** A claim that outlives the process that made it. */
export interface DetachedClaim {
  readonly id: string;
  readonly holder: string;
  readonly token: Token;
  readonly ttlMs: number;
  readonly data: Json;
  readonly attempt: number;
}

export interface DetachedRequest extends TaskWaitOptions {
  readonly holder: string;
  readonly capabilities?: readonly string[];
}

export class DetachedClaims {
  readonly #runtime: Runtime;
  readonly #waiting: TaskWaiters;
  readonly #known: (id: string) => Known | undefined;

  /** `known`: what is known of a task without asking. */
  constructor(runtime: Runtime, waiting: TaskWaiters, known: (id: string) => Known | undefined) {
    this.#runtime = runtime;
    this.#waiting = waiting;
    this.#known = known;
  }

  /** Of this task, or of whichever is next. */
  async claim(id: string | undefined, options: DetachedRequest, ttlMs: number): Promise<DetachedClaim> {
    const claimLease = new DetachedClaimLease(this.#runtime, ttlMs);
    const resource = id === undefined ? NEXT : taskResource(id);
    try {
      return await this.#waiting.patiently(
        resource,
        options,
        async (deadline) =>
          this.#handedOut(resource, await this.#claimed(id, options, claimLease, deadline), claimLease),
        ({ id: task, token }) =>
          endClaim(this.#runtime, task, { token }, { how: 'release' }, undefined, () => undefined),
      );
    } catch (error) {
      await claimLease.drop().catch(() => undefined);
      throw error;
    }
  }

  async #claimed(
    id: string | undefined,
    options: DetachedRequest,
    claimLease: DetachedClaimLease,
    deadline: WaitDeadline,
  ): Promise<Claimed> {
    const attempt = (task: string): Promise<Made<Claimed>> => this.#attempt(task, options, claimLease);
    if (id !== undefined) return this.#waiting.named(id, options, deadline, attempt);
    const patient = options.waitMs === 0 ? undefined : deadline;
    const claimed = await this.#waiting.next(options.capabilities, patient, attempt);
    if (claimed === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
    return claimed;
  }

  async #attempt(id: string, options: DetachedRequest, claimLease: DetachedClaimLease): Promise<Made<Claimed>> {
    const { holder, capabilities = [] } = options;
    const claim = this.#runtime.options.newId();
    const request: ClaimRequest = { id: claim, holder, capabilities, at: this.#runtime.clock.now(), detached: true };
    // Read first: whoever ends it is another process, which finds in the bookkeeping only what this one has put there.
    const known = this.#known(id) ?? (await readKnown(this.#runtime, id));
    const attempt = await attemptClaim(this.#runtime, claimLease, id, request, known);
    if (attempt.kind === 'claimed') return { attempt, made: attempt };
    // The time of a claim begins with it: the next attempt has a lease of its own.
    await claimLease.drop();
    return { attempt, made: undefined };
  }

  /** An answer that comes after the lease may have ended is no claim. */
  #handedOut(resource: string, { task, token }: Claimed, { lease }: DetachedClaimLease): DetachedClaim {
    const { clock, store } = this.#runtime;
    const validMs = (lease?.ttlMs ?? 0) * (1 - MARGIN);
    const sent = lease?.sent ?? { monotonic: 0, now: 0 };
    if (hasPassed(clock, sent, validMs, isOfOneMachine(store))) {
      throw new NotAcquired(resource, { kind: 'lost' });
    }
    const holder = task.owner?.holder as string;
    const attempt = task.bookkeeping?.entry.attempts as number;
    return { id: task.id, holder, token, ttlMs: lease?.ttlMs ?? 0, data: ownCopy(task.data?.json as Json), attempt };
  }
}
