/**
 * The watches of one handle. They share one bell, which is on the list in the file as long as there are watches. Other
 * processes take a bell off the list after a long silence; a process that was only asleep enters its bell again.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../../clock.ts';
import type { Failure } from '../../failure.ts';
import { identityFrom, ifPossible, isProvenGone, type ProcessIdentity, thisProcess } from '../../host/index.ts';
import { isBusy } from '../../sqlite/index.ts';
import type { KeyRange, Revision, WatchHint } from '../contract.ts';
import { Bell, isBellName, Listeners, newBellName } from './bells.ts';
import type { Counters, Cursor, Engine, Made, News } from './engine.ts';
import { Relay } from './relay.ts';
import type { Access } from './share.ts';
import type { EmbeddedWatch } from './watches.ts';

/** How often a process says that it still listens. */
const WORD_MS = 20_000;
/** It says so a little sooner if it writes anyway. */
const EARLY_WORD_MS = 0.8 * WORD_MS;
/** After this long a silence, others take a bell off the list although its process may be alive. */
const SILENT_MS = 60_000;
/** In this time a program that removes the whole store is done with it. */
const REHANG_MS = 1000;

/**
 * Bells of dead processes stay listed for a while. The process on duty looks up at most this many to find the eldest
 * living ones.
 */
const MOST_LOOKED_UP = 256;
/** A process that asks about itself reads the list only this far past them, and asks again once the dead are off the list. */
const MOST_DEAD = 32;
/** The bells of our boot and pid namespace: processes of another namespace choose a process on duty of their own. */
const NEIGHBOURS = '(process IS NULL OR (instr(process, ?) > 0 AND instr(process, ?) > 0))';

/** A watch in the table `listener`. */
interface Entry {
  readonly id: number;
  readonly hint: WatchHint;
}

interface BellRow {
  readonly name: unknown;
  readonly process: string | null;
  readonly clock: number;
  readonly heard: number;
}

export class Listening {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #directory: string;
  readonly #access: Access;
  readonly #onRing: () => void;
  readonly #onDeaf: () => void;
  readonly #listeners: Listeners;
  readonly #watches = new Map<EmbeddedWatch, Entry>();
  /** The last word that was read from each bell, and since when we know it, on our own clock. */
  readonly #heard = new Map<string, { readonly clock: number; readonly heard: number; readonly since: number }>();
  #bell: Bell | undefined;
  #rehanging: Timer | undefined;
  #serial = 0;
  #lookedUpTo: Revision = 0;
  #version = 0;
  #isDeaf = false;
  #said = Number.NEGATIVE_INFINITY;
  /** What we do for others while we are on duty. */
  readonly relay: Relay;

  /** `onRing` has to make sure that `look` is called. `onDeaf`: the bell cannot be heard here. */
  constructor(engine: Engine, clock: Clock, directory: string, access: Access, onRing: () => void, onDeaf: () => void) {
    this.#onRing = onRing;
    this.#onDeaf = onDeaf;
    this.#engine = engine;
    this.#clock = clock;
    this.#directory = join(directory, 'bells');
    this.#access = access;
    this.#listeners = new Listeners(engine.connection, this.#directory, clock);
    this.relay = new Relay(engine, this.#listeners, this.#directory);
  }

  get isEmpty(): boolean {
    return this.#watches.size === 0;
  }

  /** Whether the file system does not report that the bell was rung: then this process has to look. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  get bell(): string | undefined {
    return this.#bell?.name;
  }

  /** The version of the list of listeners that the last look saw. */
  get version(): number {
    return this.#version;
  }

  /** Enters a watch. From the revision that this returns on, every urgent write in this range rings our bell. */
  enter(
    range: KeyRange,
    hint: WatchHint = {},
  ): { readonly entry: Entry; readonly revision: Revision; readonly compacted: Revision } {
    // Others may have taken the bell for that of a dead process, if this handle had no watches for long.
    if (this.#bell === undefined || !this.#isDeaf) this.#hangIfGone();
    const entry = { id: ++this.#serial, hint };
    return this.#engine.write(({ revision, compacted }) => {
      this.#beOnList();
      this.#enterListener(entry, range);
      return { entry, revision, compacted };
    });
  }

  add(watch: EmbeddedWatch, entry: Entry): void {
    this.#watches.set(watch, entry);
  }

  /** Removes a watch that has ended; returns what is left to be done in the file. */
  remove(watch: EmbeddedWatch): (() => void) | undefined {
    const entry = this.#watches.get(watch);
    if (entry === undefined) return undefined;
    this.#watches.delete(watch);
    return () => {
      const { connection } = this.#engine;
      this.#engine.write(() => {
        connection.sql('DELETE FROM listener WHERE bell = ? AND id = ?').run(this.#bell?.name ?? '', entry.id);
        connection.sql('UPDATE state SET listeners = listeners + 1').run();
      });
    };
  }

  /** Announces changes that this handle made: to others by their bells, to its own watches directly. */
  announce(made: readonly Made[], version: number): void {
    // The others first: a process that wakes takes a while until it reads.
    if (this.#listeners.announce(made, version, this.#bell?.name)) this.relay.rangFor(made);
    for (const watch of this.#watches.keys()) {
      for (const changes of made) {
        if (!watch.offer(changes)) continue;
        // Others wrote in between: the watch has to read their changes first.
        watch.lookFurther();
        break;
      }
    }
  }

  /**
   * To be called when another process may have written. Reads for all watches at once: a transaction for each would
   * take longer.
   */
  readonly look = (): void => {
    if (this.#watches.size === 0) return;
    let upTo = this.#lookedUpTo;
    let watches = [...this.#watches.keys()];
    const news = this.#newsAt(({ revision, listeners }) => {
      this.#version = listeners;
      // Reads nothing for a watch whose reader is slow: the same would be read again at every ring.
      watches = revision === upTo ? [] : watches.filter((watch) => watch.takesMore());
      upTo = revision;
      return watches.map(({ cursor }) => cursor);
    });
    // Only after the reading: a watch that ends writes to the file.
    watches.forEach((watch, place) => watch.receive(news[place]));
    this.#lookedUpTo = upTo;
  };

  /** If reading fails, each watch reads by itself and ends with the error. */
  #newsAt(cursorsAt: (counters: Counters) => readonly Cursor[]): (News | Failure | undefined)[] {
    try {
      return this.#engine.news(cursorsAt);
    } catch (error) {
      if (isBusy(error)) throw error;
      return [];
    }
  }

  /** Tells the others that we still listen, if it is time to. */
  stayOnList(): void {
    if (this.#watches.size === 0 || !this.#isWordDue(WORD_MS)) return;
    this.#hangIfGone();
    this.#engine.write(() => this.#beOnList());
  }

  /** Does the same within a write that is made for another reason: a transaction of its own would cost more. */
  stayOnListAlong(): void {
    if (this.#watches.size === 0 || !this.#isWordDue(EARLY_WORD_MS)) return;
    this.#hangIfGone();
    this.#beOnList();
  }

  /** Tries once more to hear the bell: a file watch may have become free. */
  retryHearing(): void {
    if (this.#isDeaf && this.#bell !== undefined) this.#hang(this.#bell.name);
  }

  #isWordDue(afterMs: number): boolean {
    return this.#clock.monotonic() - this.#said >= afterMs;
  }

  /** Says, within a write, that we still listen. If we were taken off the list, enters all that we listen for again. */
  #beOnList(): void {
    const { connection, leases } = this.#engine;
    const name = this.#bell?.name ?? '';
    const clock = leases.own.enter();
    this.#said = this.#clock.monotonic();
    const said = connection.sql('UPDATE bell SET heard = ?, clock = ? WHERE name = ?').run(this.#said, clock, name);
    if (said.changes > 0) return;
    const process = thisProcess();
    connection
      .sql('INSERT INTO bell (name, process, clock, heard) VALUES (?, ?, ?, ?)')
      .run(name, process === undefined ? null : JSON.stringify(process), clock, this.#said);
    for (const [watch, entry] of this.#watches) this.#enterListener(entry, watch.range);
    // Nobody rang for what was written while we were not on the list.
    if (this.#watches.size > 0) setImmediate(this.#onRing);
  }

  /** A process that takes us off the list removes our bell too; so may a program that removes old files. */
  #hangIfGone(): void {
    const bell = this.#bell;
    if (bell?.isThere() === true) return;
    this.#hang(bell?.name ?? this.#newName());
    // A writer may have rung the bell after it was made and before we heard it, and no process rings for that again.
    if (bell !== undefined) setImmediate(this.#onRing);
  }

  /**
   * Does not wait for the next word: until the bell hangs again, nothing wakes us. But waits a moment: a program that removes
   * the whole store must not find something new in it.
   */
  readonly #wasRemoved = (): void => {
    this.#rehanging ??= this.#clock.timer(REHANG_MS, () => {
      this.#rehanging = undefined;
      // Without the folder of the bells the store is gone too.
      if (this.#watches.size === 0 || !existsSync(this.#directory)) return;
      this.#said = Number.NEGATIVE_INFINITY;
      this.#hangIfGone();
    });
  };

  /** How many handles listen in our pid namespace. */
  count(): number {
    const row = this.#engine.connection.sql(`SELECT count(*) AS count FROM bell WHERE ${NEIGHBOURS}`).get(...ours());
    return (row as { count: number }).count;
  }

  /**
   * Whether fewer than `most` living handles of our pid namespace have listened for longer. Hundreds of processes ask
   * in the same moment, and most of them are far behind: those look up no process.
   */
  isAmongEldest(most: number): boolean {
    const own = this.#bell?.name;
    if (own === undefined) return true;
    const rows = this.#longest(most + MOST_DEAD);
    const place = rows.findIndex(({ name }) => name === own);
    return place >= 0 && living(rows.slice(0, place), most).length < most;
  }

  /** Wakes the last `few` of the `most` that have listened longest: they may have just become deputies. */
  ringEldest(most: number, few: number): void {
    for (const name of living(this.#longest(MOST_LOOKED_UP), most).slice(-few)) {
      if (name !== this.#bell?.name) this.#listeners.ring(name);
    }
  }

  /** The handles of our pid namespace that have listened longest, whether they live or not. */
  #longest(most: number): Pick<BellRow, 'name' | 'process'>[] {
    return this.#engine.connection
      .sql(`SELECT name, process FROM bell WHERE ${NEIGHBOURS} ORDER BY name LIMIT ${most}`)
      .all(...ours()) as Pick<BellRow, 'name' | 'process'>[];
  }

  /** Takes dead processes off the list, and names that are no bells: no path may be made from such a name. */
  tidy(): void {
    const { connection } = this.#engine;
    const listed = connection.sql('SELECT name, process, clock, heard FROM bell').all() as BellRow[];
    const rung = connection.sql('SELECT DISTINCT bell FROM listener').all() as { bell: unknown }[];
    const gone = listed.filter((row) => isBellName(row.name) && this.#isGone(row)).map(({ name }) => name as string);
    const odd = [...listed.map(({ name }) => name), ...rung.map(({ bell }) => bell)].filter(
      (name) => !isBellName(name),
    );
    if (gone.length + odd.length > 0) {
      this.#engine.write(() => {
        for (const name of [...gone, ...odd]) this.#strike(name);
      });
    }
    for (const name of gone) {
      this.#heard.delete(name);
      Bell.removeFile(this.#directory, name);
    }
    this.#removeUnlisted();
  }

  /** A process that was killed between making its bell and entering it left a file without an owner. */
  #removeUnlisted(): void {
    const listed = this.#engine.connection.sql('SELECT 1 FROM bell WHERE name = ?');
    for (const name of Bell.filesIn(this.#directory, SILENT_MS)) {
      if (listed.get(name) === undefined && name !== this.#bell?.name) Bell.removeFile(this.#directory, name);
    }
  }

  /** Ends everything, in the file as well. Throws if the file is busy, and may then be called again. */
  close(): void {
    const bell = this.#bell;
    if (bell !== undefined) this.#engine.write(() => this.#strike(bell.name));
    this.abandon();
  }

  abandon(): void {
    this.#listeners.ringRest();
    this.#rehanging?.cancel();
    this.#bell?.remove();
    this.#bell = undefined;
  }

  #newName(): string {
    for (;;) {
      const name = newBellName(this.#clock.now());
      if (!existsSync(join(this.#directory, name))) return name;
    }
  }

  #hang(name: string): void {
    this.#bell?.remove();
    this.#isDeaf = false;
    this.#bell = new Bell(this.#directory, this.#access, name, this.#onRing, this.#wasRemoved, () => {
      this.#isDeaf = true;
      setImmediate(this.#onDeaf);
    });
  }

  #enterListener({ id, hint }: Entry, { key, end }: KeyRange): void {
    const { connection } = this.#engine;
    connection
      .sql('INSERT OR REPLACE INTO listener (bell, id, first, end, urgent) VALUES (?, ?, ?, ?, ?)')
      .run(this.#bell?.name ?? '', id, key, end ?? null, hint.urgent ?? null);
    connection.sql('UPDATE state SET listeners = listeners + 1').run();
  }

  #strike(bell: unknown): void {
    const { connection } = this.#engine;
    connection.sql('DELETE FROM listener WHERE bell = ?').run(bell);
    connection.sql('DELETE FROM bell WHERE name = ?').run(bell);
    connection.sql('UPDATE state SET listeners = listeners + 1').run();
  }

  #isGone({ name, process, clock, heard }: BellRow): boolean {
    if (name === this.#bell?.name) return false;
    if (this.#silentMs(name as string, clock, heard) > SILENT_MS) return true;
    const owner = ownerIn(process);
    return owner !== undefined && isProvenGone(owner);
  }

  /** How long the owner has been silent; if it counts on another clock, how long this process has heard nothing new. */
  #silentMs(name: string, clock: number, heard: number): number {
    const now = this.#clock.monotonic();
    if (clock === this.#engine.leases.own.id) return now - heard;
    const known = this.#heard.get(name);
    if (known?.clock === clock && known.heard === heard) return now - known.since;
    this.#heard.set(name, { clock, heard, since: now });
    return 0;
  }
}

/** Our boot and pid namespace, as they are written in the identity of a process. */
function ours(): [boot: string, space: string] {
  const { boot = '', space = '' } = thisProcess() ?? {};
  return [`"boot":${JSON.stringify(boot)}`, `"space":${JSON.stringify(space)}`];
}

/** The first `most` of these bells whose processes have not ended, as far as is known. */
function living(rows: readonly Pick<BellRow, 'name' | 'process'>[], most: number): string[] {
  const found: string[] = [];
  for (const { name, process } of rows) {
    if (found.length === most) break;
    const owner = ownerIn(process);
    if (isBellName(name) && !(owner !== undefined && isProvenGone(owner))) found.push(name);
  }
  return found;
}

/** Undefined if the owner is missing or makes no sense: then only silence ends its entry. */
function ownerIn(process: unknown): ProcessIdentity | undefined {
  return ifPossible(() => (typeof process === 'string' ? identityFrom(JSON.parse(process)) : undefined));
}
