/** Stories told on the bare machines: no store, no time but what the story says. */
import {
  freeLock,
  isStale,
  type Lock,
  type LockCommand,
  type LockHold,
  type LockOutcome,
  type LockRequest,
  lockTransition,
  type Moment,
  newSemaphore,
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreHold,
  type SemaphoreOutcome,
  type SemaphoreRequest,
  semaphoreTransition,
  slotNumbers,
  type Claim,
  type Event,
  type Hold,
  type Loss,
  type Request,
  type Step,
} from '../../src/core/index.ts';
import { type Line, parseLine, type Wish } from './lines.ts';
import { type Telling, Tokens, type World } from './story.ts';

export const onLock = (): World => new MachineWorld(lock);
export const onSemaphore = (capacity: number): World =>
  new MachineWorld({ ...semaphore, initial: newSemaphore(capacity) });

/** What the commands of locks and semaphores have in common. */
type CommonCommand = Extract<
  LockCommand,
  {
    kind:
      | 'release'
      | 'heartbeat'
      | 'extend'
      | 'break'
      | 'cancel'
      | 'refuse'
      | 'settle'
      | 'tick'
      | 'maintain'
      | 'configure';
  }
>;

export interface Kind<
  State extends { record: { holds: readonly H[] }; waiting: readonly Request[] },
  Command,
  Outcome,
  H extends Hold,
> {
  readonly initial: State;
  transition(state: State, command: Command | CommonCommand, at: Moment): Step<State, Outcome>;
  acquire(request: Request, wish: Wish, how: 'acquires' | 'tries' | 'steals' | 'forces'): Command;
  /** What only this kind can be asked. */
  particular(line: Line, claim: Claim, request: Request): Command;
  showOutcome(outcome: Outcome, show: Show): string;
  showState(state: State, show: Show): string;
}

/** How to write what differs from run to run. */
export interface Show {
  token(token: number): string;
  hold(hold: Hold): string;
  since(hold: Hold): string;
  isStale(hold: Hold): boolean;
}

class MachineWorld<
  State extends { record: { holds: readonly H[] }; waiting: readonly Request[] },
  Command,
  Outcome extends { kind: string; hold?: H },
  H extends Hold,
> implements World {
  readonly #kind: Kind<State, Command, Outcome, H>;
  readonly #tokens = new Tokens();
  readonly #gone = new Set<string>();
  /** How often each has started. */
  readonly #starts = new Map<string, number>();
  readonly #lastAsked = new Map<string, string>();
  readonly #again = new Map<string, Command>();
  readonly #claims = new Map<string, Claim>();
  readonly #holderOf = new Map<string, string>();
  readonly #show: Show;
  #state: State;
  #now = 0;
  #revision = 10;
  #asked = 0;

  constructor(kind: Kind<State, Command, Outcome, H>) {
    this.#kind = kind;
    this.#state = kind.initial;
    const token = (value: number): string => this.#tokens.name(value);
    this.#show = {
      token,
      hold: (hold) => `${hold.holder} ${token(hold.token)}${isStale(hold, this.#moment()) ? ' (stale)' : ''}`,
      since: (hold) => `${hold.acquiredAt / 1000}s`,
      isStale: (hold) => isStale(hold, this.#moment()),
    };
  }

  hear(text: string): Telling {
    const line = parseLine(text);
    if (line.kind === 'passes') this.#now += line.ms;
    else if (line.kind === 'starts again') this.#starts.set(line.who, this.#started(line.who) + 1);
    else if (line.kind === 'ends') this.#gone.add(this.#leaseOf(line.who, line.what));
    else return this.#do(this.#commandFor(line));
    return this.#stand();
  }

  #do(command: Command | CommonCommand): Telling {
    const before = this.#state;
    const step = this.#kind.transition(before, command, this.#moment());
    this.#settleOn(step.state);
    this.#remember(step.outcome);
    // First of all, so that tokens are named in the order of the grants.
    for (const token of step.events
      .flatMap(({ token }) => (typeof token === 'number' ? [token] : []))
      .sort((a, b) => a - b)) {
      this.#tokens.name(token);
    }
    const telling = {
      outcome: this.#kind.showOutcome(step.outcome, this.#show),
      events: step.events.map((event) => showEvent(event, this.#tokens)),
      answers: step.answers.map(({ id, outcome }) => {
        this.#remember(outcome);
        return `${this.#holderOf.get(id)}: ${this.#kind.showOutcome(outcome, this.#show)}`;
      }),
      losses: step.losses.map((loss) => showLoss(loss, this.#tokens)),
    };
    return { ...telling, ...(step.state === before ? { state: 'nothing changes' } : this.#stand()) };
  }

  /** As the runtime does: the lease that measures how long a hold may last begins right after the grant. */
  #settleOn(state: State): void {
    if (state !== this.#state) this.#revision++;
    this.#state = state;
    for (const hold of state.record.holds) {
      if (hold.maxHoldMs === undefined || hold.limit !== undefined) continue;
      const limit = this.#leaseOf(hold.holder, 'limit');
      const claim = { holder: hold.holder, id: hold.id, token: hold.token };
      this.#state = this.#kind.transition(this.#state, { ...claim, kind: 'extend', limit }, this.#moment()).state;
    }
  }

  #remember({ hold }: { hold?: H }): void {
    if (hold !== undefined) this.#claims.set(hold.holder, { holder: hold.holder, id: hold.id, token: hold.token });
  }

  #commandFor(line: Exclude<Line, { kind: 'passes' | 'starts again' | 'ends' }>): Command | CommonCommand {
    switch (line.kind) {
      case 'asks': {
        const command = this.#kind.acquire(this.#request(line.who, line.wish), line.wish, line.how);
        this.#again.set(line.who, { ...command, again: true });
        return command;
      }
      case 'asks again': {
        const command = this.#again.get(line.who);
        if (command === undefined) throw new Error(`${line.who} has not asked for anything yet`);
        return command;
      }
      case 'releases':
        return { ...this.#claim(line.who, line.token), kind: 'release' };
      case 'renews':
        return { ...this.#claim(line.who, line.token), kind: 'heartbeat' };
      case 'extends':
        return { ...this.#claim(line.who), kind: 'extend', lease: this.#leaseOf(line.who, 'extended lease') };
      case 'gives up':
        return { kind: 'cancel', id: this.#lastAsked.get(line.who) ?? '' };
      case 'deadlock': {
        const cycle = [
          { holder: line.who, resource: 'this', blockedBy: line.other },
          { holder: line.other, resource: 'that', blockedBy: line.who },
        ];
        return { kind: 'refuse', id: this.#lastAsked.get(line.who) ?? '', cycle };
      }
      case 'breaks':
        return { kind: 'break', holder: line.who, reason: line.because };
      case 'tick':
      case 'settle':
        return { kind: line.kind };
      case 'maintenance':
        return { kind: 'maintain' };
      case 'on stale':
        return { kind: 'configure', onStale: line.onStale };
      case 'upgrades':
      case 'downgrades':
        return this.#kind.particular(line, this.#claim(line.who), this.#request(line.who));
      case 'resize':
        return this.#kind.particular(line, { holder: '' }, this.#request(''));
    }
  }

  #request(who: string, wish?: Wish): Request {
    const id = `${who}/${++this.#asked}`;
    this.#lastAsked.set(who, id);
    this.#holderOf.set(id, who);
    return {
      id,
      holder: who,
      lease: this.#leaseOf(who, 'lease'),
      priority: wish?.priority ?? 0,
      ...(wish?.atMostMs !== undefined && { maxHoldMs: wish.atMostMs }),
      ...(wish?.because !== undefined && { reason: wish.because }),
    };
  }

  #claim(who: string, token?: number): Claim {
    if (token !== undefined) return { holder: who, token: this.#tokens.named(token) };
    return this.#claims.get(who) ?? { holder: who };
  }

  #leaseOf(who: string, what: string): string {
    return `${who}'s ${what} ${this.#started(who)}`;
  }

  #started(who: string): number {
    return this.#starts.get(who) ?? 1;
  }

  #moment(): Moment {
    return { now: this.#now, revision: this.#revision, gone: (lease) => this.#gone.has(lease) };
  }

  #stand(): { state: string } {
    return { state: this.#kind.showState(this.#state, this.#show) };
  }
}

export function showEvent(event: Event, tokens: Tokens): string {
  const { type, at: _at, holder, token, weight, slots: _slots, cycle, position, mode: _mode, ...details } = event;
  const words = [type, holder];
  if (typeof token === 'number') words.push(tokens.name(token));
  if (typeof weight === 'number') words.push(`×${weight}`);
  if (typeof position === 'number') words.push(`at ${position}`);
  if (cycle !== undefined) words.push(showCycle(cycle as { holder: string }[]));
  for (const [name, value] of Object.entries(details)) if (value !== '') words.push(`${name} ${String(value)}`);
  return words.filter((word) => word !== '').join(' ');
}

export function showLoss({ hold, why, by, reason }: Loss, tokens: Tokens): string {
  const taker = by === undefined ? '' : ` by ${by}`;
  const because = reason === undefined || reason === '' ? '' : `, because "${reason}"`;
  return `${hold.holder} ${tokens.name(hold.token)}: ${why}${taker}${because}`;
}

function showCycle(cycle: readonly { holder: string }[]): string {
  return [...cycle, ...cycle.slice(0, 1)].map(({ holder }) => holder).join(' → ');
}

function list(things: readonly string[]): string {
  return things.length === 0 ? 'nobody' : things.join(', ');
}

function showHolders(holders: readonly Hold[], show: Show): string {
  return list(
    holders.map((hold) => {
      const because = hold.reason === undefined ? '' : `, because "${hold.reason}"`;
      return `${show.hold(hold)} since ${show.since(hold)}${because}`;
    }),
  );
}

/** The priority, where there is one, in brackets. */
function showQueue<R extends Request>(waiting: readonly R[], showWish: (request: R) => string): string {
  if (waiting.length === 0) return '';
  const wishes = waiting.map((request) => {
    return showWish(request) + (request.priority === 0 ? '' : ` (${request.priority})`);
  });
  return `, then ${list(wishes)}`;
}

export const lock: Kind<Lock, LockCommand, LockOutcome, LockHold> = {
  initial: freeLock,
  transition: lockTransition,
  acquire: (request, wish, how) => ({
    ...request,
    kind: 'acquire',
    mode: wish.shared ? 'shared' : 'exclusive',
    wait: how === 'acquires',
    ...((how === 'steals' || wish.stealing) && { steal: true }),
    ...(how === 'forces' && { force: true }),
  }),
  particular(line, claim, request) {
    if (line.kind === 'downgrades') return { ...claim, kind: 'downgrade' };
    if (line.kind !== 'upgrades') throw new Error(`locks know nothing of ${line.kind}`);
    const asked = { request: request.id, lease: request.lease, wait: line.wait };
    return { ...claim, kind: 'upgrade', ...asked, ...(line.stealing && { steal: true }) };
  },
  showOutcome(outcome, show) {
    switch (outcome.kind) {
      case 'acquired':
      case 'extended':
      case 'upgraded':
      case 'downgraded':
      case 'refreshed':
        return `${outcome.kind} ${show.token(outcome.hold.token)}`;
      case 'reclaimed':
        return `reclaimed ${show.token(outcome.hold.token)}`;
      case 'queued':
        return `queued at ${outcome.position}: ${showHolders(outcome.holders, show)}`;
      case 'too-large':
        return `too-large: ${outcome.bytes} bytes`;
      case 'busy':
      case 'not-owner':
        return `${outcome.kind}: ${showHolders(outcome.holders, show)}`;
      case 'upgrade-conflict':
        return `upgrade-conflict with ${outcome.by}`;
      case 'cancelled':
        return outcome.gaveBack ? 'cancelled, and given back' : 'cancelled';
      case 'deadlock':
        return `deadlock: ${showCycle(outcome.cycle)}`;
      case 'ambiguous':
        return `ambiguous: ${list(outcome.holds.map(show.hold))}`;
      case 'broken':
        return `broken: ${list(outcome.holds.map(show.hold))}`;
      case 'maintained':
        return `maintained: ${list(outcome.reclaimed.map(({ holder }) => holder))} reclaimed`;
      case 'unfinished':
      case 'released':
      case 'already-free':
      case 'lost':
      case 'settled':
      case 'unchanged':
      case 'configured':
        return outcome.kind;
    }
  },
  showState({ record, waiting }, show) {
    const shared = record.holds.some(({ mode }) => mode === 'shared') ? 'shared by ' : '';
    const held = record.holds.length === 0 ? 'free' : shared + list(record.holds.map(show.hold));
    return held + showQueue(waiting, showWish);
  },
};

function showWish({ holder, mode, upgrades }: LockRequest): string {
  if (upgrades !== undefined) return `${holder} upgrades`;
  return mode === 'shared' ? `${holder} shared` : holder;
}

export const semaphore: Kind<Semaphore, SemaphoreCommand, SemaphoreOutcome, SemaphoreHold> = {
  initial: newSemaphore(1),
  transition: semaphoreTransition,
  acquire: (request, wish, how) => ({
    ...request,
    kind: 'acquire',
    weight: wish.weight ?? 1,
    wait: how === 'acquires',
    ...(wish.capacity !== undefined && { capacity: wish.capacity }),
    ...((how === 'steals' || wish.stealing) && { steal: true }),
    ...(how === 'forces' && { force: true }),
  }),
  particular(line) {
    if (line.kind !== 'resize') throw new Error(`semaphores know nothing of ${line.kind}`);
    return { kind: 'resize', capacity: line.capacity };
  },
  showOutcome(outcome, show) {
    switch (outcome.kind) {
      case 'acquired':
      case 'reclaimed':
      case 'increased':
      case 'already-held':
        return `${outcome.kind} ${show.token(outcome.hold.token)}, ${showSlots(outcome.hold)}`;
      case 'refreshed':
        return `refreshed ${show.token(outcome.hold.token)}`;
      case 'queued':
        return `queued at ${outcome.position}, ${outcome.free} free`;
      case 'full':
        return `full, ${outcome.free} free: ${showHolders(outcome.holders, show)}`;
      case 'too-large':
        return `too-large: ${outcome.bytes} bytes`;
      case 'impossible':
        return `impossible: ${outcome.why}`;
      case 'capacity-mismatch':
        return `capacity-mismatch: it is ${outcome.capacity}, not ${outcome.asked}`;
      case 'resized':
        return `resized to ${outcome.capacity}`;
      case 'drained':
      case 'already-drained':
      case 'undrained':
      case 'another-drain':
        return `${outcome.kind}: ${outcome.drain.reason}`;
      case 'not-drained':
        return outcome.kind;
      case 'cancelled':
        return outcome.gaveBack ? 'cancelled, and given back' : 'cancelled';
      case 'deadlock':
        return `deadlock: ${showCycle(outcome.cycle)}`;
      case 'ambiguous':
        return `ambiguous: ${list(outcome.holds.map(show.hold))}`;
      case 'broken':
        return `broken: ${list(outcome.holds.map(show.hold))}`;
      case 'maintained':
        return `maintained: ${list(outcome.reclaimed.map(({ holder }) => holder))} reclaimed`;
      case 'unfinished':
      case 'released':
      case 'not-holder':
      case 'lost':
      case 'settled':
      case 'unchanged':
      case 'configured':
        return outcome.kind;
    }
  },
  /** The slots as they lie: `[a#1 a#1 b#2 . .]`. What a shrunk capacity has no room for stands behind the bracket. */
  showState({ record, waiting }, show) {
    const last = Math.max(
      record.capacity,
      ...record.holds.flatMap(({ slots }) => slotNumbers(slots).map((slot) => slot + 1)),
    );
    const slots = Array.from({ length: last }, (_, slot) => {
      const hold = record.holds.find((held) => slotNumbers(held.slots).includes(slot));
      return hold === undefined ? '.' : `${hold.holder}${show.token(hold.token)}${show.isStale(hold) ? '?' : ''}`;
    });
    const within = `[${slots.slice(0, record.capacity).join(' ')}]`;
    const beyond = slots.slice(record.capacity).map((slot) => ` ${slot}`);
    return [within, ...beyond].join('') + showQueue(waiting, showWeight);
  },
};

function showWeight({ holder, weight, grows }: SemaphoreRequest): string {
  return `${holder} ×${weight}${grows === undefined ? '' : ' in all'}`;
}

function showSlots({ slots }: SemaphoreHold): string {
  return `${slots.length === 1 ? 'slot' : 'slots'} ${slots.join(' ')}`;
}
