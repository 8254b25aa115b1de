/** The methods that locks and semaphores share over HTTP: asking, waiting by ticket, and acting on a hold by its token. */
import type { LossReason, Settings, Token } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { WaitOptions } from '../runtime/holds/wait-limits.ts';
import {
  type Breaking,
  type ClaimReleaseOutcome,
  type DetachedHold,
  type HoldClaim,
  isReentry,
  type RenewOutcome,
  type RequestOptions,
} from '../runtime/holds/terms.ts';
import type { Collected, CollectOptions, TicketAnswer, TicketClaim, Waiting } from '../runtime/holds/tickets.ts';
import { type HeldBy, NotAcquired } from '../runtime/refusal.ts';
import { instant, sinceMs } from './clock.ts';
import type { Given, Grant, RemoteHold } from './hold.ts';
import { abortedOr, unlessAborted } from './abandoned.ts';
import { refusedWith } from './problem.ts';
import { type Ask, newKey, renewal, type Requests, segment } from './requests.ts';

/** How to ask for a lock or for slots over HTTP. */
export interface RemoteOptions extends RequestOptions, WaitOptions {
  /** The hold ends if it is not renewed for this long: 30 s for a hold that renews itself, else 60 s. */
  readonly ttlMs?: number;
  /**
   * A request leaves the queue if nobody asks for its ticket for this long: 60 s or `ttlMs`, whichever is shorter, and never
   * more.
   */
  readonly ticketMs?: number;
}

/** State that all objects of one connection share. */
export interface Connected {
  readonly requests: Requests;
  readonly holder: string | undefined;
  /** How long a hold or a claim that this program renews lasts if the program dies. */
  readonly ttlMs: number;
  /** The holds of this program, by their ids, until they are lost or the server has released them. */
  readonly holds: Map<string, RemoteHold>;
  /** Its re-entries, into holds of this program or of others. */
  readonly reentries: Set<RemoteHold>;
  /** Of each request that is under way, the holds that this program has had meanwhile: its answer may be about one of them. */
  readonly asks: Set<Set<RemoteHold>>;
}

interface WaitingAnswer {
  readonly outcome: 'waiting';
  readonly ticket: string;
  readonly position: number | null;
  readonly holders: readonly HeldBy[];
}

/** How long one request waits; the next one goes on with the ticket. A hold is young when it arrives: see `#fresh`. */
const LONGEST_WAIT_MS = 30_000;
const WAIT_PART = 1 / 3;
/** After this part of its time, a grant is renewed before its caller gets it. */
const OLD_PART = 1 / 2;

/** A lock or a semaphore by its name, at a server. `Detached`: its holds that only `renew` keeps alive; `Asked`: how to ask for it. */
export abstract class RemoteResource<
  Detached extends DetachedHold = DetachedHold,
  Asked extends RemoteOptions = RemoteOptions,
> {
  /** Its name, such as `main-branch`. */
  readonly name: string;
  /** Its kind and name, such as `lock/main-branch`. */
  readonly resource: string;
  /** @internal */
  protected readonly connected: Connected;
  readonly #path: string;

  /** @internal */
  constructor(connected: Connected, kind: 'lock' | 'semaphore', name: string) {
    this.name = name;
    this.resource = `${kind}/${name}`;
    this.connected = connected;
    this.#path = `/v1/${kind}s/${segment(name)}`;
  }

  /** Renews a hold for its full time. A stale hold stays lost. */
  renew(claim: HoldClaim): Promise<RenewOutcome> {
    return this.#renewed(claim);
  }

  /** Changes how long a hold lasts without a renewal, as far as the settings allow it. */
  extend(claim: HoldClaim, ttlMs: number): Promise<RenewOutcome> {
    return this.#renewed({ ...claim, ttlMs });
  }

  /**
   * Releases a hold; a token of an earlier grant changes nothing. Without a token, it releases the holder's only hold, and
   * answers `ambiguous` if there are several.
   */
  release(claim: { readonly holder: string; readonly token?: Token }): Promise<ClaimReleaseOutcome> {
    return this.releaseWith(claim);
  }

  /** @internal */
  async releaseWith(claim: object, more: Pick<Ask, 'onUnsure'> = {}): Promise<ClaimReleaseOutcome> {
    try {
      await this.post('release', claim, { isKeyed: true, ...more });
      return { kind: 'released' };
    } catch (error) {
      const { code, tokens } = refusedWith(error, 'not-owner', 'not-held', 'ambiguous');
      if (code === 'ambiguous') return { kind: 'ambiguous', tokens: tokens as readonly Token[] };
      return { kind: code === 'not-owner' ? 'not-owner' : 'already-free' };
    }
  }

  /** Ends every hold, for administrators. The holders get the reason. */
  async break(by: Breaking): Promise<{ readonly broken: number }> {
    try {
      const { broken } = await this.post<{ broken: number }>('break', by, { isKeyed: true });
      return { broken };
    } catch (error) {
      refusedWith(error, 'not-held');
      return { broken: 0 };
    }
  }

  /** Sets rules that bind every holder from its next grant on, for administrators. Fields left out stay as they are. */
  async configure(settings: Settings): Promise<void> {
    await this.ask({ method: 'PUT', body: settings }, 'settings');
  }

  /** @internal */
  protected ask<T>(ask: Omit<Ask, 'path'>, what?: string): Promise<T> {
    const path = what === undefined ? this.#path : `${this.#path}/${what}`;
    return this.connected.requests.ask<T>({ ...ask, path });
  }

  /** @internal */
  protected post<T>(what: string, body: object, more: Partial<Ask> = {}): Promise<T> {
    return this.ask<T>({ ...more, method: 'POST', body }, what);
  }

  /**
   * Asks for a hold that only `renew` keeps alive, without waiting: answers the hold, or a ticket that keeps the place in the
   * queue while the caller is away. Call `collect` with the ticket within `ticketMs`.
   */
  async askDetached(options: Asked & { readonly holder: string }): Promise<TicketAnswer<Detached>> {
    const { waitMs: _waitMs, signal, onWaiting: _onWaiting, ...asked } = options;
    const { holder } = asked;
    const body = { ...asked, ...this.terms, waitMs: 0 };
    const answer = await unlessAborted(this.#asked(body), signal, (late) => this.#givenBack(late, holder));
    return 'grant' in answer ? { kind: 'acquired', hold: this.detached(answer.grant) } : waitingOf(answer);
  }

  /** Goes on with a request that has a ticket, for at most `waitMs`. Throws `NotAcquired` if it was refused. */
  async collect({ ticket, holder }: TicketClaim, options: CollectOptions = {}): Promise<Collected<Detached>> {
    const { waitMs = 0, signal } = options;
    const { clock } = this.connected.requests;
    const begun = instant(clock);
    for (;;) {
      const leftMs = Math.max(0, waitMs - sinceMs(clock, begun));
      const answer = await this.#goneOn({ holder, ticket }, leftMs, signal).catch((error: unknown) => {
        // The request keeps its place: the caller may go on with the ticket, or withdraw it.
        if (signal?.aborted !== true || error !== signal.reason) throw error;
        return { outcome: 'waiting', ticket, position: null, holders: [] } as const;
      });
      if (answer === undefined) return { kind: 'gone' };
      if ('grant' in answer) return { kind: 'acquired', hold: this.detached(answer.grant) };
      if (sinceMs(clock, begun) >= waitMs || signal?.aborted === true) return waitingOf(answer);
    }
  }

  /** Takes a request that has a ticket out of the queue, and releases its hold if it was granted. */
  async withdraw({ ticket, holder }: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }> {
    const ask = { method: 'POST', path: `${this.#path}/withdraw`, body: { holder, ticket }, isKeyed: true } as const;
    return { kind: (await this.connected.requests.did(ask, 'gone')) ? 'withdrawn' : 'gone' };
  }

  /** @internal The fields of every request for it. */
  protected abstract get terms(): object;

  /** @internal */
  protected abstract detached(grant: Grant): Detached;

  /** The grant, or the ticket that keeps the place. */
  async #asked(body: object): Promise<Given | WaitingAnswer> {
    const { requests, holds, reentries } = this.connected;
    const since = instant(requests.clock);
    const path = `${this.#path}/acquire`;
    const before = new Set(holds.values());
    this.connected.asks.add(before);
    const { body: answer, isRepeat } = await requests
      .send({ method: 'POST', path, body, isKeyed: true })
      .finally(() => this.connected.asks.delete(before));
    if ((answer as WaitingAnswer).outcome === 'waiting') return answer as WaitingAnswer;
    const grant = answer as Grant;
    const ended = [...before].find(({ id, isOver }) => id === grant.id && isOver);
    if (ended !== undefined) {
      // The answer is a re-entry into a hold that this program has released meanwhile, so it is worth nothing.
      await ended.release().catch(() => undefined);
      return this.#asked(body);
    }
    // Also if nobody waits for this answer any more: after an upgrade, the old token is of no use.
    for (const hold of [...holds.values(), ...reentries]) if (hold.id === grant.id) hold.changed(grant);
    // A repeat may find the hold that its first attempt got, which has all that this request wants.
    const mayBeOwn = isRepeat && (grant.outcome === 'extended' || grant.outcome === 'already-held');
    const given = { grant, since, isReentry: isReentry(grant) && (holds.has(grant.id) || !mayBeOwn) };
    try {
      return await this.#fresh(given);
    } catch (error) {
      await this.#givenBack(given, grant.holder).catch(() => undefined);
      throw error;
    }
  }

  /**
   * The time of a grant counts from before its request was sent, which may have waited at the server, or been repeated until
   * one could be reached: an old grant would be lost as soon as its caller has it.
   */
  async #fresh(given: Given, signal?: AbortSignal): Promise<Given> {
    const { clock } = this.connected.requests;
    const { holder, token, ttlMs } = given.grant;
    if (sinceMs(clock, given.since) < ttlMs * OLD_PART) return given;
    const renewed = instant(clock);
    const outcome = await this.#renewed({ holder, token }, { ...renewal(ttlMs), signal });
    if (!('ttlMs' in outcome)) throw new NotAcquired(this.resource, { kind: 'lost' });
    return { ...given, renewed, grant: { ...given.grant, ttlMs: outcome.ttlMs } };
  }

  /** @internal Waits in the queue, over as many requests as it takes. */
  protected async waited(options: RemoteOptions, mayWait: boolean, more: object = {}): Promise<Given> {
    const { waitMs, signal, onWaiting, holder = this.connected.holder ?? `client:${newKey()}`, ...rest } = options;
    const queues = mayWait && waitMs !== 0 && rest.strategy !== 'fail-fast';
    const body = {
      holder,
      ttlMs: this.connected.ttlMs,
      ...rest,
      ...this.terms,
      ...more,
      ...(queues ? { waitMs: 0 } : { wait: false }),
    };
    const begun = instant(this.connected.requests.clock);
    for (let hasTold = false; ;) {
      const answer = await unlessAborted(this.#asked(body), signal, (late) => this.#givenBack(late, holder)).catch(
        (error: unknown) => {
          throw abortedOr(error, this.resource, signal);
        },
      );
      if ('grant' in answer) return answer;
      const { holders, position } = answer;
      if (!hasTold) onWaiting?.({ holders: holders as never, ...(position !== null && { position }) });
      hasTold = true;
      const collected = await this.#collected(answer, holder, begun, options);
      // No server could be reached for longer than the time of the hold, so the place in the queue is gone.
      if (collected !== undefined) return collected;
    }
  }

  async #collected(
    first: WaitingAnswer,
    holder: string,
    begun: ReturnType<typeof instant>,
    { waitMs = Number.POSITIVE_INFINITY, ttlMs = this.connected.ttlMs, signal }: RemoteOptions,
  ): Promise<Given | undefined> {
    const { clock } = this.connected.requests;
    const { ticket } = first;
    let { holders } = first;
    try {
      for (;;) {
        const leftMs = waitMs - sinceMs(clock, begun);
        if (leftMs <= 0) throw new NotAcquired(this.resource, { kind: 'timed-out', waitedMs: waitMs, holders });
        const answer = await this.#goneOn({ holder, ticket }, Math.min(leftMs, ttlMs * WAIT_PART), signal);
        if (answer === undefined || 'grant' in answer) return answer;
        ({ holders } = answer);
      }
    } catch (error) {
      // Withdraws, so that the next in line moves up at once and a grant that is under way is released.
      await this.#withdrawn(holder, ticket);
      throw abortedOr(error, this.resource, signal);
    }
  }

  /** Sends a ticket until there is an answer; undefined if the ticket is gone. */
  async #goneOn(
    claim: TicketClaim,
    leftMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Given | WaitingAnswer | undefined> {
    const since = instant(this.connected.requests.clock);
    const waitMs = Math.min(leftMs, LONGEST_WAIT_MS);
    const more = { waitMs, signal, retryMs: Number.POSITIVE_INFINITY };
    try {
      const answer = await this.post<Grant | WaitingAnswer>('acquire', { ...claim, waitMs }, more);
      return answer.outcome === 'waiting'
        ? answer
        : await this.#fresh({ grant: answer, since, isReentry: false }, signal);
    } catch (error) {
      refusedWith(error, 'gone');
      return undefined;
    }
  }

  async #withdrawn(holder: string, ticket: string): Promise<void> {
    await this.post('withdraw', { holder, ticket }, { retryMs: 0 }).catch(() => undefined);
  }

  /**
   * Releases a hold that its caller gave up waiting for; nobody else knows of it. What it made of a hold that its holder had
   * stays: other re-entries may rely on it by now.
   */
  async #givenBack(late: Given | WaitingAnswer, holder: string): Promise<void> {
    if (!('grant' in late)) return this.#withdrawn(holder, late.ticket);
    if (!late.isReentry) await this.release({ holder, token: late.grant.token });
  }

  /** @internal The present token of a hold; undefined if the hold is over. */
  async tokenOf(hold: string, retryMs: number | undefined): Promise<Token | undefined> {
    const ask = { method: 'GET', ...(retryMs !== undefined && { retryMs }) } as const;
    const { holds } = await this.ask<{ readonly holds: readonly Pick<DetachedHold, 'id' | 'token'>[] }>(ask);
    return holds.find(({ id }) => id === hold)?.token;
  }

  /** @internal */
  async renewWithin(claim: HoldClaim, retryMs: number): Promise<RenewOutcome> {
    return this.#renewed(claim, renewal(retryMs));
  }

  async #renewed(
    body: HoldClaim & { readonly ttlMs?: number },
    how: Pick<Ask, 'retryMs' | 'answerMs' | 'signal'> = {},
  ): Promise<RenewOutcome> {
    try {
      const { outcome, ttlMs, renewWithinMs } = await this.post<{
        outcome: 'refreshed' | 'attached';
        ttlMs: number;
        renewWithinMs?: number;
      }>('renew', body, how);
      return { kind: outcome, ttlMs, renewWithinMs: renewWithinMs ?? ttlMs };
    } catch (error) {
      return { kind: refusedWith(error, 'gone', 'not-owner').code === 'gone' ? 'lost' : 'not-owner' };
    }
  }

  /** @internal */
  keep<H extends RemoteHold>(hold: H): H {
    const { holds, reentries } = this.connected;
    if (hold.isReentry) reentries.add(hold);
    else {
      holds.set(hold.id, hold);
      for (const had of this.connected.asks) had.add(hold);
    }
    const outer = holds.get(hold.id);
    if (outer === undefined) return hold;
    // The answer to a re-entry may arrive before that to the outer request.
    for (const inner of reentries) if (inner.id === hold.id) inner.restOn(outer);
    return hold;
  }

  /** @internal */
  endReentries(outer: RemoteHold, why: LossReason): void {
    if (outer.isReentry) return;
    for (const inner of [...this.connected.reentries]) if (inner.id === outer.id) inner.lose(why);
  }

  /** @internal */
  forget(hold: RemoteHold): void {
    const { holds, reentries } = this.connected;
    reentries.delete(hold);
    if (holds.get(hold.id) === hold) holds.delete(hold.id);
  }
}

function waitingOf({ ticket, position, holders }: WaitingAnswer): Waiting {
  return { kind: 'waiting', ticket, position: position ?? undefined, holders };
}

/** The holder of a detached hold: `renew` and `release` need it to find the hold. */
export function holderIn({ holder }: Pick<Connected, 'holder'>, given: string | undefined): string {
  const named = given ?? holder;
  if (named !== undefined) return named;
  throw new Failure('invalid', 'holder is missing: renew and release need it to find this hold');
}
