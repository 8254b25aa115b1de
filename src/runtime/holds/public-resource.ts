/** What locks and semaphores have in common for users: detached holds by claim, force, settings. */
import type { Json, Settings, Token } from '../../core/index.ts';
import type { AnyCommand, AnyOutcome } from '../write/pending-command.ts';
import type { Coordinated } from '../write/machines.ts';
import { abortSignal, type Doer, milliseconds, millisecondsFromZero, refuseWrongValues } from '../options.ts';
import { acquireDetached, extend, type Given, release, renew } from './detached.ts';
import type { AnyResource, Resource } from './resource.ts';
import type { Breaking, ClaimReleaseOutcome, DetachedHold, DetachedOptions, HoldClaim, RenewOutcome } from './terms.ts';
import {
  askWithTicket,
  collect,
  type Collected,
  type CollectOptions,
  type TicketAnswer,
  type TicketClaim,
  withdraw,
} from './tickets.ts';

type Any = AnyResource & Pick<Resource<Coordinated, AnyCommand, AnyOutcome>, 'name' | 'break' | 'configure'>;

const COLLECT = { waitMs: millisecondsFromZero, signal: abortSignal };

/** A lock or a semaphore by its name. `Held`: its detached holds; `Asked`: how they are asked for. */
export abstract class NamedResource<
  Held extends DetachedHold = DetachedHold,
  Asked extends DetachedOptions<unknown> = DetachedOptions<Json>,
> {
  readonly #of: Any;
  readonly #shown: (given: Given) => Held;

  /** @internal */
  constructor(of: Any, shown: (given: Given) => Held) {
    this.#of = of;
    this.#shown = shown;
  }

  /** Its name, such as `main-branch`. */
  get name(): string {
    return this.#of.name;
  }

  /** Its kind and name, such as `lock/main-branch`. */
  get resource(): string {
    return this.#of.resource;
  }

  /** A hold with a lease of its own, kept by `renew`: for scripts and agents that do not stay connected. */
  async acquireDetached(options: Asked): Promise<Held> {
    return this.#shown(await acquireDetached(this.#of, options));
  }

  /**
   * The same without waiting: answers the hold, or a ticket that keeps the place in the queue while the caller is away. Ask
   * for it with `collect`, from any process, within the time of the hold: an abandoned ticket leaves the queue.
   */
  async askDetached(options: Asked): Promise<TicketAnswer<Held>> {
    const answer = await askWithTicket(this.#of, options);
    return answer.kind === 'acquired' ? { kind: 'acquired', hold: this.#shown(answer.hold) } : answer;
  }

  /** Goes on with a request that has a ticket, for at most `waitMs`, and renews it. Throws `NotAcquired` if it was refused. */
  async collect(claim: TicketClaim, options: CollectOptions = {}): Promise<Collected<Held>> {
    refuseWrongValues(options, COLLECT);
    const answer = await collect(this.#of, claim, options);
    return answer.kind === 'acquired' ? { kind: 'acquired', hold: this.#shown(answer.hold) } : answer;
  }

  /** Takes a request that has a ticket out of the queue; a hold that it was granted goes back. */
  withdraw(claim: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }> {
    return withdraw(this.#of, claim);
  }

  /** Renews a detached hold for its full time. A stale hold stays lost. */
  renew(claim: HoldClaim): Promise<RenewOutcome> {
    return renew(this.#of, claim);
  }

  /**
   * Changes how long a detached hold lasts without a renewal, as far as the settings allow it. A hold on a session lasts as
   * long as the session, and stays on it. `maxHoldMs`: how long it may last in all, counted from now.
   */
  extend(claim: HoldClaim, ttlMs: number, options: { readonly maxHoldMs?: number } = {}): Promise<RenewOutcome> {
    refuseWrongValues(options, { maxHoldMs: milliseconds });
    return extend(this.#of, claim, ttlMs, options);
  }

  /**
   * Releases a detached hold; a token of an earlier grant changes nothing. Without a token, it releases the only hold that the
   * holder has, and answers `ambiguous` if it has several.
   */
  release(claim: { readonly holder: string; readonly token?: Token }): Promise<ClaimReleaseOutcome> {
    return release(this.#of, claim);
  }

  /** Ends every hold, for administrators. The holders get the reason. With a `token`, a hold that was granted after it stays. */
  break(by: Breaking): Promise<{ readonly broken: number }> {
    return this.#of.break(by);
  }

  /**
   * Sets rules that bind every holder from its next grant on: `maxHoldMs`, `ttlMs` of detached holds, `onStale`. What is left
   * out stays as it is, and null removes a limit. A hold that exists keeps the terms under which it was granted. `by`: the
   * actor that the witness names; this process, if not given.
   */
  configure(settings: Settings, options: Doer = {}): Promise<void> {
    return this.#of.configure(settings, options);
  }
}
