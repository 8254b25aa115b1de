/**
 * Holds over HTTP: each has a lease of its own. While a request waits, and until its grant is collected, the lease is as long
 * as the window; afterwards it lasts for the time that a holder may be silent.
 */
import type { Collected } from '../runtime/holds/tickets.ts';
import type { ClaimReleaseOutcome, DetachedHold, HoldClaim } from '../runtime/holds/terms.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given } from '../server/routes/holds.ts';
import type { McpLimits } from './limits.ts';
import type { QueuePlace } from './place.ts';
import {
  type Asked,
  type ClaimedTask,
  type ClaimWanted,
  type Granted,
  type Held,
  heldBy,
  type Named,
  type Renewed,
  resourceOf,
  type Seat,
  type Want,
} from './seat.ts';

type AnyHold = DetachedHold & { readonly mode?: Granted['mode']; readonly slots?: Granted['slots'] };

export class DetachedSeat implements Seat {
  readonly renewsItself = false;
  readonly #box: Signalbox;
  readonly #limits: McpLimits;

  constructor(box: Signalbox, limits: McpLimits) {
    this.#box = box;
    this.#limits = limits;
  }

  async ask(want: Want): Promise<Asked> {
    const { kind, holder, waits, slots, capacity, mode, reason, priority, maxHoldMs } = want;
    const of = resourceOf(this.#box, want, capacity);
    const own = kind === 'lock' ? { mode } : { weight: slots };
    const answer = await of.askDetached({
      ...(given({ reason, priority, maxHoldMs, ...own }) as object),
      ...{ holder, ttlMs: this.#limits.windowMs },
      ...(!waits && { strategy: 'fail-fast' }),
    } as never);
    // A client that asks again, because its connection broke, goes on at its place instead of standing there twice.
    const before = answer.kind === 'waiting' ? await this.#placeBefore(want, answer.ticket) : undefined;
    if (before === undefined || answer.kind !== 'waiting') return this.#told(want, answer);
    await of.withdraw({ ticket: answer.ticket, holder });
    return { ...answer, ticket: before };
  }

  /** The ticket of an earlier request of the same holder for the same. */
  async #placeBefore(
    { kind, name, holder, mode = 'exclusive', slots = 1 }: Want,
    ticket: string,
  ): Promise<string | undefined> {
    const { locks, semaphores } = await this.#box.survey({ resource: { kind, name } });
    const queue = [...locks, ...semaphores].flatMap(({ waiting }) => waiting);
    const [first] = queue.filter(
      (one) => one.holder === holder && (kind === 'lock' ? one.mode === mode : one.weight === slots),
    );
    return first?.id === ticket ? undefined : first?.id;
  }

  async collect({ ticket, holder, ...of }: QueuePlace, waitMs: number, signal: AbortSignal): Promise<Asked> {
    const answer = await resourceOf(this.#box, of).collect({ ticket, holder }, { waitMs, signal });
    // Nobody hears the answer: what was granted keeps its short lease, and is collected later or goes back.
    if (signal.aborted) return { kind: 'waiting', ticket, position: undefined, holders: [] };
    return this.#told(of, answer);
  }

  async withdraw({ ticket, holder, ...of }: QueuePlace): Promise<boolean> {
    return (await resourceOf(this.#box, of).withdraw({ ticket, holder })).kind === 'withdrawn';
  }

  async renew(of: Named, claim: HoldClaim, maxHoldMs: number | undefined): Promise<Renewed> {
    const outcome = await resourceOf(this.#box, of).extend(claim, this.#limits.ttlMs, given({ maxHoldMs }));
    if (outcome.kind === 'lost' || outcome.kind === 'not-owner') return { kind: outcome.kind };
    return { kind: 'renewed', ttlMs: outcome.ttlMs, ...(maxHoldMs !== undefined && { maxHoldMs }) };
  }

  release(of: Named, claim: { readonly holder: string; readonly token?: number }): Promise<ClaimReleaseOutcome> {
    return resourceOf(this.#box, of).release(claim);
  }

  async claim({ task, ...wanted }: ClaimWanted): Promise<ClaimedTask> {
    const { tasks } = this.#box;
    const { capabilities = [], ...rest } = wanted;
    const options = { ...rest, capabilities, ttlMs: this.#limits.ttlMs };
    const { id, holder, token, attempt, data, ttlMs } =
      task === undefined ? await tasks.claimNextDetached(options) : await tasks.claimDetached(task, options);
    return { task: id, holder, token, attempt, data, ttlMs };
  }

  async touch(holder: string): Promise<readonly Held[]> {
    const held = await heldBy(this.#box, holder);
    await Promise.all(
      held
        .filter(({ isAttached }) => !isAttached)
        .map(({ of, token }) =>
          'task' in of
            ? this.#box.tasks.renew(of.task, { holder, token })
            : resourceOf(this.#box, of).renew({ holder, token }),
        ),
    );
    return held.map(({ resource, token }) => ({ resource, token }));
  }

  /** A grant lasts from now on for as long as its holder may be silent. */
  async #told(of: Named, answer: Collected<AnyHold>): Promise<Asked> {
    if (answer.kind !== 'acquired') return answer;
    const { resource, holder, token, outcome, maxHoldMs, mode, slots } = answer.hold;
    const longer = await resourceOf(this.#box, of).extend({ holder, token }, this.#limits.ttlMs);
    if (!('ttlMs' in longer)) return { kind: 'gone' };
    const isHeldBefore = outcome === 'extended' || outcome === 'already-held' || outcome === 'increased';
    return {
      ...{ kind: 'granted', resource, holder, token, isHeldBefore, ttlMs: longer.ttlMs },
      ...(given({ maxHoldMs, mode, slots }) as object),
    };
  }
}
