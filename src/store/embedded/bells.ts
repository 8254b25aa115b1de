/**
 * Wakes other processes. Each process with watches has a bell: a file that it watches. A writer that changed something
 * the process listens for sets the times of this file. A write wakes only the processes it concerns.
 *
 * The store's file says which bells to ring, so a writer reads the list in the same transaction that it announces. The
 * bell's access time, in seconds, is the last revision that the bell was rung for: so the process on duty sees which
 * bells were not rung because their writer was killed first. Any other time there only costs one more ring.
 */
import { existsSync, type FSWatcher, lstatSync, readdirSync, unlinkSync, watch } from 'node:fs';
import { join, sep } from 'node:path';
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
 * The names that processes give to their bells. Another program may have written the store, and these names become
 * paths: a name that looks different, whether in the file or in the directory, is no bell.
 */
const NAME = /^[0-9a-f]{16}$/;
export const BELL_NAME_BYTES = 8;

/**
 * A hundred processes that wake in the same moment share the processor, and the process that the news is for comes last
 * as often as first. So when there are many bells, they are rung a few at a time, at about the pace at which the woken
 * processes finish.
 */
const AT_A_TIME = 8;
const BETWEEN_RINGS_MS = 8;
/** Calls carry no news, so they may take longer. A called process connects to the new process on duty, which costs milliseconds. */
const BETWEEN_CALLS_MS = 10;

/**
 * Makes names that sort by the time at which they were given, in steps of an eighth of a second, so that the process
 * that has listened longest can be rung first.
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

/** Bells, and for each the last revision that it is rung for. */
export type Rings = Map<string, Revision>;

/** A ring that carries no news. */
const NO_NEWS: Revision = 0;

/** Bells of this process: they are rung without the detour through the file system. */
const here = new Map<string, () => void>();

export class Bell {
  readonly name: string;
  readonly #path: string;
  readonly #watcher: FSWatcher | undefined;

  /** `onRemoved`: there is no such file any more. `onLost`: the file system reports no more changes. */
  constructor(
    directory: string,
    access: Access,
    name: string,
    onRing: () => void,
    onRemoved: () => void,
    onLost: () => void,
  ) {
    this.name = name;
    this.#path = join(directory, name);
    here.set(name, onRing);
    try {
      makeFolder(directory, access);
      // An empty file, which everyone who may use the store can ring.
      makeFile(this.#path, access);
      const onChange = (event: string): void => {
        if (event === 'rename' && !this.isThere()) onRemoved();
        else onRing();
      };
      this.#watcher = watch(this.#path, { persistent: false }, onChange).on('error', onLost);
    } catch {
      // No file watch is left (inotify has a limit for each user), or there is no file: then the owner has to look by itself.
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
        // Some file systems do not tell when a file was made.
        const madeAt = Math.max(stat.birthtimeMs, stat.ctimeMs);
        return (stat.isFile() || stat.isSocket()) && Date.now() - madeAt > ageMs;
      });
    } catch {
      // Some of the files have just gone; the next tidying finds the rest.
      return [];
    }
  }

  /** Removes the bell of another process, which is gone. */
  static removeFile(directory: string, name: string): void {
    if (isBellName(name) && isFolder(directory)) removeQuietly(join(directory, name));
  }
}

/**
 * Removes a bell, or the socket of a process on duty: a link rather than its target, and never a directory. Leaves behind
 * what cannot be removed, as a killed process would.
 */
export function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The file has gone already, or the directory cannot be written any more.
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

  /**
   * Rings the bells of all who listen for one of these changes, except `own`. Returns false if the list of listeners
   * cannot be read.
   */
  announce(made: readonly Made[], version: number, own: string | undefined): boolean {
    const concerned: Rings = new Map();
    try {
      this.#readIfChanged(version);
    } catch {
      // The changes are committed, whatever happens here; the process on duty rings again.
      return false;
    }
    for (const { revision, changes, lease } of made) {
      for (const change of changes) {
        const key = change.kind === 'put' ? change.pair.key : change.key;
        this.#addConcerned(concerned, key, lease !== null, revision);
      }
    }
    if (own !== undefined) concerned.delete(own);
    this.ringAll(concerned);
    return true;
  }

  /** Rings the process that has listened longest first: of those that wait for a lock, it is most often the next. */
  ringAll(bells: ReadonlyMap<string, Revision>): void {
    if (bells.size <= AT_A_TIME) {
      for (const [bell, revision] of bells) {
        // This ring is for a later revision than the ring that was still to come, so it replaces that ring.
        this.#unrung.delete(bell);
        this.ring(bell, revision);
      }
      return;
    }
    // New bells go behind those still to be rung; otherwise, a process that writes all the time would never ring the youngest.
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

  /** Rings at once all bells that were still to be rung in turn. */
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

  /**
   * The bells to ring for changes of these keys. `version` is that of the list of listeners, as the state of the store
   * has it.
   */
  concernedBy(touched: readonly Touched[], version: number): Rings {
    this.#readIfChanged(version);
    const concerned: Rings = new Map();
    for (const { key, wentWithLease, revision } of touched) {
      this.#addConcerned(concerned, key, wentWithLease, revision);
    }
    return concerned;
  }

  #addConcerned(concerned: Rings, key: string, wentWithLease: boolean, revision: Revision): void {
    for (const { bell, isPatient } of this.#keys.get(key) ?? []) {
      if (wentWithLease || !isPatient) add(concerned, bell, revision);
    }
    for (const { bell, isPatient, isWanted } of this.#ranges) {
      if ((wentWithLease || !isPatient) && isWanted(key)) add(concerned, bell, revision);
    }
  }

  all(version: number): Set<string> {
    this.#readIfChanged(version);
    return new Set([...[...this.#keys.values()].flat(), ...this.#ranges].map(({ bell }) => bell));
  }

  /** The last committed revision that the bell was rung for. Undefined if it is not known. */
  rungFor(bell: string): Revision | undefined {
    try {
      const seconds = lstatSync(this.#pathOf(bell)).atimeMs / 1000;
      // A revision is a whole number of seconds. A fraction means that some program set a time of day, which on a
      // machine whose clock starts in 1970 could otherwise pass for a revision.
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
      touch(this.#pathOf(bell), Date.now(), revision);
    } catch {
      // Its owner is gone, and will be taken off the list; or the owner finds the change when it next looks by itself.
    }
  }

  /** Bell names are plain, so that there is nothing for `join` to do, which reads a path letter by letter. */
  #pathOf(bell: string): string {
    return `${this.#directory}${sep}${bell}`;
  }

  #readIfChanged(version: number): void {
    if (version === this.#version) return;
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
