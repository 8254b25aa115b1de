/**
 * Carries every request to etcd to its end: answered, refused, aborted, or timed out.
 *
 *     wait for a link ── send ── answered
 *          ▲               │
 *          └── again ◄─────┤  certainly not applied, or no harm in doing it twice
 *                          └─ otherwise: the outcome is unknown
 */
import type { Clock, Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { UNAVAILABLE } from '../../grpc/status.ts';
import { CallFailure } from '../../grpc/transport.ts';
import { Aborts } from './aborts.ts';
import type { Continuity } from './continuity.ts';
import { type EndpointListener, type EndpointOptions, Endpoints } from './endpoints.ts';
import type { Link } from './link.ts';
import { type Attempt, type Effect, Pending } from './pending.ts';
import { verdictOn } from './verdict.ts';

/** Logs in again on a link whose token has expired. */
export type Renew = (link: Link) => Promise<void>;

/** Deadlines are checked this often within a request's time. */
const TICKS = 10;
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;
const MOST_LOGINS = 2;

export class Calls implements EndpointListener {
  readonly endpoints: Endpoints;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #limitMs: number;
  readonly #renew: Renew;
  readonly #continuity: Continuity;
  /** In the order of their deadlines: all calls have the same time limit. */
  readonly #pending = new Set<Pending>();
  readonly #aborts = new Aborts<Pending>((call, reason) => this.#reject(call, reason));
  #ticking: Timer | undefined;
  #alive: Timer | undefined;
  /** Once this is closed: makes the error of every call. */
  #closed: (() => Failure) | undefined;

  constructor(options: EndpointOptions, renew: Renew) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#limitMs = options.requestTimeoutMs;
    this.#renew = renew;
    this.#continuity = options.continuity;
    this.endpoints = new Endpoints(options, this);
  }

  check(signal?: AbortSignal): void {
    if (this.#closed !== undefined) throw this.#closed();
    signal?.throwIfAborted();
  }

  make<T>(attempt: Attempt<T>, effect: Effect, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // Checked again, because a caller may make several requests: one made after the close would never end.
      this.check(signal);
      const deadline = this.#clock.monotonic() + this.#limitMs;
      const call = new Pending(attempt as Attempt<unknown>, effect, deadline, signal, resolve as never, reject);
      this.#pending.add(call);
      if (signal !== undefined) this.#aborts.add(signal, call);
      this.#alive ??= this.#clock.keepAlive?.();
      this.#ticking ??= this.#clock.timer(this.#limitMs / TICKS, this.#tick);
      this.#send(call);
    });
  }

  #send(call: Pending): void {
    const { link } = this.endpoints;
    if (link === undefined) return this.#queue(call);
    call.isQueued = false;
    call.link = link;
    call.sentAt = this.#clock.monotonic();
    call.giveUp = call.attempt(
      link,
      (answer) => {
        link.heard();
        this.endpoints.answered();
        this.#settle(call);
        call.resolve(answer as never);
      },
      (failure) => this.#failed(call, link, failure),
    );
  }

  #queue(call: Pending): void {
    call.isQueued = true;
    this.endpoints.seek();
  }

  #failed(call: Pending, link: Link, failure: CallFailure): void {
    call.giveUp = undefined;
    call.link = undefined;
    call.failures += 1;
    call.lastFailure = failure;
    const verdict = verdictOn(failure);
    if (verdict.kind !== 'unknown' && !failure.neverSent) {
      link.heard();
      this.endpoints.answered();
    }
    switch (verdict.kind) {
      case 'refused':
        return this.#reject(call, verdict.failure);
      case 'unknown-user':
        return this.#showAgain(call, link, failure);
      case 'elsewhere':
        // If there is no other server, this one may recover.
        if (!failure.neverSent && this.endpoints.hasOthers) this.endpoints.leave(link, failure);
        return this.#again(call);
      case 'later':
        return this.#again(call);
      case 'full':
        call.mayBeApplied = call.effect !== 'reads';
        return this.#giveUp(
          call,
          `etcd's database is full (${failure.message}): compact and defragment it, then disarm its alarm`,
        );
      case 'too-long':
        call.mayBeApplied = call.effect !== 'reads';
        return this.#giveUp(call, `${failure.message} (see docs/etcd.md, limits)`);
      case 'unknown':
        if (call.effect !== 'reads') call.mayBeApplied = true;
        if (call.effect === 'once') return this.#giveUp(call, failure.message);
        return this.#again(call);
    }
  }

  /** Sends it again: at once over another link, after a pause over the same one. */
  #again(call: Pending): void {
    const longest = Math.min(SHORTEST_PAUSE_MS * 2 ** call.failures, LONGEST_PAUSE_MS);
    if (this.endpoints.link === undefined && call.failures === 1) return this.#queue(call);
    call.pause = this.#clock.timer(longest * (0.5 + this.#random() / 2), () => {
      call.pause = undefined;
      this.#send(call);
    });
  }

  #showAgain(call: Pending, link: Link, failure: CallFailure): void {
    call.logins += 1;
    if (call.logins > MOST_LOGINS) return this.#reject(call, new Failure('forbidden', failure.message));
    this.#renew(link).then(
      () => {
        if (this.#pending.has(call)) this.#send(call);
      },
      // The call may have been aborted meanwhile; then it must not be sent.
      (error: unknown) => {
        if (this.#pending.has(call)) this.#notShown(call, error as CallFailure);
      },
    );
  }

  /** The login failed, not the call, so the call was certainly not applied. */
  #notShown(call: Pending, failure: CallFailure): void {
    call.lastFailure = failure;
    const verdict = verdictOn(failure);
    if (verdict.kind === 'refused') this.#reject(call, verdict.failure);
    else this.#again(call);
  }

  #settle(call: Pending): void {
    this.#pending.delete(call);
    if (call.signal !== undefined) this.#aborts.delete(call.signal, call);
    if (this.#pending.size > 0) return;
    this.#alive?.cancel();
    this.#alive = undefined;
  }

  #reject(call: Pending, error: unknown): void {
    if (!this.#pending.has(call)) return;
    call.release();
    this.#settle(call);
    call.reject(error);
  }

  #giveUp(call: Pending, why: string): void {
    const code = call.mayBeApplied ? 'outcome-unknown' : 'unavailable';
    const cause = call.lastFailure ?? this.endpoints.trouble;
    this.#reject(call, new Failure(code, `etcd: ${why}`, { cause }));
  }

  readonly #tick = (): void => {
    this.#ticking = undefined;
    const now = this.#clock.monotonic();
    for (const call of this.#pending) {
      if (call.deadline > now) break;
      if (call.link !== undefined && call.effect !== 'reads') call.mayBeApplied = true;
      this.#giveUp(call, this.#outOfTime(call));
    }
    this.#leaveIfSilent(now);
    this.#aborts.forgetIdle();
    if (this.#pending.size > 0) this.#ticking ??= this.#clock.timer(this.#limitMs / TICKS, this.#tick);
  };

  #outOfTime(call: Pending): string {
    const limit = `in ${Math.round(this.#limitMs)} ms`;
    const isLinked = call.link !== undefined || this.endpoints.link !== undefined;
    const trouble = isLinked ? call.lastFailure : (this.endpoints.trouble ?? call.lastFailure);
    const what = isLinked ? `no answer ${limit}` : `no server could be reached ${limit}`;
    return trouble === undefined ? what : `${what}: ${trouble.message}`;
  }

  /** Leaves a link that has answered nothing for half of a request's time while requests wait. */
  #leaveIfSilent(now: number): void {
    const { link } = this.endpoints;
    if (link === undefined) return;
    for (const call of this.#pending) {
      if (call.link !== link) continue;
      const silentMs = now - Math.max(call.sentAt, link.heardAt);
      if (silentMs < this.#limitMs / 2) return;
      const told = `${link.where} has not answered for ${Math.round(silentMs)} ms`;
      return this.endpoints.leave(link, new CallFailure(UNAVAILABLE, told, false));
    }
  }

  isWanted(): boolean {
    return this.#pending.size > 0;
  }

  linked(): void {
    this.#continuity.linked();
    for (const call of [...this.#pending]) {
      if (call.isQueued) this.#send(call);
    }
  }

  unlinked(link: Link, why: CallFailure): void {
    if (link.connection.isOpen) this.#takeElsewhere(link, why);
  }

  /** Requests that may be sent twice do not wait for the old link's answer. */
  #takeElsewhere(link: Link, why: CallFailure): void {
    for (const call of [...this.#pending]) {
      if (call.link !== link || call.effect === 'once') continue;
      call.giveUp?.();
      this.#failed(call, link, why);
    }
  }

  refused(failure: Failure): void {
    for (const call of [...this.#pending]) if (call.isQueued) this.#reject(call, failure);
  }

  close(why: () => Failure = closed): void {
    if (this.#closed !== undefined) return;
    this.#closed = why;
    for (const call of [...this.#pending]) this.#reject(call, why());
    this.#aborts.forgetIdle();
    this.#ticking?.cancel();
    this.endpoints.close();
  }
}

function closed(): Failure {
  return new Failure('closed', 'this store was closed');
}
