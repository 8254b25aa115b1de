/**
 * Wakes other processes. Each process with watches has a bell: a file that it watches, and whose times a writer touches
 * after changing something the process listens for. A write wakes only the processes it concerns.
 *
 * The store's file says which bells to ring, so a writer knows it in the very transaction that it announces. The time of the
 * bell's last access is the revision that it was last rung for, in seconds: by that the process on duty sees which bells were
 * not rung, because their writer was killed first. Any other time there only costs one ring more.
 */
import { existsSync, type FSWatcher, lstatSync, readdirSync, unlinkSync, watch } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../../clock.ts';
import type { Revision } from '../contract.ts';
import { randomHex } from '../../host/index.ts';
import { rangeTest } from '../key-order.ts';
import { type Connection, textOf } from './connection.ts';
import type { Made } from './engine.ts';
import { isFolder, makeFile, makeFolder, touch } from './entries.ts';
import type { Touched } from './history.ts';
import type { Access } from './share.ts';

/**
 * The names that processes give to their bells. A store can be written by a process with other ideas, and these names
 * become paths: one that is different, whether from the file or from the directory, is no bell.
 */
const NAME = /^[0-9a-f]{16}$/;
export const BELL_NAME_BYTES = 8;

/**
 * A hundred processes that wake in the same moment share the processor, and the one that the news is for is last as often as
 * first. So when there are many bells, they are rung a few at a time, at about the pace at which the woken processes finish.
 */
const AT_A_TIME = 8;
const BETWEEN_RINGS_MS = 8;
/** Calls carry no news, so they may take longer. A called process connects to the new process on duty, which costs milliseconds. */
const BETWEEN_CALLS_MS = 10;

/**
 * The names sort by the time at which they were given, in steps of an eighth of a second, so that the process that has listened
 * longest can be rung first.
 */
export function newBellName(now: number): string {
  const time = Math.floor(now / 128).toString(16);
  return `${time.padStart(9, '0')}${randomHex(BELL_NAME_BYTES)}`.slice(0, 2 * BELL_NAME_BYTES);
}

export function isBellName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

interface ListenerRow {
  readonly bell: unknown;
  readonly first: string | Uint8Array;
  readonly end: string | Uint8Array | null;
  readonly urgent: string | null;
}

interface Listener {
  readonly bell: string;
  /** Rung only for keys that went with their lease. */
  readonly isPatient: boolean;
}

/** Bells, and the last revision that each is rung for. */
export type Rings = Map<string, Revision>;

/** A ring that carries no news. */
const NO_NEWS: Revision = 0;

/** Bells of this process: they are rung without the detour through the file system. */
const here = new Map<string, () => void>();

export class Bell {
  readonly name: string;
  readonly #path: string;
  readonly #watcher: FSWatcher | undefined;

  /** `onLost`: the file system reports no more changes. */
  constructor(directory: string, access: Access, name: string, onRing: () => void, onLost: () => void) {
    this.name = name;
    this.#path = join(directory, name);
    here.set(name, onRing);
    try {
      makeFolder(directory, access);
      // Empty, and for everyone who may use the store to ring.
      makeFile(this.#path, access);
      this.#watcher = watch(this.#path, { persistent: false }, onRing).on('error', onLost);
    } catch {
      // No more watches are to be had (inotify has a limit for each user), or no file: then it has to look by itself.
      onLost();
    }
  }

  isThere(): boolean {
    return existsSync(this.#path);
  }

  remove(): void {
    here.delete(this.name);
    this.#watcher?.close();
    removeQuietly(this.#path);
  }

  /** The bells that are at least this old. */
  static filesIn(directory: string, ageMs: number): string[] {
    try {
      if (!isFolder(directory)) return [];
      return readdirSync(directory).filter((name) => {
        if (!isBellName(name)) return false;
        const stat = lstatSync(join(directory, name));
        return (stat.isFile() || stat.isSocket()) && Date.now() - stat.birthtimeMs > ageMs;
      });
    } catch {
      // Some have just gone; there will be another time.
      return [];
    }
  }

  /** The bell of another process, which is gone. */
  static removeFile(directory: string, name: string): void {
    if (isBellName(name) && isFolder(directory)) removeQuietly(join(directory, name));
  }
}

/** A link is removed itself, and a directory, which is no bell, not at all. */
function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It has gone already.
  }
}

/** The listeners and their keys, as of one version of the list. */
export class Listeners {
  readonly #connection: Connection;
  readonly #directory: string;
  readonly #clock: Clock;
  #version = -1;
  #keys = new Map<string, Listener[]>();
  #ranges: (Listener & { readonly isWanted: (key: string) => boolean })[] = [];
  /** Bells that are still to be rung for news, in this order; */
  readonly #unrung: Rings = new Map();
  /** and bells of processes to call, one with each batch of news. */
  readonly #uncalled = new Set<string>();
  #timer: Timer | undefined;

  constructor(connection: Connection, directory: string, clock: Clock) {
    this.#connection = connection;
    this.#directory = directory;
    this.#clock = clock;
  }

  /** Rings for everyone who listens for something of this, except for `own`. False if it is not known who does. */
  announce(made: readonly Made[], version: number, own: string | undefined): boolean {
    let concerned: Rings;
    try {
      concerned = this.concernedBy(made.flatMap(touchedBy), version);
    } catch {
      // What is announced is committed, whatever happens here; the process on duty rings again.
      return false;
    }
    if (own !== undefined) concerned.delete(own);
    this.ringAll(concerned);
    return true;
  }

  /** The process that has listened longest comes first: of those that wait for a lock, it is most often the next. */
  ringAll(bells: ReadonlyMap<string, Revision>): void {
    if (bells.size <= AT_A_TIME) {
      for (const [bell, revision] of bells) {
        // This ring is for more than the one that it waits for.
        this.#unrung.delete(bell);
        this.ring(bell, revision);
      }
      return;
    }
    // Behind those that were to be rung before, or a process that writes all the time would never get to the youngest.
    const areOthersFirst = this.#unrung.size > 0;
    for (const bell of [...bells.keys()].sort()) add(this.#unrung, bell, bells.get(bell) as Revision);
    if (areOthersFirst) return;
    this.#timer?.cancel();
    this.#ringSome();
  }

  /** Rings these bells one after the other. Their owners then notice that another process is on duty. */
  call(bells: ReadonlySet<string>): void {
    for (const bell of [...bells].sort()) this.#uncalled.add(bell);
    if (this.#timer === undefined) this.#ringSome();
  }

  /** Rings at once what was to be rung in turn. */
  ringRest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const bell of new Set([...this.#unrung.keys(), ...this.#uncalled])) this.ring(bell, this.#unrung.get(bell));
    this.#unrung.clear();
    this.#uncalled.clear();
  }

  #ringSome(): void {
    this.#timer = undefined;
    for (const bell of [...[...this.#unrung.keys()].slice(0, AT_A_TIME), ...[...this.#uncalled].slice(0, 1)]) {
      const revision = this.#unrung.get(bell);
      this.#unrung.delete(bell);
      this.#uncalled.delete(bell);
      this.ring(bell, revision);
    }
    if (this.#unrung.size + this.#uncalled.size === 0) return;
    const pauseMs = this.#unrung.size > 0 ? BETWEEN_RINGS_MS : BETWEEN_CALLS_MS;
    this.#timer = this.#clock.timer(pauseMs, () => this.#ringSome());
  }

  /** The bells to ring for changes of these keys. `version`: of the list, as the state of the store has it. */
  concernedBy(touched: readonly Touched[], version: number): Rings {
    if (version !== this.#version) this.#read(version);
    const concerned: Rings = new Map();
    for (const { key, wentWithLease, revision } of touched) {
      for (const { bell, isPatient } of this.#keys.get(key) ?? []) {
        if (wentWithLease || !isPatient) add(concerned, bell, revision);
      }
      for (const { bell, isPatient, isWanted } of this.#ranges) {
        if ((wentWithLease || !isPatient) && isWanted(key)) add(concerned, bell, revision);
      }
    }
    return concerned;
  }

  all(version: number): Set<string> {
    if (version !== this.#version) this.#read(version);
    return new Set([...[...this.#keys.values()].flat(), ...this.#ranges].map(({ bell }) => bell));
  }

  /** The revision that a bell was last rung for, after it was committed. Undefined if that is not known. */
  rungFor(bell: string): Revision | undefined {
    try {
      const seconds = lstatSync(join(this.#directory, bell)).atimeMs / 1000;
      // A time of day that somebody else set, on a machine whose clock begins in 1970.
      return Number.isInteger(seconds) ? seconds : undefined;
    } catch {
      return undefined;
    }
  }

  ring(bell: string, revision: Revision = NO_NEWS): void {
    const local = here.get(bell);
    if (local !== undefined) {
      setImmediate(local);
      return;
    }
    try {
      touch(join(this.#directory, bell), Date.now(), revision);
    } catch {
      // Its owner is gone, and will be taken off the list; or it finds out when it next looks by itself.
    }
  }

  #read(version: number): void {
    const texts = `${this.#connection.text('first')}, ${this.#connection.text('end')}`;
    const rows = this.#connection.sql(`SELECT bell, ${texts}, urgent FROM listener`).all() as ListenerRow[];
    this.#keys = new Map();
    this.#ranges = [];
    for (const { bell, first, end, urgent } of rows) {
      if (!isBellName(bell)) continue;
      const listener = { bell, isPatient: urgent === 'lease-ends' };
      const key = textOf(first);
      if (end !== null) this.#ranges.push({ ...listener, isWanted: rangeTest({ key, end: textOf(end) }) });
      else this.#keys.set(key, [...(this.#keys.get(key) ?? []), listener]);
    }
    this.#version = version;
  }
}

function add(rings: Rings, bell: string, revision: Revision): void {
  rings.set(bell, Math.max(rings.get(bell) ?? NO_NEWS, revision));
}

function touchedBy({ revision, changes, lease }: Made): Touched[] {
  return changes.map((change) => ({
    key: change.kind === 'put' ? change.pair.key : change.key,
    wentWithLease: lease !== null,
    revision,
  }));
}
