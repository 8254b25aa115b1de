/** What `top` knows: the state as it was last read, and the events that it has heard of. */
import type { Everything } from '../../json/status.ts';
import type { SignalboxEvent } from '../../runtime/observe/event-types.ts';
import type { BoardView } from '../../github/board.ts';

export interface Board {
  /** Which store, as the user named it. */
  readonly store: string;
  /** Undefined until the first look has been answered. */
  readonly everything: Everything | undefined;
  /** The newest first. */
  readonly events: readonly SignalboxEvent[];
  /** Deadlocks of the last hour that were resolved; the newest first. */
  readonly deadlocks: readonly Deadlock[];
  /** How long a wait for a resource usually takes, in milliseconds; missing if no wait has ended yet. */
  readonly usualWaits: ReadonlyMap<string, number>;
  /** Since when the store does not answer, and what it says; undefined if it answers. */
  readonly trouble: { readonly since: number; readonly message: string } | undefined;
  /** The locks of a repository on GitHub; undefined if `top` was asked for none. */
  readonly github: BoardView | undefined;
}

export type Deadlock = Extract<SignalboxEvent, { readonly cycle: unknown }>;

const MOST_EVENTS = 500;
const MOST_WAITS = 15;
const DEADLOCK_MS = 3_600_000;

export function emptyBoard(store: string): Board {
  const nothing = { events: [], deadlocks: [], usualWaits: new Map<string, number>() };
  return { store, everything: undefined, ...nothing, trouble: undefined, github: undefined };
}

/** Gathers from events what the state does not show: what happened, and how long waits take. */
export class Heard {
  #events: SignalboxEvent[] = [];
  #deadlocks: Deadlock[] = [];
  /** Revision and place of the last event of tasks, and of all others: each come in their order. */
  readonly #last = { tasks: [-1, -1], others: [-1, -1] };
  /** When each request that waits has begun to, by resource and holder. */
  readonly #waiting = new Map<string, number>();
  /** The last waits of each resource. */
  readonly #waits = new Map<string, number[]>();

  /** Skips events that are known already: after a failure the past is read again. */
  hear(event: SignalboxEvent): void {
    if (!this.#isNew(event)) return;
    this.#events.unshift(event);
    if (this.#events.length > MOST_EVENTS) this.#events.length = MOST_EVENTS;
    if ('cycle' in event) this.#deadlocks.unshift(event);
    const who = `${event.resource}\n${event.holder}`;
    const word = event.type.slice(event.type.indexOf(':') + 1);
    if (word === 'queued') this.#waiting.set(who, event.at);
    const since = this.#waiting.get(who);
    if (word === 'queued' || since === undefined) return;
    if (word === 'acquired') this.#waits.set(event.resource, [...this.#waitsOf(event.resource), event.at - since]);
    this.#waiting.delete(who);
  }

  told(now: number): Pick<Board, 'events' | 'deadlocks' | 'usualWaits'> {
    this.#deadlocks = this.#deadlocks.filter(({ at }) => now - at < DEADLOCK_MS);
    const usualWaits = new Map([...this.#waits].map(([resource, waits]) => [resource, middle(waits)]));
    return { events: this.#events, deadlocks: this.#deadlocks, usualWaits };
  }

  #isNew({ id, type }: SignalboxEvent): boolean {
    if (id === undefined) return true;
    const source = type.startsWith('task:') ? 'tasks' : 'others';
    const [revision = 0, place = 0] = id.split('.').map(Number);
    const [last = -1, lastPlace = -1] = this.#last[source];
    if (revision < last || (revision === last && place <= lastPlace)) return false;
    this.#last[source] = [revision, place];
    return true;
  }

  #waitsOf(resource: string): readonly number[] {
    return (this.#waits.get(resource) ?? []).slice(1 - MOST_WAITS);
  }
}

function middle(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
