/** What locks and semaphores share: acquire, break, configure, inspect. Users never see it. */
import {
  type Hold as Grant,
  isStale,
  type Json,
  type Request,
  requestProblem,
  type Settings,
  settingsProblem,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { Acquisition, type AnyWriter, type Deliver, type WaitOptions } from './acquisition.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { anchorKey, decode, type ResourceKind, tieIn } from '../layout.ts';
import type { Coordinated, Machine } from '../write/machines.ts';
import { type Doer, optionsProblem } from '../options.ts';
import { frozenCopy, ownCopy } from '../own-copy.ts';
import { sessionWithin } from './session-in-time.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { strategyFields } from '../../core/strategy.ts';
import type { Session } from '../session/session.ts';
import { type KeyValue, readRange } from '../../store/index.ts';
import type { Snapshot } from '../write/snapshot.ts';
import type { Breaking, HolderView, RequestOptions } from './terms.ts';
import { persistently } from '../write/write-once.ts';

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
export class Resource<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome> {
  readonly name: string;
  readonly runtime: Runtime;
  readonly writer: ResourceWriter<State, Command, Outcome>;
  readonly #kind: ResourceKind;
  readonly #askFor: AskFor<AnyCommand>;

  constructor(runtime: Runtime, machine: Machine<State, Command, Outcome>, name: string, askFor: AskFor<AnyCommand>) {
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
        this.anyWriter,
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

  get anyWriter(): AnyWriter {
    return this.writer as unknown as AnyWriter;
  }

  submit(command: object, mark?: string): Promise<Outcome> {
    this.runtime.refuseIfClosed();
    return outcomeOf(this.writer, command as unknown as Command, this.runtime.giveUpAt(), mark);
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
    const view = await this.untilAnswered(
      () => new Promise<Snapshot<State>>((resolve, reject) => this.writer.look(resolve, reject)),
    );
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
  Resource<Coordinated, AnyCommand, AnyOutcome>,
  'runtime' | 'resource' | 'askUnder' | 'anyWriter' | 'submit' | 'leaseIdOf' | 'tieOf' | 'untilAnswered'
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
