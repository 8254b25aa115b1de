/**
 * A machine on trial: asked one thing after another while leases end, with every step held against the laws. Ends by
 * letting everybody go home, because a law about every single step does not tell whether all who wait are served.
 */
import { type Claim, type Hold, isStale } from '../hold.ts';
import type { Moment, Step } from '../machine.ts';
import { type Command, eventsOf, type Laws, type Outcome, type Past, type Resource, same, type Seen } from './law.ts';
import { follow, type Rules } from './order.ts';

export interface Suspect<State extends Resource, Asked extends Command> {
  readonly transition: (state: State, command: Asked, at: Moment) => Step<State, Outcome>;
  readonly laws: Laws<State, Asked>;
  readonly rules: Rules<State>;
  /** The state of a resource that nobody holds and nobody waits for, as it is after its record was deleted. */
  readonly renewed: (state: State) => State;
}

export class BrokenLaw extends Error {
  readonly law: string;

  constructor(law: string, detail: string, seen?: { before: unknown; command: unknown; step: Step<unknown, unknown> }) {
    const told = seen && [
      `before  ${JSON.stringify(seen.before)}`,
      `command ${JSON.stringify(seen.command)}`,
      `outcome ${JSON.stringify(seen.step.outcome)}`,
      `after   ${JSON.stringify(seen.step.state)}`,
    ];
    super([`${law}: ${detail}`, ...(told ?? [])].join('\n'));
    this.name = 'BrokenLaw';
    this.law = law;
  }
}

export class Trial<State extends Resource, Asked extends Command> {
  state: State;
  readonly #suspect: Suspect<State, Asked>;
  /** Whether the store counts its writes. One that does not gives its tokens by the record alone. */
  readonly #counts: boolean;
  readonly #gone = new Set<string>();
  readonly #starts = new Map<string, number>();
  readonly #holds: Hold[] = [];
  readonly #asked: Asked[] = [];
  #revision = 0;
  #steps = 0;
  #past: Past = { largestToken: 0, warned: new Set(), passed: null };

  constructor(suspect: Suspect<State, Asked>, initial: State, counts: boolean) {
    this.#suspect = suspect;
    this.state = frozen(initial);
    this.#counts = counts;
  }

  do(command: Asked): void {
    const at = this.#moment();
    const before = this.state;
    if (command.kind === 'acquire' || command.kind === 'upgrade') this.#asked.push(command);
    const step = frozen(this.#suspect.transition(before, frozen(command), at));
    const seen: Seen<State, Asked> = { before, command, at, step, past: this.#past };
    const again = this.#suspect.transition(copy(before), command, at);
    if (!same(copy(again), copy(step))) throw new BrokenLaw('the same question has the same answer', '', seen);
    for (const [law, isBroken] of Object.entries(this.#suspect.laws)) {
      const detail = isBroken(seen);
      if (detail !== undefined) throw new BrokenLaw(law, detail, seen);
    }
    this.#remember(seen);
    if (step.state !== before && this.#counts) this.#revision++;
    this.state = step.state;
    this.#steps++;
  }

  /** What somebody does whose answer got lost: one of those who wait or hold asks for the same again. */
  repeat(which: number): void {
    const { record, waiting } = this.state;
    const known = [...waiting, ...record.holds].map(({ id }) => id);
    const asked = this.#asked.filter(({ request, id = '' }) => known.includes(request ?? id));
    const command = asked[which % Math.max(1, asked.length)];
    if (command !== undefined) this.do({ ...command, again: true });
  }

  /** Session and all: whatever hangs on it is gone. The next thing it asks for, it asks in a new session. */
  kill(who: string): void {
    this.#gone.add(this.leaseOf(who));
    this.#starts.set(who, (this.#starts.get(who) ?? 0) + 1);
  }

  endLease(lease: string): void {
    this.#gone.add(lease);
  }

  /** Only once revisions have outgrown the tokens, as the contract says. */
  deleteRecord(): void {
    const { record, waiting } = this.state;
    if (record.holds.length > 0 || waiting.length > 0 || this.#revision <= record.token) return;
    this.state = frozen(this.#suspect.renewed(this.state));
    this.#past = { ...this.#past, passed: null };
  }

  leaseOf(who: string): string {
    return `${who}.${this.#starts.get(who) ?? 0}`;
  }

  /** A hold that this one has, or had at some time. */
  claim(who: string, which: number): Claim {
    const had = this.#holds.filter(({ holder }) => holder === who);
    const hold = had[had.length - 1 - (which % (had.length + 1))];
    return hold === undefined ? { holder: who } : { holder: who, id: hold.id, token: hold.token };
  }

  /** Everyone lets go of what it has until nobody has anything: then nobody may be left waiting. */
  finish(words: { release(claim: Claim): Asked; maintain: Asked; settle: Asked; breakAll: Asked }): void {
    for (let round = 0; this.state.record.holds.length > 0; round++) {
      if (round > 1000) throw new BrokenLaw('whoever waits long enough is answered', 'it never ends');
      const at = this.#moment();
      const [hold] = this.state.record.holds;
      if (hold === undefined || isStale(hold, at)) this.do(round % 2 === 0 ? words.maintain : words.breakAll);
      else this.do(words.release({ holder: hold.holder, id: hold.id, token: hold.token }));
    }
    this.do(words.settle);
    const left = this.state.waiting.find(({ lease }) => !this.#gone.has(lease));
    if (left !== undefined) throw new BrokenLaw('whoever waits long enough is answered', left.holder);
  }

  #moment(): Moment {
    return { now: this.#steps, revision: this.#revision, gone: (lease) => this.#gone.has(lease) };
  }

  #remember(seen: Seen<State, Asked>): void {
    const tokens = eventsOf(seen, 'acquired').map(({ token }) => Number(token));
    const stale = eventsOf(seen, 'stale').map(({ token }) =>
      seen.before.record.holds.find((hold) => hold.token === token),
    );
    this.#past = {
      largestToken: Math.max(this.#past.largestToken, ...tokens),
      warned: new Set([...this.#past.warned, ...stale.map((hold) => `${hold?.id}#${hold?.token}`)]),
      passed: follow(seen, this.#suspect.rules).passed,
    };
    for (const hold of seen.step.state.record.holds) {
      if (!this.#holds.some(({ id, token }) => id === hold.id && token === hold.token)) this.#holds.push(hold);
    }
  }
}

/** So that a machine that changed what it was given would stumble over it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
