/**
 * What must be true of every step that a lock or a semaphore takes, whatever was asked and whoever died. The laws know
 * what promises mean and nothing of how they are kept, so that a wrong machine cannot be wrong in the same way.
 */
import { type Claim, type Hold, isStale, type OnStale } from '../../src/core/hold.ts';
import type { Event, Moment, Step } from '../../src/core/machine.ts';
import type { Passed, Queued, Waiting } from '../../src/core/queue.ts';

/** What locks and semaphores have in common. */
export interface Resource extends Queued {
  readonly record: Queued['record'] & {
    readonly token: number;
    readonly onStale: OnStale;
    readonly limits?: Times;
    readonly kind: string;
  };
  readonly waiting: readonly Wish[];
}

export interface Wish extends Waiting {
  readonly steal?: true;
}

/** How long a hold may last, and how long it lasts without a renewal. */
interface Times {
  readonly maxHoldMs?: number;
  readonly ttlMs?: number;
}

export interface Command extends Partial<Claim> {
  readonly kind: string;
  readonly detached?: true;
  /** Null, to configure: no limit any more. */
  readonly maxHoldMs?: number | null;
  readonly ttlMs?: number | null;
  readonly onStale?: OnStale;
  readonly lease?: string;
  readonly steal?: true;
  readonly force?: true;
  readonly request?: string;
  readonly again?: true;
  readonly weight?: number;
  readonly capacity?: number;
  readonly reason?: string;
  readonly revision?: number;
}

export interface Outcome {
  readonly kind: string;
  readonly hold?: Held;
  readonly ttlMs?: number;
  /** Of one that is unfinished. */
  readonly then?: unknown;
}

export type Held = Hold & { readonly weight?: number; readonly mode?: string };

/** A hold remembers by which request it became more than it was. */
export type Enlarged = Hold & { readonly upgradedBy?: string; readonly grown?: { readonly by: string } };

/** One step, and what went before it. */
export interface Seen<State extends Resource = Resource, Asked extends Command = Command> {
  readonly before: State;
  readonly command: Asked;
  readonly at: Moment;
  readonly step: Step<State, Outcome>;
  readonly past: Past;
}

/** What the laws remember of the steps so far, by their own account. */
export interface Past {
  readonly largestToken: number;
  /** Ids of holds of which a warning was given. */
  readonly warned: ReadonlySet<string>;
  readonly passed: Passed | null;
  /** Who was told to have what, by the id of the hold: each request with what it was shown. */
  readonly told: ReadonlyMap<string, ReadonlyMap<string, Wish>>;
}

/** What is wrong, if anything is. */
export type Law<State extends Resource = Resource, Asked extends Command = Command> = (
  seen: Seen<State, Asked>,
) => string | undefined;

/** Laws by the sentence that each of them is. */
export type Laws<State extends Resource = Resource, Asked extends Command = Command> = {
  readonly [sentence: string]: Law<State, Asked>;
};

const GRANTS = ['acquired', 'reclaimed', 'upgraded', 'increased'];
const REFUSALS = [
  'busy',
  'full',
  'too-large',
  'impossible',
  'capacity-mismatch',
  'upgrade-conflict',
  'not-owner',
  'not-holder',
];
const FINDINGS = ['already-free', 'lost', 'refreshed', 'unchanged'];

export const isGrant = (outcome: Outcome): boolean => GRANTS.includes(outcome.kind);
export const isRefusal = (outcome: Outcome): boolean => REFUSALS.includes(outcome.kind);

/** Nothing was done, because nothing could or had to be. */
export const isIdle = ({ command, step }: Seen): boolean =>
  isRefusal(step.outcome) ||
  (FINDINGS.includes(step.outcome.kind) && command.kind !== 'extend' && command.kind !== 'tick');

export const eventsOf = ({ step }: Seen, what: string): readonly Event[] =>
  step.events.filter(({ type }) => type.endsWith(`:${what}`));

/** The hold that a command is about. A holder's newest is meant where nothing else is said. */
export function claimed({ before, command }: Seen): Hold | undefined {
  const { holder, id, token } = command;
  return before.record.holds.findLast(
    (hold) =>
      hold.holder === holder && (id === undefined || hold.id === id) && (token === undefined || hold.token === token),
  );
}

/** Whether the same request was made before, and still waits or holds. */
export function isRepeated({ before, command }: Seen): boolean {
  if (command.again !== true) return false;
  const id = command.request ?? command.id;
  return [...before.waiting, ...before.record.holds].some((known) => known.id === id);
}

/** The hold by which one is in. */
export function holdOf(holder: string, holds: readonly Hold[], at: Moment): Hold | undefined {
  return holds.find((hold) => hold.holder === holder && !isStale(hold, at));
}

/** Everyone that this step grants something to, with the request by which it was asked. */
export function grantsOf({ before, command, step }: Seen): readonly { request: Command; hold: Held }[] {
  const answered = step.answers.filter(({ outcome }) => isGrant(outcome));
  const waited = answered.map(({ id, outcome }) => {
    const request = before.waiting.find((waiter) => waiter.id === id);
    return { request: { kind: 'acquire', ...request }, hold: outcome.hold as Held };
  });
  // One that asks again is told what it got the first time.
  if (!isGrant(step.outcome) || step.state === before) return waited;
  return [...waited, { request: command, hold: step.outcome.hold as Held }];
}

/** How many requests and holds of others a step touches. */
export function touched({ before, command, step }: Seen): number {
  const { answers, losses, state } = step;
  if (state.waiting === before.waiting) return answers.length + losses.length;
  const own = command.kind === 'cancel' ? command.id : undefined;
  const dropped = before.waiting.filter(
    (one) => one.id !== own && !state.waiting.includes(one) && !answers.some(({ id }) => id === one.id),
  );
  return answers.length + losses.length + dropped.length;
}

/** The step did as much as one write takes: what is left is done by the next. */
export function isExhausted(seen: Seen): boolean {
  const { at, step } = seen;
  return step.outcome.kind === 'unfinished' || (at.most !== undefined && touched(seen) >= at.most);
}

/** Equal in every field, and without fields that are there in one only, be it as undefined. */
export function same(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  const keys = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => key in other && same(one[key as keyof typeof one], other[key as keyof typeof other]))
  );
}
