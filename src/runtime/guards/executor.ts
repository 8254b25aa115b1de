/**
 * The guard executor: gathers the inputs of guards, has the core judge each guard, and tells when to look again.
 *
 *     check ──▶ requiredInputs ──▶ gather, each once and concurrently ──▶ checkGuard ──▶ outcome
 *     watch ──▶ next ──▶ an event, a poll or a resync ──▶ check again
 */
import type { Adapters } from '../../adapters/adapters.ts';
import {
  checkGuard,
  type Condition,
  type Event,
  explain,
  type Guard,
  type GuardOutcome,
  type Input,
  type Inputs,
  type Json,
  needsCommands,
  type Own,
  requiredInputs,
} from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { Events } from '../observe/events.ts';
import { abortSignal, aHolder, anObject, flag, milliseconds } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { WakeHub } from './wake-hub.ts';
import { withoutSlow } from './slow-regexes.ts';
import { Gatherer } from './gather.ts';
import type { StaleHolds } from './stale-holds.ts';
import type { Looks } from './looks.ts';
import { Reads } from './reads.ts';
import type { GuardLook } from './wait.ts';
import type { GuardWatch } from './watch.ts';

/** Looks at guards. */
export interface GuardExecutor {
  /** Gathers what all of these guards need, each input once and concurrently, and judges each guard. */
  check(guards: readonly Guard[], options?: CheckOptions): Promise<readonly GuardOutcome[]>;
  /** Resolves once the watch misses nothing any more. */
  watch(guards: readonly Guard[], options?: WatchOptions): Promise<GuardWatch>;
}

/** How to look at a condition. */
export interface CheckOptions {
  /** Ends the look when it aborts. */
  readonly signal?: AbortSignal;
  /** Holds of this holder, or of these, do not count: a phase may look whether its own lock is free. */
  readonly own?: Own;
  /** Without it, the adapters of the signalbox. */
  readonly adapters?: Adapters;
  /** Emits no `guard:*` events: the caller emits its own. */
  readonly isQuiet?: boolean;
  /** Runs commands only once everything else passes: an open issue must not cost a test run at every look. */
  readonly commandsLast?: boolean;
}

/** How to watch guards. */
export interface WatchOptions {
  /** The interval between looks at inputs that announce no changes, such as files. */
  readonly pollMs?: number;
  /** Without it, the adapters of the signalbox. */
  readonly adapters?: Adapters;
  /** As in `check`: holds of this holder, or of these, do not count. */
  readonly own?: Own;
}

export const DEFAULT_POLL_MS = 2_000;
/** The shortest interval for clients of a server: their looks at files and commands cost the server's machine. */
export const SHORTEST_POLL_AT_SERVER_MS = 1_000;

export const CHECK = { signal: abortSignal, own: aHolder, adapters: anObject, isQuiet: flag, commandsLast: flag };
export const WATCH = { pollMs: milliseconds, adapters: anObject, own: aHolder };

const NOT_RUN = { error: 'not run yet; everything else has to pass first' };

export class Executor implements GuardExecutor {
  readonly #runtime: Runtime;
  readonly #gatherer: Gatherer;
  readonly #wakeHub: WakeHub;
  readonly #adapters: () => Promise<Adapters>;

  /** `adapters`: what guards look at besides the store. Loaded when a guard needs them. */
  constructor(
    runtime: Runtime,
    events: Events,
    staleHolds: StaleHolds,
    looks: Looks,
    adapters: () => Promise<Adapters>,
  ) {
    this.#runtime = runtime;
    this.#gatherer = new Gatherer(new Reads(runtime.store, runtime.stopped), looks, staleHolds.saw);
    this.#wakeHub = new WakeHub(runtime, events, staleHolds);
    this.#adapters = adapters;
  }

  async check(guards: readonly Guard[], options: CheckOptions = {}): Promise<readonly GuardOutcome[]> {
    const tell: Tell = options.isQuiet === true ? () => undefined : this.#tell.bind(this);
    for (const { id } of guards) tell(id, 'evaluating');
    const inputs = await this.inputsFor(
      guards.map(({ condition }) => condition),
      options,
      undefined,
      guards.filter(({ onFailure }) => onFailure !== 'warn').map(({ condition }) => condition),
    );
    return guards.map((guard) => this.#judged(guard, inputs, tell));
  }

  /** Judges one guard, with every node of its condition. */
  async look(guard: Guard, options: CheckOptions = {}): Promise<GuardLook> {
    this.#tell(guard.id, 'evaluating');
    const inputs = await this.inputsFor([guard.condition], options);
    const outcome = this.#judged(guard, inputs, this.#tell.bind(this));
    return { outcome, explanation: explain(guard.condition, inputs) };
  }

  #judged(guard: Guard, inputs: Inputs, tell: Tell): GuardOutcome {
    const outcome = checkGuard(guard, inputs);
    tell(guard.id, outcome.kind === 'passed' ? 'passed' : 'failed', outcome);
    return outcome;
  }

  /** `keepsAlive`: whether this watch alone keeps the process running. */
  async watch(
    guards: readonly Guard[],
    { pollMs = DEFAULT_POLL_MS, own }: WatchOptions = {},
    keepsAlive = true,
  ): Promise<GuardWatch> {
    this.#runtime.refuseIfClosed();
    if (!Number.isFinite(pollMs) || pollMs <= 0) {
      throw new Failure('invalid', `pollMs is ${shown(pollMs)}; expected a number of milliseconds above zero`);
    }
    return this.#wakeHub.watch(guards, { pollMs, keepsAlive, own });
  }

  /** `given`: inputs that are known already. `required`: the conditions that have to pass before commands run. */
  async inputsFor(
    conditions: readonly Condition[],
    { signal, own, adapters, commandsLast = false }: CheckOptions,
    given?: Partial<Inputs>,
    required: readonly Condition[] = conditions,
  ): Promise<Inputs> {
    this.#runtime.refuseIfClosed();
    const wanted = requiredInputs({ all: conditions });
    const gather = async (some: readonly Input[], known?: Partial<Inputs>): Promise<Inputs> => {
      const looked = await this.#gatherer.gather(some, {
        signal,
        own,
        given: known,
        adapters: adapters === undefined ? this.#adapters : () => Promise.resolve(adapters),
      });
      return withoutSlow({ all: conditions }, looked);
    };
    const first = commandsLast ? wanted.filter(({ kind }) => kind !== 'command') : wanted;
    let gathered = await gather(first, given);
    const rest = wanted.filter(({ key }) => !(key in gathered));
    const isNext = rest.length > 0 && needsCommands(conditions, required, gathered);
    if (isNext) gathered = await gather(rest, gathered);
    const looked = isNext ? wanted : first;
    const failed = looked.filter(({ key }) => gathered[key] === undefined || 'error' in gathered[key]);
    if (failed.length > 0) this.#wakeHub.failed(failed.map(({ key }) => key));
    if (isNext || rest.length === 0) return gathered;
    return { ...gathered, ...Object.fromEntries(rest.map(({ key }) => [key, NOT_RUN])) };
  }

  #tell(...[id, what, outcome]: Parameters<Tell>): void {
    const { kind: _kind, guard: _guard, ...details } = outcome ?? { kind: 'passed', guard: id };
    const event: Event = { type: `guard:${what}`, at: this.#runtime.clock.now(), holder: '', ...(details as Details) };
    this.#runtime.emit(`guard/${id}`, [event]);
  }
}

type Tell = (id: string, what: 'evaluating' | 'passed' | 'failed', outcome?: GuardOutcome) => void;
type Details = Readonly<Record<string, Json>>;
