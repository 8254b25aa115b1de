/**
 * Holds over HTTP: each has its own lease. While a request waits, and until its grant is collected, the lease is as long as the
 * window; after that it is as long as a holder may be silent.
 */
import { given } from '../core/given.ts';
import type { Clock } from '../clock.ts';
import type { Collected } from '../runtime/holds/tickets.ts';
import { type ClaimReleaseOutcome, type DetachedHold, type HoldClaim, isReentry } from '../runtime/holds/terms.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { McpLimits } from './limits.ts';
import type { QueuePlace } from './place.ts';
import {
  type Asked,
  type ClaimedTask,
  type ClaimWanted,
  type Granted,
  type Held,
  heldBy,
  type HeldNow,
  lookedAt,
  type Named,
  renewDetached,
  type Renewed,
  resourceOf,
  type Seat,
  told,
  type Want,
} from './seat.ts';
import { waitEnd } from './waiting.ts';

type AnyHold = DetachedHold & { readonly mode?: Granted['mode']; readonly slots?: Granted['slots'] };

/** Limits how often polls renew: at most once in this part of the time that a holder may be silent. */
const POLLS_RENEW_AFTER = 0.1;

export class DetachedSeat implements Seat {
  readonly #box: Signalbox;
  readonly #limits: McpLimits;
  readonly #clock: Clock;
  /** When polls last renewed the holds of a holder. */
  readonly #polled = new Map<string, number>();

  constructor(box: Signalbox, limits: McpLimits, clock: Clock) {
    this.#box = box;
    this.#limits = limits;
    this.#clock = clock;
  }

  needsTouch(): boolean {
    return true;
  }

  async ask(want: Want): Promise<Asked> {
    const { kind, holder, waits, slots, capacity, mode, reason, priority, maxHoldMs } = want;
    const of = resourceOf(this.#box, want, capacity);
    const own = kind === 'lock' ? { mode } : { weight: slots };
    const answer = await of.askDetached({
      ...(given({ reason, priority, maxHoldMs, ...own }) as object),
      ...{ holder, ttlMs: this.#limits.ttlMs, ticketMs: this.#limits.windowMs },
      ...(!waits && { strategy: 'fail-fast' }),
    } as never);
    // A client that asks again, because its connection broke, continues at its place in line instead of taking a second one.
    const before = answer.kind === 'waiting' ? await this.#placeBefore(want, answer.ticket) : undefined;
    if (before === undefined || answer.kind !== 'waiting') return this.#told(want, answer);
    const found = await of.collect({ ticket: before, holder });
    // A process of this holder waits for itself, so its place is not one that a call may take over.
    if (found.kind === 'gone') return answer;
    await of.withdraw({ ticket: answer.ticket, holder });
    return this.#told(want, found);
  }

  /** The ticket of an earlier request by the same holder for the same resource. */
  async #placeBefore(want: Want, ticket: string): Promise<string | undefined> {
    const { kind, holder, mode = 'exclusive', slots = 1 } = want;
    const { waiting } = await lookedAt(this.#box, want);
    const first = waiting.find(
      (one) => one.holder === holder && (kind === 'lock' ? one.mode === mode : one.weight === slots),
    );
    return first?.id === ticket ? undefined : first?.id;
  }

  async collect(
    { ticket, holder, ...of }: QueuePlace,
    waitMs: number,
    signal: AbortSignal,
    stopping?: AbortSignal,
  ): Promise<Asked> {
    const end = waitEnd({ signal, stopping });
    const answer = await resourceOf(this.#box, of).collect({ ticket, holder }, { waitMs, signal: end });
    // No client hears the answer: the grant keeps its short lease, until a later call collects it or the lease ends.
    if (signal.aborted) return { kind: 'waiting', ticket, position: undefined, holders: [] };
    return this.#told(of, answer);
  }

  async withdraw({ ticket, holder, ...of }: QueuePlace): Promise<boolean> {
    return (await resourceOf(this.#box, of).withdraw({ ticket, holder })).kind === 'withdrawn';
  }

  async giveUp(place: QueuePlace): Promise<void> {
    const { holds } = await lookedAt(this.#box, place);
    if (holds.find(({ id }) => id === place.ticket)?.isCollected !== true) await this.withdraw(place);
  }

  async renew(of: Named, claim: HoldClaim, maxHoldMs: number | undefined): Promise<Renewed> {
    const outcome = await resourceOf(this.#box, of).extend(claim, this.#limits.ttlMs, given({ maxHoldMs }));
    if (outcome.kind === 'lost' || outcome.kind === 'not-owner') return { kind: outcome.kind };
    return { kind: 'renewed', ttlMs: outcome.ttlMs, ...given({ maxHoldMs }) };
  }

  release(of: Named, claim: { readonly holder: string; readonly token?: number }): Promise<ClaimReleaseOutcome> {
    return resourceOf(this.#box, of).release(claim);
  }

  async claim({ task, capabilities = [], ...wanted }: ClaimWanted): Promise<ClaimedTask> {
    const { tasks } = this.#box;
    const options = { ...wanted, capabilities, ttlMs: this.#limits.ttlMs };
    const { id, holder, token, attempt, data, ttlMs } =
      task === undefined ? await tasks.claimNextDetached(options) : await tasks.claimDetached(task, options);
    return { task: id, holder, token, attempt, data, ttlMs };
  }

  async touch(holder: string): Promise<readonly Held[]> {
    const held = await heldBy(this.#box, holder);
    const isKept = await Promise.all(held.map((one) => this.#isCollected(one)));
    const collected = held.filter((_, place) => isKept[place]);
    await renewDetached(this.#box, holder, collected);
    return collected.map(told);
  }

  /** Skips grants that have yet to be collected: other calls must not keep them for an agent that forgot them. */
  async #isCollected({ isAttached, of, token }: HeldNow): Promise<boolean> {
    if (isAttached || 'task' in of) return true;
    const { holds } = await lookedAt(this.#box, of);
    return holds.some((hold) => hold.token === token && hold.isCollected === true);
  }

  async polled(holder: string): Promise<void> {
    const now = this.#clock.monotonic();
    const afterMs = this.#limits.ttlMs * POLLS_RENEW_AFTER;
    for (const [who, at] of this.#polled) if (now - at >= afterMs) this.#polled.delete(who);
    if (this.#polled.has(holder)) return;
    this.#polled.set(holder, now);
    await this.touch(holder);
  }

  /** Extends an earlier hold to the time that a holder may be silent; a new grant has that lease already. */
  async #told(of: Named, answer: Collected<AnyHold>): Promise<Asked> {
    if (answer.kind !== 'acquired') return answer;
    const { resource, holder, token, maxHoldMs, mode, slots } = answer.hold;
    const isHeldBefore = isReentry(answer.hold);
    let { ttlMs }: { ttlMs?: number | undefined } = answer.hold;
    if (isHeldBefore) {
      const longer = await resourceOf(this.#box, of).extend({ holder, token }, this.#limits.ttlMs);
      if (!('ttlMs' in longer)) return { kind: 'gone' };
      // A hold that belongs to a session ends with its process; no call here renews it.
      ttlMs = longer.kind === 'attached' ? undefined : longer.ttlMs;
    }
    return {
      ...{ kind: 'granted', resource, holder, token, isHeldBefore },
      ...(given({ ttlMs, maxHoldMs, mode, slots }) as object),
    };
  }
}
