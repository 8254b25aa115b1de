/**
 * What the process on duty does for the bells of other processes, so that none of them has to look by itself:
 *
 *     a bell that was not rung      its writer was killed between commit and bell: it is rung once more, a moment later
 *     a process that cannot hear    the system's file watches are used up: the process on duty listens for its bell, and
 *                                   passes each ring on over the connection
 *     a process that fell behind    half of the history was written since it was last woken: it is woken to read on
 */
import { watch } from 'node:fs';
import { join } from 'node:path';
import type { Revision } from '../contract.ts';
import type { Listeners, Rings } from './bells.ts';
import type { Engine, Made, State } from './engine.ts';

/** Fewer revisions than this are read in no time, so nobody is woken to read on. */
const FEW_REVISIONS = 256;

interface Deaf {
  /** Undefined if there is no file watch left for it here either. */
  readonly watcher: { close(): void } | undefined;
  tell(): void;
}

export class Relay {
  readonly #engine: Engine;
  readonly #listeners: Listeners;
  readonly #directory: string;
  readonly #deaf = new Map<string, Deaf>();
  /** All changes up to this revision have been rung for again. */
  #rungUpTo: Revision = 0;
  /** Whether the processes that relied on another process so far have been told that it is gone. */
  #hasCalled = false;
  /** Up to where processes were told whose bells cannot be heard here either. */
  #toldUpTo: Revision = 0;
  /** The revision at which all processes were last woken. */
  #allRungAt: Revision = 0;

  constructor(engine: Engine, listeners: Listeners, directory: string) {
    this.#engine = engine;
    this.#listeners = listeners;
    this.#directory = directory;
  }

  /**
   * To be called before any process relies on this one; each that does then looks once by itself. The others still rely
   * on the process before, and are called without hurry.
   */
  begin(): void {
    const { revision, forgotten } = this.#engine.state();
    this.#hasCalled = false;
    this.#toldUpTo = this.#allRungAt = revision;
    // The process before may have been killed between its last writes and their bells.
    this.#rungUpTo = Math.max(forgotten, revision - FEW_REVISIONS);
  }

  /** Rings again for changes since the last time that may not have been rung for. `own` needs no bell. */
  ringAgain(own: string | undefined): void {
    const state = this.#engine.state();
    if (this.#hasCalled && this.#rungUpTo === state.revision) return;
    const isAll = this.#rungUpTo < state.forgotten || this.#isHalfGone(state);
    const bells = isAll ? this.#allBells(state) : this.#concernedSince(this.#rungUpTo, state);
    this.#rungUpTo = state.revision;
    if (isAll) this.#allRungAt = state.revision;
    if (own !== undefined) bells.delete(own);
    for (const [bell, { tell }] of this.#deaf) if (bells.delete(bell)) tell();
    if (!isAll) this.#leaveOutRung(bells, state);
    this.#listeners.ringAll(bells);
    if (this.#hasCalled) return;
    this.#hasCalled = true;
    const others = this.#listeners.all(state.listeners);
    for (const bell of [own, ...this.#deaf.keys(), ...bells.keys()]) others.delete(bell ?? '');
    this.#listeners.call(others);
  }

  /**
   * The process on duty has rung for its own changes, for example when it ends leases: hundreds of processes need no
   * second ring.
   */
  rangFor(made: readonly Made[]): void {
    for (const { revision } of made) if (revision - 1 === this.#rungUpTo) this.#rungUpTo = revision;
  }

  /** Whether some bells have no file watch here either, so that this process has to look. */
  get mustLook(): boolean {
    for (const { watcher } of this.#deaf.values()) if (watcher === undefined) return true;
    return false;
  }

  /** Looks on behalf of those processes. */
  look(): void {
    if (!this.mustLook) return;
    const state = this.#engine.state();
    if (state.revision === this.#toldUpTo) return;
    const bells = this.#concernedSince(this.#toldUpTo, state);
    this.#toldUpTo = state.revision;
    for (const bell of bells.keys()) {
      const deaf = this.#deaf.get(bell);
      if (deaf?.watcher === undefined) deaf?.tell();
    }
  }

  /** Listens for the bell of a process that cannot, and tells that process whenever the bell is rung. Returns how to stop. */
  hearFor(bell: string, tell: () => void): () => void {
    this.#deaf.get(bell)?.watcher?.close();
    const deaf = { watcher: this.#watch(bell, tell), tell };
    this.#deaf.set(bell, deaf);
    // Nobody heard the rings before this moment.
    tell();
    return () => {
      deaf.watcher?.close();
      if (this.#deaf.get(bell) === deaf) this.#deaf.delete(bell);
    };
  }

  end(): void {
    for (const { watcher } of this.#deaf.values()) watcher?.close();
    this.#deaf.clear();
  }

  #watch(bell: string, tell: () => void): Deaf['watcher'] {
    try {
      // If this watch fails later, the process notices at its next look of its own.
      return watch(join(this.#directory, bell), { persistent: false }, tell).on('error', () => undefined);
    } catch {
      return undefined;
    }
  }

  /** Leaves out the bells that their writers did ring. A revision that is yet to come means that some program set the time. */
  #leaveOutRung(bells: Rings, { revision: newest }: State): void {
    for (const [bell, revision] of bells) {
      const rungFor = this.#listeners.rungFor(bell);
      if (rungFor !== undefined && rungFor >= revision && rungFor <= newest) bells.delete(bell);
    }
  }

  #allBells({ listeners, revision }: State): Rings {
    return new Map([...this.#listeners.all(listeners)].map((bell) => [bell, revision]));
  }

  #concernedSince(since: Revision, { listeners }: State): Rings {
    return this.#listeners.concernedBy(this.#engine.keysAfter(since), listeners);
  }

  /** Whether half of the history is unread: a watch that falls behind by all of it would have to list everything again. */
  #isHalfGone({ revision, forgotten }: State): boolean {
    const unread = revision - this.#allRungAt;
    return unread >= FEW_REVISIONS && unread > (revision - forgotten) / 2;
  }
}
