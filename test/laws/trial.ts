/**
 * A machine on trial: asked one thing after another while leases end, by a shell that knows any front of the queue and
 * any part of the news, as a process does; with every step held against the laws. Ends by letting everybody go home,
 * because a law about every single step does not tell whether all who wait are served.
 */
import { type Claim, type Hold, isStale } from '../../src/core/hold.ts';
import type { Moment, Step } from '../../src/core/machine.ts';
import { formsOf } from '../../src/core/queue.ts';
import {
  type Command,
  eventsOf,
  type Laws,
  type Outcome,
  type Past,
  type Resource,
  same,
  type Seen,
  touched,
} from './law.ts';
import { follow, type Rules } from './order.ts';
import { notWritten, rank } from './shell.ts';

export interface Suspect<State extends Resource, Asked extends Command> {
  readonly transition: (state: State, command: Asked, at: Moment) => Step<State, Outcome>;
  readonly laws: Laws<State, Asked>;
  readonly rules: Rules<State>;
  /** The state of a resource that nobody holds and nobody waits for, as it is after its record was deleted. */
  readonly renewed: (state: State) => State;
  /** In which forms a request that is withdrawn may wait. */
  readonly forms?: typeof formsOf;
}

export class BrokenLaw extends Error {
  readonly law: string;

  constructor(
    law: string,
    detail: string,
    seen?: { before: unknown; command: unknown; step: Step<unknown, unknown> },
    past: readonly string[] = [],
  ) {
    const told = seen && [
      `before  ${JSON.stringify(seen.before)}`,
      `command ${JSON.stringify(seen.command)}`,
      `outcome ${JSON.stringify(seen.step.outcome)}`,
      `answers ${JSON.stringify(seen.step.answers)}`,
      `after   ${JSON.stringify(seen.step.state)}`,
    ];
    super([`${law}: ${detail}`, ...(told ?? []), ...past].join('\n'));
    this.name = 'BrokenLaw';
    this.law = law;
  }
}

/** So many rounds are enough for everything that a trial can bring about. */
const ENOUGH = 2000;

export const COMES_TO_AN_END = 'work that does not fit into one write comes to an end';
export const CAN_BE_WRITTEN = 'what is decided on all there is can be written';
export const NO_TRACE = 'a request that is given up leaves no trace';
export const ANSWERED = 'whoever waits long enough is answered';

/** The commands by which a trial ends. */
interface Words<Asked> {
  release(claim: Claim): Asked;
  readonly maintain: Asked;
  readonly settle: Asked;
  readonly breakAll: Asked;
  /** Undoes what keeps everything from being granted. */
  readonly reopen?: Asked;
}

export class Trial<State extends Resource, Asked extends Command> {
  /** As it is stored. */
  state: State;
  readonly #suspect: Suspect<State, Asked>;
  readonly #laws: readonly (readonly [string, Laws<State, Asked>[string]])[];
  /** Whether the store counts its writes. One that does not gives its tokens by the record alone. */
  readonly #counts: boolean;
  /** How much one write takes. */
  readonly #most: number | undefined;
  readonly #gone = new Set<string>();
  /** Those of them that the shell has heard of. */
  readonly #known = new Set<string>();
  readonly #starts = new Map<string, number>();
  readonly #holds: Hold[] = [];
  readonly #asked = new Map<string, Asked>();
  #unfinished: Asked[] = [];
  #revision = 0;
  #steps = 0;
  #past: Past = { largestToken: 0, warned: new Set(), passed: null, told: new Map() };

  constructor(suspect: Suspect<State, Asked>, initial: State, counts: boolean, most?: number) {
    this.#suspect = suspect;
    this.#laws = Object.entries(suspect.laws);
    this.state = frozen(initial);
    this.#counts = counts;
    this.#most = most;
  }

  /** Asked by a shell that knows so much of the queue; of what comes of it, the rest is done now or `goOn`. */
  do(command: Asked, front = Number.POSITIVE_INFINITY, later = false): void {
    const id = command.request ?? command.id;
    if (id !== undefined && (command.kind === 'acquire' || command.kind === 'upgrade')) this.#asked.set(id, command);
    if (command.kind === 'cancel') this.#unfinished = this.#unfinished.filter((one) => (one.request ?? one.id) !== id);
    const unfinished = this.#write(command, front);
    if (unfinished !== undefined) this.#unfinished.push(unfinished);
    if (!later) this.goOn();
  }

  /** Whatever did not fit into one write. */
  goOn(): void {
    for (let round = 0; this.#unfinished.length > 0; round++) {
      if (round > ENOUGH) throw new BrokenLaw(COMES_TO_AN_END, JSON.stringify(this.#unfinished[0]));
      const unfinished = this.#write(this.#unfinished.shift() as Asked, Number.POSITIVE_INFINITY);
      if (unfinished !== undefined) this.#unfinished.push(unfinished);
    }
  }

  /** What is left to do of it, if something is. */
  #write(command: Asked, front: number): Asked | undefined {
    const seen = this.#decide(command, front);
    const written = seen ?? this.#decide(command, Number.POSITIVE_INFINITY);
    if (written === undefined) throw new BrokenLaw(CAN_BE_WRITTEN, JSON.stringify(command));
    const { outcome } = written.step;
    if (outcome.kind === 'unfinished') return outcome.then as Asked;
    const used = touched(written);
    return this.#most !== undefined && used >= this.#most ? ({ kind: 'settle' } as Asked) : undefined;
  }

  /** One look, one decision, one write; undefined if the store did not take it. */
  #decide(command: Asked, front: number): Seen<State, Asked> | undefined {
    const stored = this.state;
    const view = front >= stored.waiting.length ? stored : frozen(withFront(stored, front));
    const at = this.#moment();
    const step = frozen(this.#suspect.transition(view, frozen(command), at));
    const seen: Seen<State, Asked> = { before: view, command, at, step, past: this.#past };
    const again = this.#suspect.transition(view, command, at);
    if (!same(again, step)) throw new BrokenLaw('the same question has the same answer', '', seen);
    for (const [law, isBroken] of this.#laws) {
      const detail = isBroken(seen);
      if (detail !== undefined) throw new BrokenLaw(law, detail, seen);
    }
    const truth: Moment = { ...at, gone: (lease) => this.#gone.has(lease) };
    const unseen = stored.waiting.slice(view.waiting.length);
    const alive = unseen.filter(({ lease }) => !this.#gone.has(lease));
    const isClosed = this.#suspect.rules.isClosed(step.state);
    const why = notWritten({ view, command, step, unseen: alive, truth, isClosed });
    if (why !== undefined) {
      if (!this.#learn() && view === stored) throw new BrokenLaw(CAN_BE_WRITTEN, why, seen);
      return undefined;
    }
    this.#remember(seen);
    if (step.state !== view && this.#counts) this.#revision++;
    if (step.state !== view) this.state = frozen(withUnseen(step.state, view, unseen));
    // Whoever waits to become the writer has made sure that no other ticket of this kind is there.
    const [last] = this.state.waiting.slice(-1);
    if (last?.upgrades !== undefined && !stored.waiting.includes(last)) this.#readAnew();
    if (command.kind === 'cancel') this.#withdraw(command.id ?? '', stored);
    this.#steps++;
    return seen;
  }

  /**
   * A write that the store does not take brings the news along; and a queue that is read anew has no tickets of the dead,
   * which went with their leases. False if there was nothing new.
   */
  #learn(): boolean {
    const isNew = this.#readAnew() || this.#known.size < this.#gone.size;
    this.hear();
    return isNew;
  }

  #readAnew(): boolean {
    const { waiting } = this.state;
    const alive = waiting.filter(({ lease }) => !this.#gone.has(lease));
    if (alive.length === waiting.length) return false;
    this.state = frozen({ ...this.state, waiting: alive });
    return true;
  }

  /** The shell takes the ticket out, known or not, from wherever a request like this may have been put. */
  #withdraw(id: string, before: State): void {
    const asked = this.#asked.get(id);
    const ticket = before.waiting.find((waiter) => waiter.id === id);
    if (asked === undefined || ticket === undefined) return;
    const forms = this.#suspect.forms ?? formsOf;
    if (!forms(asTicket(asked)).map(rank).includes(rank(ticket))) throw new BrokenLaw(NO_TRACE, `${id} waits on`);
    if (!this.state.waiting.includes(ticket)) return;
    this.state = frozen({ ...this.state, waiting: this.state.waiting.filter((waiter) => waiter !== ticket) });
  }

  /** The ticket is put by a shell that has not looked: all it knows is that its guess was wrong. */
  arrive(command: Asked, ticket: State['waiting'][number]): void {
    if (this.#gone.has(ticket.lease)) return;
    this.#asked.set(ticket.id, command);
    this.state = frozen({ ...this.state, waiting: [...this.state.waiting, ticket] });
  }

  /** What somebody does whose answer got lost: one of those who wait or hold asks for the same again. */
  repeat(which: number): void {
    const { record, waiting } = this.state;
    const asked = [...waiting, ...record.holds].flatMap(({ id }) => this.#asked.get(id) ?? []);
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

  /** The shell learns of every lease that has ended. */
  hear(): void {
    for (const lease of this.#gone) this.#known.add(lease);
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
  finish(words: Words<Asked>): void {
    this.goOn();
    if (words.reopen !== undefined) this.do(words.reopen);
    this.hear();
    this.do(words.settle);
    for (let round = 0; this.state.record.holds.length > 0; round++) {
      if (round > ENOUGH) throw new BrokenLaw(ANSWERED, 'it never ends');
      const at = this.#moment();
      const [hold] = this.state.record.holds;
      if (hold === undefined || isStale(hold, at)) this.do(round % 2 === 0 ? words.maintain : words.breakAll);
      else this.do(words.release({ holder: hold.holder, id: hold.id, token: hold.token }));
    }
    const left = this.state.waiting.find(({ lease }) => !this.#gone.has(lease));
    if (left !== undefined) throw new BrokenLaw(ANSWERED, left.holder);
  }

  #moment(): Moment {
    return {
      now: this.#steps,
      revision: this.#revision,
      gone: (lease) => this.#known.has(lease),
      ...(this.#most !== undefined && { most: this.#most }),
    };
  }

  #remember(seen: Seen<State, Asked>): void {
    const { step } = seen;
    if (step.events.length > 0) {
      const tokens = eventsOf(seen, 'acquired').map(({ token }) => Number(token));
      const stale = eventsOf(seen, 'stale').map(({ token }) =>
        seen.before.record.holds.find((hold) => hold.token === token),
      );
      this.#past = {
        ...this.#past,
        largestToken: Math.max(this.#past.largestToken, ...tokens),
        warned: new Set([...this.#past.warned, ...stale.map((hold) => `${hold?.id}#${hold?.token}`)]),
        passed: follow(seen, this.#suspect.rules).passed,
      };
    }
    this.#rememberTold(seen);
    if (step.state.record.holds === seen.before.record.holds) return;
    for (const hold of step.state.record.holds) {
      if (!this.#holds.some(({ id, token }) => id === hold.id && token === hold.token)) this.#holds.push(hold);
    }
  }

  /** Who was told to have a hold; less what its holder gave up, and what has ended. */
  #rememberTold(seen: Seen<State, Asked>): void {
    const { step, command, before } = seen;
    const told = new Map(this.#past.told);
    const asked = [{ id: command.request ?? command.id ?? '', outcome: step.outcome }, ...step.answers];
    for (const { id, outcome } of asked) {
      const request = before.waiting.find((waiter) => waiter.id === id) ?? this.#asked.get(id);
      if (outcome.hold === undefined || request === undefined || !TELLS_OF_A_HOLD.includes(outcome.kind)) continue;
      // It may rely on all that it is shown, and not just on what it asked for.
      const shown = this.#suspect.rules.wish({ ...outcome.hold, kind: 'acquire' }, undefined);
      told.set(outcome.hold.id, new Map([...(told.get(outcome.hold.id) ?? []), [id, shown]]));
    }
    const { covers } = this.#suspect.rules;
    for (const [id, requests] of told) {
      const hold = step.state.record.holds.find((held) => held.id === id);
      const givenUp = command.kind === 'cancel' ? command.id : undefined;
      const left = [...requests].filter(
        ([request, wish]) => request !== givenUp && hold !== undefined && covers(hold, wish),
      );
      if (left.length === 0) told.delete(id);
      else told.set(id, new Map(left));
    }
    this.#past = { ...this.#past, told };
  }
}

const TELLS_OF_A_HOLD = ['acquired', 'reclaimed', 'upgraded', 'increased', 'extended', 'already-held'];

function withFront<State extends Resource>(state: State, front: number): State {
  return { ...state, waiting: state.waiting.slice(0, front) };
}

/** Those whom the shell did not see stand before those who came by its write. */
function withUnseen<State extends Resource>(state: State, view: State, unseen: State['waiting']): State {
  if (unseen.length === 0) return state;
  const known = state.waiting.filter((waiter) => view.waiting.includes(waiter));
  const arriving = state.waiting.filter((waiter) => !view.waiting.includes(waiter));
  return { ...state, waiting: [...known, ...unseen, ...arriving] };
}

/** The ticket as one who withdraws knows it: by what it asked. */
function asTicket(asked: Command): Parameters<typeof formsOf>[0] {
  const { holder = '', lease = '', id = '', request } = asked;
  const { priority = 0 } = asked as { priority?: number };
  const ticket = { id: request ?? id, holder, lease, priority };
  return request === undefined ? ticket : { ...ticket, upgrades: id };
}

/** So that a machine that changed what it was given would stumble over it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key in value) frozen(value[key]);
  return value;
}
