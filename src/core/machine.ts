/**
 * The machine contract. A resource is a named instance of a machine, and a machine is a pure
 * function from what was, what is asked and when, to what will be:
 *
 *     transition(state, command, moment) → { state, outcome, events, answers, losses }
 *
 * Nothing else is read, so a shell may run it again on a newer state after losing a write race,
 * put several commands into one write, and carry out the commands of others.
 */

import type { Loss } from './loss.ts';

/** Any value that JSON can express. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * T, if JSON can express it. An interface has no index signature, so it is not assignable to `Json` even if all of its fields
 * are: this looks at the fields.
 */
export type AsJson<T> = [T] extends [Json | undefined]
  ? T
  : T extends (...args: never) => unknown
    ? never
    : T extends object
      ? { readonly [Key in keyof T]: AsJson<T[Key]> }
      : Extract<T, Json | undefined>;

/**
 * Fencing token: strictly larger for every new grant of a resource, over reclaims and restarts. A holder
 * passes it along with each write, so that the resource itself can refuse a holder that slept past its lease.
 */
export type Token = number;

/** When, and knowing what, a decision is taken. */
export interface Moment {
  /** Milliseconds; written into holds and events for people, never compared between machines. */
  readonly now: number;
  /** The store's revision at which the state was read. */
  readonly revision: number;
  /** Whether a lease is known to have ended. An unknown lease counts as alive. */
  readonly gone: (lease: string) => boolean;
  /**
   * How many requests and holds of others one step may touch: stores limit what one transaction can hold. What is left
   * then is done by asking again: for what `unfinished` names, or to `settle`.
   */
  readonly most?: number;
}

export interface Step<State, Outcome> {
  /** The very same object if nothing changed: the runtime then writes nothing. */
  readonly state: State;
  readonly outcome: Outcome;
  /** With a change they travel with its write and reach everyone once; without one they stay local. */
  readonly events: readonly Event[];
  /** Requests that were asked earlier, waited, and are answered by this step. */
  readonly answers: readonly Answer<Outcome>[];
  /** Holds that ended although their holders did not ask for it. */
  readonly losses: readonly Loss[];
  /** How many requests of dead processes were taken out of the queue. */
  readonly dropped?: number;
}

/** As much of a command is done as one write takes; `then` asks for the rest. */
export interface Unfinished<Command> {
  readonly kind: 'unfinished';
  readonly then: Command;
}

export interface Answer<Outcome> {
  readonly id: string;
  readonly outcome: Outcome;
}

export interface Event {
  readonly type: string;
  readonly at: number;
  readonly holder: string;
  readonly [detail: string]: Json | undefined;
}

/** What the witness says of the process that asked for something. */
export interface Origin {
  /** When it was asked for. */
  readonly at: number;
  /** What asked; the primitive, if not given. */
  readonly component?: string;
  readonly trace?: string;
  /** Its reason and metadata are entered as hashes. */
  readonly sensitive?: true;
}

/** A request: a command, and while it waits, a place in the queue. */
export interface Request {
  /** Unique. Becomes the id of the hold, so that an answer that got lost can be looked up. */
  readonly id: string;
  readonly holder: string;
  /** The lease that keeps the request, and then the hold, alive. */
  readonly lease: string;
  readonly priority: number;
  /** The hold gets a lease of its own, which its holder renews. */
  readonly detached?: true;
  /** Of a detached hold: how long it lasts without a renewal. */
  readonly ttlMs?: number;
  /** How long the hold may last once granted, however well it is renewed. */
  readonly maxHoldMs?: number;
  /** Why it is wanted; shown to requests that wait behind it. */
  readonly reason?: string;
  readonly metadata?: Json;
  /** Of a detached hold: what the process that asks says about itself. The hold outlives that process, and its lease. */
  readonly from?: Json;
  /** Other holders who go on only once this request has been served and its hold is over. */
  readonly within?: readonly string[];
  /** Who asked, and when, for the record of the witness. The machine only carries it along. */
  readonly origin?: Origin;
}

export const NONE: readonly never[] = Object.freeze([]);

/**
 * Tokens outlive their holders. Were they to restart at one, a client that slept through its lease
 * would pass a check meant for the next holder. Taking the revision into account lets the record of
 * a free resource be deleted without the next one starting over.
 */
export function nextToken(last: Token, at: Moment): Token {
  return Math.max(last, at.revision) + 1;
}

/** A step that answers no waiter. */
export function step<State, Outcome>(
  state: State,
  outcome: Outcome,
  events: readonly Event[] = NONE,
  lost: Step<State, Outcome>['losses'] = NONE,
): Step<State, Outcome> {
  return { state, outcome, events, answers: NONE, losses: lost };
}

/** One step out of two, the second taken on the state that the first led to. */
export function followed<State, Outcome>(
  first: Step<State, Outcome>,
  second: Omit<Step<State, Outcome>, 'outcome'>,
  outcome: Outcome,
): Step<State, Outcome> {
  const { state } = second;
  const events = joined(first.events, second.events);
  const answers = joined(first.answers, second.answers);
  const losses = joined(first.losses, second.losses);
  const dropped = (first.dropped ?? 0) + (second.dropped ?? 0);
  if (dropped === 0) return { state, outcome, events, answers, losses };
  return { state, outcome, events, answers, losses, dropped };
}

/** Both lists as one. Mostly one of them is empty, and then the other one is not copied. */
export function joined<T>(some: readonly T[], more: readonly T[]): readonly T[] {
  if (more.length === 0) return some;
  return some.length === 0 ? more : [...some, ...more];
}

/** The same moment, with `most` left of what one step may touch. */
export function withMost(at: Moment, most: number): Moment {
  return at.most === most ? at : { ...at, most };
}

export function event(
  type: string,
  who: { readonly holder: string },
  at: Moment,
  detail?: { readonly [key: string]: Json },
): Event {
  return { type, at: at.now, holder: who.holder, ...detail };
}

/** Makes the compiler name the command that a switch forgot. */
export function unreachable(command: never): never {
  throw new TypeError(`no such command: ${JSON.stringify(command)}`);
}
