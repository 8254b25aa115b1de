/** The object that `open` gives: one store, and all primitives on it. */
import type { Adapters } from '../adapters/adapters.ts';
import {
  conditionProblem,
  type Condition,
  evaluate,
  explain,
  type Explanation,
  type Inputs,
  type Json,
  nameProblem,
  requestProblem,
  type Settings,
  type Verdict,
  shapeProblem,
} from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import type { Health } from '../store/index.ts';
import type { OnceKeys } from './access/once.ts';
import type { AccessTokens } from './access/tokens.ts';
import type { Bus } from './bus/bus.ts';
import { attach } from './holds/detached-change.ts';
import { Children } from './processes/children.ts';
import { DenialCounts, type Denials } from './observe/denials.ts';
import type { EventHandler, EventOf, EventPattern } from './observe/event-types.ts';
import type { EventLog } from './observe/event-log.ts';
import { followSince, type PastListener, type PastWindow } from './observe/past-events.ts';
import { LISTEN, listening, type ListenOptions, type Subscription, subscription } from './subscription.ts';
import { iterated } from './subscriber-iterator.ts';
import { CHECK, type CheckOptions } from './guards/executor.ts';
import type { Guards } from './guards/guards.ts';
import { ensureSlots, Semaphore } from './holds/semaphore.ts';
import { Lock } from './holds/lock.ts';
import type { Hold } from './holds/hold.ts';
import { Maintenance, type MaintenanceSettings } from './upkeep/maintenance.ts';
import type { Swept } from './upkeep/sweep.ts';
import type { LeadOptions, Term } from './members/lead.ts';
import type { Members } from './members/members.ts';
import type { MembershipView } from './members/membership-view.ts';
import type { Pipelines } from './pipelines/pipelines.ts';
import { type Probe, probed } from './upkeep/probe.ts';
import { runUnder, type HoldSet } from './holds/hold-set.ts';
import { type DetachedHold, settingsIn } from './holds/terms.ts';
import { abortSignal, refuseUnlessFunction, refuseWrongValues } from './options.ts';
import { Parts } from './parts.ts';
import type { Runtime } from './runtime.ts';
import { type SavedState, stateOf } from './upkeep/state/document.ts';
import { readState, writeState } from './upkeep/state/files.ts';
import { loadInto, type LoadOutcome } from './upkeep/state/load.ts';
import { restOf } from './upkeep/state/rest.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Malformed } from './stored.ts';
import type { Tracer } from './tracer.ts';
import { type Survey, surveyOf, type SurveyOptions } from './observe/survey/index.ts';
import { changedRetention, configureUnlessChanged } from './tasks/retention.ts';
import type { Tasks } from './tasks/tasks.ts';
import type { WitnessLog } from './witness/log.ts';
import type { TogetherAttempt, TogetherOptions } from './holds/together-write.ts';
import { acquireAllTogether, tryTogether } from './holds/together.ts';
import type { Want } from './holds/wants.ts';

export interface SignalboxSettings extends MaintenanceSettings {
  /** What guards look at besides the store; loaded when a guard needs it. */
  readonly adapters: () => Promise<Adapters>;
  /** The adapters that the caller passed, if any; without them, a pipeline looks from where it was started. */
  readonly given: Adapters | undefined;
  /** The URL by which other processes can open the store, if they can. */
  readonly url: string | undefined;
  /** The view that the caller passed, in place of the members in the store. */
  readonly membership?: MembershipView | undefined;
}

/** What `saveState` wrote. */
export interface SavedFiles {
  /** The paths of the files. */
  readonly files: readonly string[];
  /** What is in them. */
  readonly state: SavedState;
  /** Keys that cannot be read, and are in no file. */
  readonly malformed: readonly Malformed[];
}

/** Makes a detached hold, such as one that a ticket collected, a hold of this process. For the command line. */
export let attachIn: (box: Signalbox, want: Want, held: DetachedHold) => Promise<Hold>;

/** One store, and all primitives on it. */
export class Signalbox implements AsyncDisposable {
  readonly #runtime: Runtime;
  readonly #maintenance: Maintenance;
  readonly #denials: DenialCounts;
  readonly #parts: Parts;
  /** The child processes that work under holds. */
  readonly children: Children;
  /** Aborts when the store was removed, replaced or restored from a backup: nothing holds any more, and no call works. */
  readonly over: AbortSignal | undefined;

  /** @internal */
  constructor(runtime: Runtime, settings: SignalboxSettings) {
    this.#runtime = runtime;
    this.over = runtime.store.over;
    this.children = new Children(runtime);
    this.#parts = new Parts(runtime, settings, this);
    this.#denials = new DenialCounts(runtime);
    runtime.observedBy(this.#denials);
    this.#maintenance = new Maintenance(runtime, this.#parts, settings);
  }

  /** Plain keys of the store: put, get, watch. */
  get bus(): Bus {
    return this.#parts.bus;
  }

  /** Tasks, and the workers that claim them. */
  get tasks(): Tasks {
    return this.#parts.tasks;
  }

  /** The processes that have joined. */
  get members(): Members {
    return this.#parts.members;
  }

  /** Conditions that gate a step: check them, wait for them, register them. */
  get guards(): Guards {
    return this.#parts.guards;
  }

  /** Runs of phases that outlive the processes that drive them. */
  get pipelines(): Pipelines {
    return this.#parts.pipelines;
  }

  /** The record of every change, which shows tampering. */
  get witness(): WitnessLog {
    return this.#parts.witness;
  }

  /** Tokens by which programs reach a server: see `signalbox serve`. */
  get tokens(): AccessTokens {
    return this.#parts.tokens;
  }

  /** For a server: requests that are carried out once although they are sent twice. */
  get once(): OnceKeys {
    return this.#parts.once;
  }

  /** For a server: events in the order of the store, from a revision on. */
  get eventLog(): EventLog {
    return this.#parts.eventLog;
  }

  /** A lock by its name; nothing is asked of the store yet. `Meta`: the type of the metadata that its holders give. */
  lock<Meta = Json>(name: string): Lock<Meta> {
    return new Lock(this.#runtime, named(name, 'lock'));
  }

  /** A semaphore by its name. The capacity, `{ capacity: 3 }`, may be left out if another process has set it. */
  semaphore<Meta = Json>(name: string, options: { readonly capacity?: number } = {}): Semaphore<Meta> {
    const isNumber = typeof (options as unknown) === 'number';
    const problem = isNumber
      ? `its second argument is ${shown(options)}; expected an object with the capacity: { capacity: ${shown(options)} }`
      : (shapeProblem(options, ['capacity']) ?? requestProblem({ capacity: options.capacity }));
    if (problem !== undefined) throw new Failure('invalid', `semaphore ${name}: ${problem}`);
    return new Semaphore(this.#runtime, named(name, 'semaphore'), options.capacity);
  }

  /** Makes sure that the lock has these settings, which bind every holder; its holds stay. */
  async ensureLock<Meta = Json>(name: string, settings: Settings): Promise<Lock<Meta>> {
    const lock = this.lock<Meta>(name);
    await lock.configure(settings);
    return lock;
  }

  /**
   * Makes sure that the semaphore exists with this capacity, and with these settings, which bind every holder; its holds stay.
   * Throws if it has another capacity: `resize` changes it.
   */
  async ensureSemaphore<Meta = Json>(
    name: string,
    options: Settings & { readonly capacity: number },
  ): Promise<Semaphore<Meta>> {
    const shape = shapeProblem(options, ['capacity', 'onStale', 'maxHoldMs', 'ttlMs']);
    if (shape !== undefined) throw new Failure('invalid', `semaphore ${name}: ${shape}`);
    const { capacity } = options;
    const semaphore = this.semaphore<Meta>(name, { capacity });
    await ensureSlots(this.#runtime, semaphore.resource, capacity, settingsIn(options));
    return semaphore;
  }

  /** Waits until it can have all of them, or takes none. Throws `NotAcquired` if it cannot have them. */
  acquireAll(wants: readonly Want[], options?: TogetherOptions): Promise<HoldSet> {
    return acquireAllTogether(this.#runtime, wants, options);
  }

  /** Waits for all of them, runs `work`, and always releases them; throws `HoldLost` if one was lost meanwhile. */
  async runAll<T>(
    wants: readonly Want[],
    work: (holds: HoldSet) => T | Promise<T>,
    options?: TogetherOptions,
  ): Promise<T> {
    refuseUnlessFunction('the work', work);
    return runUnder(await this.acquireAll(wants, options), work);
  }

  /** Takes all of them, or none, without waiting. */
  tryAcquireAll(wants: readonly Want[], options?: TogetherOptions): Promise<TogetherAttempt> {
    return tryTogether(this.#runtime, wants, options);
  }

  static {
    attachIn = (box, want, held) => attach(box.#runtime, want, held);
  }

  /**
   * Runs `work` in one process of all that lead under this name; if it loses the lead, another one takes over, and this one
   * waits again. Resolves with what the work returns; `term.signal` tells the work to stop.
   */
  lead<T>(name: string, work: (term: Term) => T | Promise<T>, options?: LeadOptions): Promise<T> {
    return this.#parts.lead(named(name, 'lead'), work, options);
  }

  /**
   * Resolves once no event can be missed. Handlers may be async; each one gets its events in order. The process stays alive
   * until the subscription ends.
   */
  on<Pattern extends EventPattern>(
    pattern: Pattern,
    handler: EventHandler<Pattern>,
    options: ListenOptions = {},
  ): Promise<Subscription> {
    refuseWrongValues(options, LISTEN);
    return listening(this.#runtime, options, async () => {
      const events = await this.#parts.events.subscribe(pattern, handler as EventHandler);
      if (!pattern.startsWith('coordinator:')) return events;
      // Nobody writes these events: they follow from the view, which has to be followed.
      const members = await this.#parts.feed
        .listen(() => undefined)
        .catch((error: unknown) => {
          events.unsubscribe();
          throw error;
        });
      return subscription(() => {
        events.unsubscribe();
        members.unsubscribe();
      });
    });
  }

  /** The same as an async iterator, of all events if no pattern is given; ends when `signal` aborts or the signalbox is closed. */
  events<Pattern extends EventPattern = '*'>(
    pattern: Pattern = '*' as Pattern,
    options: { readonly signal?: AbortSignal } & ListenOptions = {},
  ): AsyncIterable<EventOf<Pattern>> {
    refuseWrongValues(options, { signal: abortSignal, ...LISTEN });
    const { signal, ...listen } = options;
    const over = signal === undefined ? this.#runtime.stopped : AbortSignal.any([signal, this.#runtime.stopped]);
    return iterated<EventOf<Pattern>>((handler) => this.on(pattern, handler, listen), over, this.over);
  }

  /** Whether a condition holds now. `given` inputs are not looked up; inputs that cannot be looked up count as missing. */
  async check(condition: Condition, given: Partial<Inputs> = {}, options: CheckOptions = {}): Promise<Verdict> {
    refuseUnlessCondition(condition);
    refuseWrongValues(options, CHECK);
    return evaluate(condition, await this.#parts.executor.inputsFor([condition], options, given));
  }

  /** For the command line: the events since `at` that the store still has, then new ones; or a part of them. */
  async eventsSince(
    pattern: EventPattern,
    at: number,
    listener: PastListener,
    signal: AbortSignal,
    window?: PastWindow,
  ): Promise<void> {
    await followSince(this.#runtime, pattern, at, listener, AbortSignal.any([signal, this.#runtime.stopped]), window);
  }

  /** The same as a tree, with a verdict and a reason on every leaf: `renderExplanation` makes lines of it. */
  async explain(condition: Condition, given: Partial<Inputs> = {}, options: CheckOptions = {}): Promise<Explanation> {
    refuseUnlessCondition(condition);
    refuseWrongValues(options, CHECK);
    return explain(condition, await this.#parts.executor.inputsFor([condition], options, given));
  }

  /** Runs maintenance now, not at its next turn (every 30 s): warns about stale holds, frees them, deletes what is not needed. */
  async maintain(): Promise<Swept> {
    this.#runtime.refuseIfClosed();
    return this.#maintenance.sweep();
  }

  /** Reads who holds what and who waits for whom, in the whole store at one revision. Makes no session, writes nothing. */
  survey(options?: SurveyOptions): Promise<Survey> {
    return surveyOf(this.#runtime, options);
  }

  /** How often requests were denied, in all processes that use this store; each adds its own every 30 s and when it closes. */
  async denials(): Promise<Denials> {
    this.#runtime.refuseIfClosed();
    return this.#denials.read();
  }

  /** What this process has counted and measured since it opened the store: see docs/metrics.md. */
  getMetrics(): Metrics {
    return this.#runtime.measures.view();
  }

  /** Calls `tracer` for every acquire, hold, claim and phase of this process as it happens; `unsubscribe` ends that. */
  trace(tracer: Tracer): Subscription {
    refuseUnlessFunction('begin of the tracer', (tracer as Partial<Tracer> | undefined)?.begin);
    return subscription(this.#runtime.measures.listen(tracer));
  }

  /** Writes all holds, tasks, pipelines and keys of the bus to JSON files in this directory, and gives their paths. */
  async saveState(dir: string): Promise<SavedFiles> {
    const survey = await this.survey();
    const malformed = [...survey.malformed];
    const rest = await restOf(this.#runtime, (one) => void malformed.push(one));
    const state = { ...stateOf(survey), ...rest, ...(await changedRetention(this.#runtime)) };
    return { files: await writeState(dir, state), state, malformed };
  }

  /**
   * Restores those files into this store: holds detached and with their tokens, tasks that a worker had as pending.
   * Refuses, and changes nothing, if one of them is in use here or exists already.
   */
  async loadState(dir: string): Promise<LoadOutcome> {
    this.#runtime.refuseIfClosed();
    const state = await readState(dir);
    const outcome = await loadInto(this.#runtime, state);
    if (outcome.kind === 'loaded' && state.retention !== undefined)
      await configureUnlessChanged(this.#runtime, state.retention);
    return outcome;
  }

  /** Tests a write to the store, and measures how long its change takes to arrive here; `writer` makes the write. */
  probe(writer: Signalbox = this): Promise<Probe> {
    return probed(this.#runtime, writer.#runtime);
  }

  /** Asks the store whether it works. */
  async health(): Promise<Health> {
    this.#runtime.refuseIfClosed();
    return this.#runtime.store.health();
  }

  /** Releases all holds of this process, and ends its waits. */
  async close(): Promise<void> {
    this.#maintenance.stop();
    this.#parts.close();
    await this.#denials.write();
    await this.#runtime.close();
  }

  /** Closes it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function named(name: string, what: string): string {
  const problem = nameProblem(name, what);
  if (problem !== undefined) throw new Failure('invalid', problem);
  return name;
}

function refuseUnlessCondition(condition: Condition): void {
  const problem = conditionProblem(condition);
  if (problem !== undefined) throw new Failure('invalid', problem);
}
