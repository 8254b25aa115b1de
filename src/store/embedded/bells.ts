/**
 * Waking other processes. Each process that watches has a bell: a file whose times are touched by whoever changed
 * something that it listens for, and which it watches. Only those concerned are woken, however many there are.
 *
 * Which bells to ring is in the file too, so that a writer knows it in the very transaction that it announces.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  type FSWatcher,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  watch,
} from 'node:fs';
import { join } from 'node:path';
import type { Changes } from '../contract.ts';
import { rangeTest } from '../key-order.ts';
import type { Connection } from './connection.ts';

interface ListenerRow {
  readonly bell: string;
  readonly first: string;
  readonly end: string | null;
}

/** Bells of this process: they are rung without the detour through the file system. */
const here = new Map<string, () => void>();

export class Bell {
  readonly name: string;
  readonly #path: string;
  readonly #watcher: FSWatcher | undefined;

  /** `onLost`: the file system will not tell any more. */
  constructor(directory: string, name: string, onRing: () => void, onLost: () => void) {
    this.name = name;
    this.#path = join(directory, name);
    here.set(name, onRing);
    try {
      mkdirSync(directory, { recursive: true });
      closeSync(openSync(this.#path, 'w'));
      // Empty, and for everyone who may enter the directory to ring.
      chmodSync(this.#path, 0o666);
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
    rmSync(this.#path, { force: true });
  }

  /** Those that were made so long ago, or more. */
  static filesIn(directory: string, ageMs: number): string[] {
    try {
      return readdirSync(directory).filter((name) => Date.now() - statSync(join(directory, name)).birthtimeMs > ageMs);
    } catch {
      // Some have just gone; there will be another time.
      return [];
    }
  }

  /** The bell of another process, which is gone. */
  static removeFile(directory: string, name: string): void {
    rmSync(join(directory, name), { force: true });
  }
}

/** Who listens for what, as of one version of the list. */
export class Listeners {
  readonly #connection: Connection;
  readonly #directory: string;
  #version = -1;
  #keys = new Map<string, Set<string>>();
  #ranges: { readonly bell: string; readonly isWanted: (key: string) => boolean }[] = [];

  constructor(connection: Connection, directory: string) {
    this.#connection = connection;
    this.#directory = directory;
  }

  /** Rings for everyone who listens for something of this, except for `own`. */
  announce(made: readonly Changes[], version: number, own: string | undefined): void {
    try {
      if (version !== this.#version) this.#read(version);
    } catch {
      // What is announced is committed, whatever happens here; they find out when they next look by themselves.
      return;
    }
    const wanted = new Set<string>();
    for (const { changes } of made) {
      for (const change of changes) this.#collect(change.kind === 'put' ? change.pair.key : change.key, wanted);
    }
    if (own !== undefined) wanted.delete(own);
    for (const bell of wanted) this.#ring(bell);
  }

  #collect(key: string, wanted: Set<string>): void {
    for (const bell of this.#keys.get(key) ?? []) wanted.add(bell);
    for (const { bell, isWanted } of this.#ranges) if (isWanted(key)) wanted.add(bell);
  }

  #ring(bell: string): void {
    const local = here.get(bell);
    if (local !== undefined) {
      setImmediate(local);
      return;
    }
    const path = join(this.#directory, bell);
    try {
      // Which times does not matter; that they are set does.
      utimesSync(path, 0, Date.now() / 1000);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') ringAsStranger(path);
      // Its owner is gone, and will be taken off the list; or it finds out when it next looks by itself.
    }
  }

  #read(version: number): void {
    const rows = this.#connection.sql('SELECT bell, first, end FROM listener').all() as ListenerRow[];
    this.#keys = new Map();
    this.#ranges = [];
    for (const { bell, first, end } of rows) {
      if (end === null) this.#keys.set(first, (this.#keys.get(first) ?? new Set()).add(bell));
      else this.#ranges.push({ bell, isWanted: rangeTest({ key: first, end }) });
    }
    this.#version = version;
  }
}

/** Another user's file: its times are not ours to set, but we may write it. */
function ringAsStranger(path: string): void {
  try {
    truncateSync(path, 0);
  } catch {
    // It looks by itself a little later.
  }
}
