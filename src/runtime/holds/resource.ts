/** What locks and semaphores share: `Resource` for the runtime, and `NamedResource`, which is what users see of it. */
import {
  shapeProblem,
  type Hold as Grant,
  isStale,
  type Json,
  type Request,
  requestProblem,
  type Settings,
  settingsProblem,
  type Token,
} from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { Acquisition, type Deliver } from './acquisition.ts';
import type { KeptHold } from './hold.ts';
import { type WaitOptions, sessionWithin } from './wait-limits.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { anchorKey, decode, tieIn } from '../layout.ts';
import type { Coordinated, ResourceKind } from '../../core/machines.ts';
import { type Doer, abortSignal, milliseconds, millisecondsFromZero, refuseWrongValues } from '../options.ts';
import { frozenCopy, ownCopy } from '../own-copy.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { strategyFields, STRATEGIES, type Strategy } from '../../core/strategy.ts';
import type { Session } from '../session/session.ts';
import { type KeyValue, readRange } from '../../store/index.ts';
import type { Snapshot } from '../write/snapshot.ts';
import type {
  Breaking,
  HolderView,
  RequestOptions,
  ClaimReleaseOutcome,
  DetachedHold,
  DetachedOptions,
  HoldClaim,
  RenewOutcome,
} from './terms.ts';
import { persistently } from '../write/write-once.ts';
import { acquireDetached, extend, type Given, release, renew } from './detached.ts';
import {
  askWithTicket,
  collect,
  type Collected,
  type CollectOptions,
  type TicketAnswer,
  type TicketClaim,
  withdraw,
} from './tickets.ts';

/** Builds the command that asks for a resource. */
export type AskFor<Command> = (
  id: string,
  lease: string,
  options: AskOptions | undefined,
  wait: boolean,
) => Request & Command;

type AskOptions = RequestOptions<unknown> & WaitOptions;

/**
 * A lock or a semaphore, as the objects of users see it: they keep it private, because nothing in it is for users.
 */
export class Resource<State extends Coordinated, Outcome extends AnyOutcome> {
  readonly name: string;
  readonly runtime: Runtime;
  readonly writer: ResourceWriter;
  readonly #kind: ResourceKind;
  readonly #askFor: AskFor<AnyCommand>;

  constructor(runtime: Runtime, machine: { readonly kind: ResourceKind }, name: string, askFor: AskFor<AnyCommand>) {
    this.runtime = runtime;
    this.name = name;
    this.#kind = machine.kind;
    this.writer = runtime.writer(machine, name);
    this.#askFor = askFor;
  }

  get resource(): string {
    return this.writer.resource;
  }

  /** `wait`: whether the request may join the queue. */
  ask<T, Options extends AskOptions | undefined>(
    options: Options,
    wait: boolean,
    deliver: Deliver<T, Options>,
  ): Promise<T> {
    const problem = options === undefined ? undefined : optionsProblem(options, this.#kind);
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    const { session } = this.runtime;
    // `waitMs: 0` means that the request does not join the queue; it does not limit the time of the store's answer.
    const queues = wait && options?.waitMs !== 0;
    if (session !== undefined) {
      // The look at the session read the clock a moment ago.
      const until = this.runtime.giveUpAt(this.runtime.lookedAt);
      return this.askUnder(session, options, queues, deliver, undefined, undefined, until);
    }
    const since = this.runtime.clock.monotonic();
    return sessionWithin(this.runtime, this.resource, options).then(
      (ready) => this.askUnder(ready.session, ready.options, queues, deliver, undefined, undefined, undefined, since),
      (error: unknown) => {
        this.runtime.measures.of(this.resource).failed();
        throw error;
      },
    );
  }

  /** `own`: the lease of a detached request, and then of the hold. `since`: when the caller asked, if that was earlier. */
  askUnder<T, Options extends AskOptions | undefined>(
    session: Session,
    options: Options,
    wait: boolean,
    deliver: Deliver<T, Options>,
    own?: { readonly lease: string; readonly ttlMs?: number },
    parks?: Acquisition<T, Options>['parks'],
    until?: number,
    since?: number,
  ): Promise<T> {
    const { runtime } = this;
    const asked = this.#askFor(runtime.nextId(session), session.id, options, wait);
    const command = own === undefined ? asked : { ...asked, ...own, detached: true as const };
    return new Promise((resolve, reject) => {
      const one = new Acquisition(
        runtime,
        this.writer,
        command,
        session.id,
        options,
        deliver,
        resolve,
        reject,
        until,
        since,
      );
      one.parks = parks;
      one.ask();
    });
  }

  submit(command: object, mark?: string): Promise<Outcome> {
    this.runtime.refuseIfClosed();
    return outcomeOf(this.writer, command as AnyCommand, this.runtime.giveUpAt(), mark) as Promise<Outcome>;
  }

  /** Submits a command that must run once, and undo no later one of another process: a mark finds it if its answer is lost. */
  submitOnce(command: object): Promise<Outcome> {
    return this.submit(command, this.runtime.options.newId());
  }

  async break(by: Breaking): Promise<{ readonly broken: number }> {
    const { holder, reason, token: upTo } = by;
    const problem = requestProblem(by, ['holder', 'reason']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const outcome = await this.submitOnce({ kind: 'break', holder, reason, ...(upTo !== undefined && { upTo }) });
    return { broken: (outcome as unknown as { holds?: readonly unknown[] }).holds?.length ?? 0 };
  }

  async configure(settings: Settings, { by }: Doer = {}): Promise<void> {
    const problem = settingsProblem(settings) ?? (by === undefined ? undefined : requestProblem({ holder: by }));
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    await this.submitOnce({ ...settings, kind: 'configure', ...(by !== undefined && { holder: by }) });
  }

  // Inspect

  async look(): Promise<{ view: Snapshot<State>; holders: readonly HolderView[] }> {
    this.runtime.refuseIfClosed();
    const view = (await this.untilAnswered(
      () => new Promise<Snapshot<Coordinated>>((resolve, reject) => this.writer.cached.look(resolve, reject)),
    )) as Snapshot<State>;
    const holds = view.state.record.holds as readonly Grant[];
    const holders = await Promise.all(holds.map((hold) => this.#holderView(hold)));
    return { view, holders };
  }

  async #holderView(hold: Grant): Promise<HolderView> {
    const leases = [hold.lease, ...(hold.limit === undefined ? [] : [hold.limit])];
    const found = await Promise.all(leases.map((lease) => this.leaseIdOf(lease)));
    const { store, stopped } = this.runtime;
    const [id] = found;
    const state = id === undefined ? null : await this.untilAnswered(() => store.leaseState(id, stopped));
    const gone = new Set(leases.filter((_, place) => found[place] === undefined));
    return {
      holder: hold.holder,
      token: hold.token,
      acquiredAt: hold.acquiredAt,
      lastHeartbeat: state === null ? undefined : this.runtime.clock.now() - (state.ttlMs - state.remainingMs),
      isStale: isStale(hold, { now: 0, revision: 0, gone: (lease) => gone.has(lease) }),
      maxHoldMs: hold.maxHoldMs,
      reason: hold.reason,
      metadata: ownCopy(hold.metadata),
    };
  }

  /** Repeats a read while the store is away. */
  untilAnswered<T>(work: () => Promise<T>): Promise<Awaited<T>> {
    return persistently(this.runtime, this.runtime.giveUpAt(), work);
  }

  async leaseIdOf(lease: string): Promise<string | undefined> {
    return (await this.#anchorOf(lease))?.lease ?? undefined;
  }

  /** The process with which a lease ends, if it was tied to one. */
  async tieOf(lease: string): Promise<ProcessIdentity | undefined> {
    const anchor = await this.#anchorOf(lease);
    return anchor === undefined ? undefined : tieIn(decode<Json>(anchor));
  }

  async #anchorOf(lease: string): Promise<KeyValue | undefined> {
    const { store, stopped } = this.runtime;
    const { pairs } = await this.untilAnswered(() => readRange(store, { key: anchorKey(lease) }, stopped));
    return pairs[0];
  }
}

/** A resource of either kind, where the difference does not matter. */
export type AnyResource = Pick<
  Resource<Coordinated, AnyOutcome>,
  'runtime' | 'resource' | 'askUnder' | 'writer' | 'submit' | 'leaseIdOf' | 'tieOf' | 'untilAnswered'
>;

/** The fields that every request has; those that were not given are left out. */
export function requestFields(
  id: string,
  lease: string,
  options: RequestOptions<unknown>,
): Request & { steal?: true; force?: true; sensitive?: true } {
  const { holder = id, priority = 0, reason, metadata, sensitive, maxHoldMs, strategy, within } = options;
  return {
    id,
    holder,
    lease,
    priority,
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata: frozenCopy(metadata as Json) }),
    ...(sensitive === true && { sensitive }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(within !== undefined && { within: frozenCopy(within) }),
    ...strategyFields(strategy),
  };
}

export function refused(resource: string, outcome: unknown): NotAcquired {
  return new NotAcquired(resource, outcome as Refusal);
}

type Any = AnyResource & Pick<Resource<Coordinated, AnyOutcome>, 'name' | 'break' | 'configure'>;

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

/**
 * @internal Makes the hold of a grant, and what its user sees of it. `reentries`: the outcomes of a holder that had it already.
 * `check` throws if the caller must not get it.
 */
export function holdMaker<Kept extends KeptHold, Shown, Options>(
  made: new (...of: never) => Kept,
  shown: new (kept: Kept) => Shown,
  reentries: readonly string[],
  check?: (kept: Kept, options: Options) => void,
): Deliver<Shown, Options> {
  const make = made as unknown as new (...of: ConstructorParameters<typeof KeptHold>) => Kept;
  return ({ kind, hold }, options, { runtime, writer }) => {
    if (hold === undefined) return undefined;
    const kept = new make(runtime, writer, hold, runtime.sender.id, reentries.includes(kind));
    check?.(kept, options);
    const given = kept.handOut();
    return given instanceof Promise ? given.then((handed) => new shown(handed)) : new shown(given);
  };
}

/** @internal What a try answers: the outcome, with the hold if there is one. */
export function attemptOf<H, Attempt>(
  outcome: AnyOutcome,
  hold: H | Promise<H> | undefined,
): Attempt | Promise<Attempt> {
  if (hold === undefined) return { ...outcome, ok: false } as Attempt;
  if (hold instanceof Promise) return hold.then((given) => ({ ...outcome, ok: true, hold: given }) as Attempt);
  return { ...outcome, ok: true, hold } as Attempt;
}

const WAIT = ['waitMs', 'signal', 'onWaiting'];
/** The options of a request for several resources at once: the others belong to each resource, or do not exist for several. */
const TOGETHER = ['holder', 'priority', 'reason', 'metadata', 'sensitive', 'within', ...WAIT];
const SINGLE = [...TOGETHER, 'maxHoldMs', 'strategy'];
const KNOWN = {
  together: TOGETHER,
  lock: [...SINGLE, 'mode'],
  semaphore: [...SINGLE, 'weight'],
  detached: [...SINGLE, 'mode', 'weight', 'ttlMs', 'ticketMs', 'pid'],
} as const;

/** What is wrong with the options of a request of this kind; undefined if nothing is. */
export function optionsProblem(options: unknown, kind: keyof typeof KNOWN): string | undefined {
  const shape = shapeProblem(options, KNOWN[kind]);
  if (shape !== undefined) return shape;
  const { strategy, reason, sensitive, signal, onWaiting } = options as Readonly<Record<string, unknown>>;
  if (strategy !== undefined && !STRATEGIES.includes(strategy as Strategy)) {
    return `strategy is ${shown(strategy)}; expected ${STRATEGIES.map(shown).join(' or ')}`;
  }
  if (strategy === 'force' && (reason ?? '') === '') return 'strategy is "force", which has to give a reason';
  if (sensitive !== undefined && typeof sensitive !== 'boolean')
    return `sensitive is ${shown(sensitive)}; expected true or false`;
  if (signal !== undefined && !(signal instanceof AbortSignal)) return `signal is ${shown(signal)}, not an AbortSignal`;
  if (onWaiting !== undefined && typeof onWaiting !== 'function') {
    return `onWaiting is ${shown(onWaiting)}, not a function`;
  }
  // The weight is not checked here: the machine refuses an impossible weight, as it does one that is too large.
  return requestProblem({ ...(options as object), weight: undefined });
}
