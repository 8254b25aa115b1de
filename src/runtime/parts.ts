/**
 * The parts of a signalbox that `signalbox run` does not use if all goes well and it need not wait. Each begins when it is first
 * used, so that such a start loads the code of none of them (docs/decisions/0051): together they are more than all that it needs.
 */
import { AccessTokens } from './access/tokens.ts';
import { OnceKeys } from './access/once.ts';
import { Bus } from './bus/bus.ts';
import { Executor } from './guards/executor.ts';
import { Guards } from './guards/guards.ts';
import { StaleHolds } from './guards/stale-holds.ts';
import { MemberFeed } from './members/feed.ts';
import { type Lead, leadOn } from './members/lead.ts';
import { Members } from './members/members.ts';
import { OwnMemberships } from './members/own-memberships.ts';
import { Deadlocks } from './observe/deadlocks.ts';
import { EventLog } from './observe/event-log.ts';
import { Events } from './observe/events.ts';
import { Pipelines } from './pipelines/pipelines.ts';
import type { Runtime, RuntimeObserver } from './runtime.ts';
import type { Signalbox, SignalboxSettings } from './signalbox.ts';
import { Dispatch } from './tasks/dispatch.ts';
import { Tasks } from './tasks/tasks.ts';
import { WitnessLog } from './witness/log.ts';

export class Parts {
  readonly #runtime: Runtime;
  readonly #settings: SignalboxSettings;
  readonly #box: Pick<Signalbox, 'children' | 'lock'>;
  #bus: Bus | undefined;
  #tasks: Tasks | undefined;
  #members: Members | undefined;
  #guards: Guards | undefined;
  #pipelines: Pipelines | undefined;
  #witness: WitnessLog | undefined;
  #tokens: AccessTokens | undefined;
  #once: OnceKeys | undefined;
  #eventLog: EventLog | undefined;
  #lead: Lead | undefined;
  #feed: MemberFeed | undefined;
  #dispatch: Dispatch | undefined;
  #events: Events | undefined;
  #deadlocks: Deadlocks | undefined;
  #staleHolds: StaleHolds | undefined;
  #executor: Executor | undefined;

  constructor(runtime: Runtime, settings: SignalboxSettings, box: Pick<Signalbox, 'children' | 'lock'>) {
    this.#runtime = runtime;
    this.#settings = settings;
    this.#box = box;
    // Every wait needs a look, even if nothing has used this part before.
    runtime.observedBy({ waitChanged: () => this.deadlocks.look() });
  }

  get bus(): Bus {
    const { store, clock, stopped } = this.#runtime;
    return (this.#bus ??= new Bus(store, clock, stopped, () => Promise.resolve()));
  }

  get tasks(): Tasks {
    return (this.#tasks ??= new Tasks(this.#runtime, this.dispatch));
  }

  get members(): Members {
    return (this.#members ??= new Members(this.#runtime, this.feed, this.#observing(new OwnMemberships()), this.lead));
  }

  get guards(): Guards {
    return (this.#guards ??= new Guards(this.#runtime, this.executor));
  }

  get pipelines(): Pipelines {
    return (this.#pipelines ??= new Pipelines(this.#runtime, {
      lock: (name) => this.#box.lock(name),
      children: this.#box.children,
      guards: this.executor,
      adapters: this.#settings.given,
      url: this.#settings.url,
    }));
  }

  get witness(): WitnessLog {
    return (this.#witness ??= new WitnessLog(this.#runtime));
  }

  get tokens(): AccessTokens {
    return (this.#tokens ??= new AccessTokens(this.#runtime));
  }

  get once(): OnceKeys {
    return (this.#once ??= new OnceKeys(this.#runtime));
  }

  get eventLog(): EventLog {
    return (this.#eventLog ??= new EventLog(this.#runtime));
  }

  get lead(): Lead {
    return (this.#lead ??= leadOn(this.#runtime, (name) => this.#box.lock(name)));
  }

  get feed(): MemberFeed {
    return (this.#feed ??= new MemberFeed(this.#runtime, this.#settings.membership));
  }

  get dispatch(): Dispatch {
    return (this.#dispatch ??= new Dispatch(this.#runtime, this.#settings.maintains));
  }

  get events(): Events {
    return (this.#events ??= this.#observing(new Events(this.#runtime, this.dispatch.feed)));
  }

  get deadlocks(): Deadlocks {
    return (this.#deadlocks ??= new Deadlocks(this.#runtime));
  }

  get executor(): Executor {
    if (this.#executor !== undefined) return this.#executor;
    const looks = { tasks: this.tasks, pipelines: { look: (id: string) => this.pipelines.look(id) } };
    const { adapters } = this.#settings;
    return (this.#executor = new Executor(this.#runtime, this.events, this.staleHolds, looks, adapters));
  }

  get staleHolds(): StaleHolds {
    const { maintains, reclaim } = this.#settings;
    return (this.#staleHolds ??= this.#observing(new StaleHolds(this.#runtime, maintains && reclaim)));
  }

  /** Ends what has begun. */
  close(): void {
    this.#dispatch?.close();
  }

  /** Connects an observer. Until it begins, it has no subscribers, watches or members to notify. */
  #observing<T extends RuntimeObserver>(observer: T): T {
    this.#runtime.observedBy(observer);
    return observer;
  }
}
