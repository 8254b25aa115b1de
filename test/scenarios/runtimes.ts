/**
 * Stories told by programs: everybody in them has a signalbox, all on one store. What such programs are told is less
 * than what a machine answers (not how a wait ended, say), so both are compared by what remains: see `abridged`.
 */
import {
  type LockHold,
  NotAcquired,
  open,
  type SemaphoreHold,
  type Signalbox,
  type SignalboxEvent,
  type Lock as LockHandle,
  type Semaphore as SemaphoreHandle,
} from 'signalbox';
import type { ReadResult, Store } from 'signalbox/store';
import { type Hold, isStale } from '../../src/core/index.ts';
import { Operations } from '../../src/store/operations.ts';
import { anchorKey, resourceKeys } from '../../src/runtime/layout.ts';
import { type Coordinated, lockMachine, type Machine, semaphoreMachine } from '../../src/core/machines.ts';
import { readSnapshot, snapshotFrom } from '../../src/runtime/write/snapshot.ts';
import { TestClock } from '../../src/testing/test-clock.ts';
import { type Line, parseLine, type Wish } from './lines.ts';
import { lock, semaphore, type Show, showEvent, showLoss } from './machines.ts';
import { linesOf, type Telling, Tokens, type World } from './story.ts';

export interface Place {
  /** Another handle on the same store. */
  handle(): Promise<Store>;
}

const NAME = 'it';
const HOUR_MS = 3_600_000;

interface Actor {
  readonly box: Signalbox;
  readonly session: string;
  hold?: LockHold | SemaphoreHold;
  waiting?: { readonly quit: AbortController; readonly over: Promise<LockHold | SemaphoreHold> } | undefined;
}

export class RuntimeWorld implements World {
  readonly #place: Place;
  readonly #capacity: number | undefined;
  readonly #clock = new TestClock();
  readonly #begun = this.#clock.now();
  readonly #tokens = new Tokens();
  readonly #actors = new Map<string, Actor>();
  readonly #heard: SignalboxEvent[] = [];
  readonly #keys;
  readonly #show: Show;
  #gone = new Set<string>();
  #looking: Store | undefined;
  #marks = 0;

  /** Without a capacity it is a lock. */
  constructor(place: Place, capacity?: number) {
    this.#place = place;
    this.#capacity = capacity;
    this.#keys = resourceKeys(this.#kind, NAME);
    const stale = (hold: Hold): boolean =>
      isStale(hold, { now: 0, revision: 0, gone: (lease) => this.#gone.has(lease) });
    this.#show = {
      token: (token) => this.#tokens.name(token),
      hold: (hold) => `${hold.holder} ${this.#tokens.name(hold.token)}${stale(hold) ? ' (stale)' : ''}`,
      since: (hold) => `${(hold.acquiredAt - this.#begun) / 1000}s`,
      isStale: stale,
    };
  }

  get #kind(): 'lock' | 'semaphore' {
    return this.#capacity === undefined ? 'lock' : 'semaphore';
  }

  async hear(text: string): Promise<Telling> {
    const observer = await this.#observer();
    const before = await this.#look();
    const outcome = await this.#do(parseLine(text));
    const after = await this.#look();
    await this.#mark(observer);
    const events = this.#heard.splice(0);
    for (const token of events
      .flatMap((event) => ('token' in event && event.token !== undefined ? [event.token] : []))
      .sort((a, b) => a - b)) {
      this.#tokens.name(token);
    }
    const told: Telling = {
      ...(outcome !== undefined && { outcome: this.#shown(outcome) }),
      events: events.map(({ resource: _, id: __, ...event }) => showEvent(withoutHoldReason(event), this.#tokens)),
      answers: await this.#answers(after.state),
      losses: await this.#losses(events),
      state:
        outcome !== undefined && after.signature === before.signature
          ? 'nothing changes'
          : this.#showState(after.state),
    };
    return told;
  }

  async #do(line: Line): Promise<unknown> {
    if (line.kind === 'passes') return void (await this.#clock.advance(line.ms));
    if (line.kind === 'starts again') return void this.#actors.delete(line.who);
    const actor = await this.#actor('who' in line ? line.who : 'somebody');
    switch (line.kind) {
      case 'asks':
        return this.#ask(actor, line.who, line.how, line.wish);
      case 'releases':
        return actor.hold === undefined || line.token !== undefined
          ? this.#handle(actor).release({ holder: line.who, token: this.#tokens.named(line.token ?? 1) })
          : this.#release(actor);
      case 'upgrades':
        return this.#wait(actor, (options) =>
          (actor.hold as LockHold).upgrade(line.wait ? options : { ...options, waitMs: 0 }),
        );
      case 'downgrades':
        return { kind: 'downgraded', hold: await (actor.hold as LockHold).downgrade() };
      case 'gives up':
        actor.waiting?.quit.abort();
        await actor.waiting?.over.catch(() => undefined);
        actor.waiting = undefined;
        await this.#hasLeft(line.who);
        return { kind: 'cancelled' };
      case 'breaks':
        return this.#break(actor, line.who, line.because);
      case 'on stale':
        await this.#handle(actor).configure({ onStale: line.onStale });
        return { kind: 'configured' };
      case 'resize':
        await actor.box.semaphore(NAME).resize(line.capacity);
        return { kind: 'resized', capacity: line.capacity };
      case 'ends':
        return void (await this.#endLease(actor.session));
      case 'renews':
      case 'extends':
      case 'asks again':
      case 'deadlock':
      case 'tick':
      case 'maintenance':
      case 'settle':
        throw new Error(`no program does this: ${line.kind}`);
    }
  }

  async #ask(actor: Actor, holder: string, how: string, wish: Wish): Promise<unknown> {
    const options = {
      holder,
      priority: wish.priority,
      ...(wish.because !== undefined && { reason: wish.because }),
      ...(how === 'forces' && { strategy: 'force' as const, reason: wish.because ?? '' }),
      ...((how === 'steals' || wish.stealing) && { strategy: 'steal-stale' as const }),
      ...(this.#capacity === undefined
        ? { mode: wish.shared ? ('shared' as const) : ('exclusive' as const) }
        : { weight: wish.weight ?? 1 }),
    };
    const named = wish.capacity === undefined ? {} : { capacity: wish.capacity };
    const wanted = this.#capacity === undefined ? actor.box.lock(NAME) : actor.box.semaphore(NAME, named);
    if (how === 'acquires') return this.#wait(actor, (waiting) => wanted.acquire({ ...options, ...waiting }));
    const attempt = await wanted.tryAcquire(options);
    if ('hold' in attempt && !['extended', 'already-held', 'increased'].includes(attempt.kind))
      actor.hold = attempt.hold;
    return attempt;
  }

  /** Until it has what it wants, is refused, or stands in line. */
  async #wait(
    actor: Actor,
    ask: (options: { signal: AbortSignal; onWaiting: (waiting: object) => void }) => Promise<LockHold | SemaphoreHold>,
  ): Promise<unknown> {
    const quit = new AbortController();
    return new Promise((resolve, reject) => {
      const onWaiting = (waiting: object): void =>
        // Where the store is in this process, it is told before there is a promise.
        queueMicrotask(() => {
          actor.waiting = { quit, over };
          resolve({ ...waiting, kind: 'queued' });
        });
      const over = ask({ signal: quit.signal, onWaiting });
      over.then(
        (hold) => {
          const had = actor.hold;
          if (had === undefined || !had.isValid) actor.hold = hold;
          resolve({ kind: 'acquired', hold });
        },
        (error: unknown) => (error instanceof NotAcquired ? resolve(error.refusal) : reject(error as Error)),
      );
    });
  }

  async #release(actor: Actor): Promise<unknown> {
    const outcome = await actor.hold?.release();
    delete actor.hold;
    return outcome;
  }

  async #break(actor: Actor, holder: string, reason: string): Promise<unknown> {
    const { broken } = await this.#handle(actor).break({ holder, reason });
    return { kind: broken === 0 && this.#capacity === undefined ? 'already-free' : 'broken' };
  }

  #handle(actor: Actor): LockHandle | SemaphoreHandle {
    return this.#capacity === undefined ? actor.box.lock(NAME) : actor.box.semaphore(NAME);
  }

  async #actor(who: string): Promise<Actor> {
    const known = this.#actors.get(who);
    if (known !== undefined) return known;
    const session = `${who}-${++this.#marks}`;
    const box = await open(await this.#place.handle(), {
      clock: this.#clock,
      newId: () => session,
      sessionTtlMs: HOUR_MS,
      maintains: false,
    });
    // A refusal is told to nobody but the one who was refused.
    await box.on('*', (event) => void (event.id === undefined && this.#isOurs(event) && this.#heard.push(event)));
    await box.lock('session').tryAcquire({ mode: 'shared' });
    const actor: Actor = { box, session };
    this.#actors.set(who, actor);
    return actor;
  }

  async #observer(): Promise<Actor> {
    const isNew = !this.#actors.has('!observer');
    const observer = await this.#actor('!observer');
    if (isNew) {
      if (this.#capacity !== undefined) await observer.box.semaphore(NAME).resize(this.#capacity);
      await observer.box.on('*', (event) => {
        if (event.id !== undefined && this.#isOurs(event)) this.#heard.push(event);
      });
      // That the semaphore was made is no part of the story; on a busy etcd the watch may still tell of it.
      await this.#mark(observer);
      this.#heard.splice(0);
    }
    return observer;
  }

  #isOurs({ resource }: SignalboxEvent): boolean {
    return resource === this.#keys.resource;
  }

  /** Whatever was written before has been heard of once this has. */
  async #mark({ box }: Actor): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const name = `mark-${++this.#marks}`;
      const listening = box.on('lock:released', ({ resource }) => {
        if (resource !== `lock/${name}`) return;
        resolve();
        void listening.then((subscription) => subscription.unsubscribe());
      });
      listening.then(() => box.lock(name).run(() => undefined)).catch(reject);
    });
  }

  async #look(): Promise<{ readonly state: Coordinated; readonly signature: string }> {
    const store = (this.#looking ??= await this.#place.handle());
    const look = new Operations();
    const reading = readSnapshot(look, this.#keys, true);
    const { results, revision } = await store.transaction(look.always());
    const { state } = snapshotFrom(this.#machine, reading, results, revision) as { state: Coordinated };
    const leases = state.record.holds.flatMap(({ lease, limit }) => (limit === undefined ? [lease] : [lease, limit]));
    const reads = leases.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    const found = await store.transaction({ compare: [], success: reads, failure: [] });
    this.#gone = new Set(leases.filter((_, i) => (found.results[i] as ReadResult).count === 0));
    const pairs = [...reading.record.in(results).pairs, ...reading.queue.tickets.in(results).pairs];
    const signature = [...pairs.map(({ key, modRevision }) => `${key}@${modRevision}`), ...this.#gone].join();
    return { state, signature };
  }

  /** Its place in the line is given up behind its back; then those move on who waited for nothing else. */
  async #hasLeft(who: string): Promise<void> {
    const machine = this.#machine;
    const at = { now: 0, revision: Number.MAX_SAFE_INTEGER - 1, gone: (lease: string) => this.#gone.has(lease) };
    for (;;) {
      await new Promise(setImmediate);
      const { state } = await this.#look();
      const isIn = state.waiting.some(({ holder }) => holder === who);
      if (!isIn && machine.transition(state, machine.settle, at).state === state) return;
    }
  }

  get #machine(): Machine<Coordinated, unknown, unknown> {
    const machine: unknown = this.#capacity === undefined ? lockMachine : semaphoreMachine;
    return machine as Machine<Coordinated, unknown, unknown>;
  }

  /** At once, as if it had run out. */
  async #endLease(session: string): Promise<void> {
    const store = (this.#looking ??= await this.#place.handle());
    const anchor = { do: 'read' as const, key: anchorKey(session) };
    const { results } = await store.transaction({ compare: [], success: [anchor], failure: [] });
    await store.revokeLease((results[0] as ReadResult).pairs[0]?.lease ?? '');
  }

  /** Those who waited and are not in line any more. */
  async #answers(state: Coordinated): Promise<string[]> {
    const told: string[] = [];
    for (const [who, actor] of this.#actors) {
      if (actor.waiting === undefined || state.waiting.some(({ holder }) => holder === who)) continue;
      const answer = await actor.waiting.over.then(
        ({ token }) => this.#tokens.name(token),
        (error: unknown) => (error instanceof NotAcquired ? this.#shown(error.refusal) : 'lost'),
      );
      actor.waiting = undefined;
      told.push(`${who}: ${answer}`);
    }
    return told;
  }

  async #losses(events: readonly SignalboxEvent[]): Promise<string[]> {
    const told: string[] = [];
    for (const event of events) {
      if (event.type !== 'lock:forced' && event.type !== 'semaphore:forced') continue;
      const hold = this.#actors.get(event.holder)?.hold;
      if (hold?.token !== event.token) continue;
      const { signal } = hold as LockHold;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      const { why, by, reason } = (hold as LockHold).lost ?? { why: 'expired' as const };
      told.push(
        showLoss(
          {
            hold: hold as unknown as Hold,
            why,
            ...(by !== undefined && { by }),
            ...(reason !== undefined && { reason }),
          },
          this.#tokens,
        ),
      );
    }
    return told;
  }

  #shown(outcome: unknown): string {
    const { kind } = outcome as { readonly kind: string };
    if (kind === 'not-owner' || kind === 'broken') return kind;
    if (this.#capacity === undefined) return lock.showOutcome(outcome as never, this.#show);
    return semaphore.showOutcome(outcome as never, this.#show);
  }

  #showState(state: Coordinated): string {
    return this.#capacity === undefined
      ? lock.showState(state as never, this.#show)
      : semaphore.showState(state as never, this.#show);
  }
}

/** What of a line a program sees too. */
export function abridged(transcript: string): string {
  let asked = '';
  const lines = linesOf(transcript)
    .filter((line) => !line.startsWith('#') && (!line.startsWith('- ') || line.includes(': forced')))
    .map((line) => {
      if (line.startsWith('> ')) asked = line;
      // A wait that is over is a hold, however it was come by.
      if (line.startsWith('+ ')) return line.replace(/: [a-z-]+ (#\d+).*/, ': $1');
      if (line.startsWith('= ') && / (acquires|upgrades)/.test(asked)) return line.replace(/^= [a-z-]+ (#\d+)/, '= $1');
      if (line.startsWith('! ')) return line.replace(/(:queued \S+).*/, '$1').replace(/ priority -?\d+/, '');
      return line.replace(/^= (not-owner|broken|cancelled).*/, '= $1').replace('not-holder', 'not-owner');
    });
  // Those who are told something at the same time are told in no order.
  return lines
    .reduce<string[][]>((groups, line) => {
      const last = groups.at(-1);
      if (line.startsWith('+ ') && last?.[0]?.startsWith('+ ') === true) last.push(line);
      else groups.push([line]);
      return groups;
    }, [])
    .flatMap((group) => group.sort())
    .join('\n');
}

const UNTOLD =
  /^> (.* (renews|extends|asks again)\b.*|.*at most .*|.* forces( [^,]*)?|tick|maintenance|settle|.*victim of.*|.*(time is up|extended lease ends)|resize to (-.*|NaN|.*\..*)|.*tries (-.*|NaN|Infinity|.*\..*))$/;

/** Whether programs can do all of it; and nobody who is dead acts, and no lease ends while somebody waits. */
export function isForPrograms(transcript: string): boolean {
  const lines = linesOf(transcript);
  if (lines.some((line) => UNTOLD.test(line))) return false;
  const dead = new Set<string>();
  let state = '';
  for (const line of lines) {
    const who = /^> ([\w-]+)/.exec(line)?.[1] ?? '';
    if (line.startsWith('~ ') && line !== '~ nothing changes') state = line;
    if (/ starts again$/.test(line)) dead.delete(who);
    else if (line.startsWith('> ') && dead.has(who)) return false;
    const waits = new RegExp(`, then (.*, )?${who}\\b`).test(state);
    // What was granted before cannot be given up, only given back.
    if (/ gives up$/.test(line) && !waits) return false;
    if (/ (acquires|upgrades)/.test(line) && waits) return false;
    if (!/'s lease ends$/.test(line)) continue;
    if (state.includes(', then')) return false;
    dead.add(who);
  }
  return true;
}

/** A reader adds to an event why its holder wants the lock, as the hold says; the bare machine does not repeat it. */
function withoutHoldReason<Told extends { readonly type: string }>(event: Told): Told {
  return /:(acquired|queued|stale)$/.test(event.type) ? { ...event, reason: '' } : event;
}
