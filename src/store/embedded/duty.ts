/**
 * Chooses the process on duty, which makes the rounds for all. It listens on a socket in the store's directory, and the
 * other processes of its pid namespace connect to it: when it ends, in whatever way, the system closes their
 * connections, and they know at once. So waiting processes need not look.
 *
 *     alone ── connected, and its rounds are fresh ──▶ relieved
 *       ▲                                                 │
 *       └── the connection closed, or no rounds were made ┘
 *
 * A process that is alone makes the rounds. Two may be alone for a while; the mark file that each of them sets keeps
 * them from making the same round twice.
 *
 * Each process sends its pid and start time on its connection, and as long as the connection is open, it lives. So the
 * process on duty looks all of them up only now and then; when a connection closes, it looks at once for processes
 * without one. The process on duty sends its own pid too, so that its deputies know which process to look up when it
 * ends.
 *
 * Of all connected processes, only a few deputies, and those that cannot hear their bells, read from their connections
 * and so notice when it closes. If hundreds woke in that moment, they would keep each other waiting, and among them the
 * process that could now take the free hold. The rest notice when the new process on duty rings all bells, a little
 * later.
 *
 * A process that cannot hear its bell, because the system's file watches are used up, also sends the bell's name, and
 * gets a byte for every ring, the first when the process on duty has begun to listen for it.
 */
import { closeSync, constants, lchownSync, linkSync, openSync, renameSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { sep } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { Clock, Timer } from '../../clock.ts';
import { type ProcessIdentity, randomHex, thisProcess } from '../../host/index.ts';

import { BELL_NAME_BYTES, isBellName, removeQuietly } from './bells.ts';
import { type Access, MODES } from './share.ts';

/** The longest path that fits into the address of a socket, less a few bytes. */
const LONGEST_PATH = 100;
/**
 * Spreads out the processes whose connection was closed. However many they are, one of them connects again within some
 * twenty milliseconds and takes the duty; if hundreds did in the same moment, none of them would get to renew its
 * lease.
 */
const SEEK_MS = 200;
const BETWEEN_SEEKS_MS = 20;
const LATEST_SEEK_MS = 2000;
const SEEK_AGAIN_MS = 2000;

const RING = '!';
/** The name of a bell or of a process, and the end of its line. */
const LONGEST_LINE = 64;
/** A pid and a start time, each as the kernel writes it. */
const PROCESS = /^[1-9]\d{0,6} \d{1,20}$/;

export interface DutyEvents {
  /** No other process makes the rounds, as far as we know. */
  onAlone(): void;
  /** Another process makes the rounds from now on. */
  onRelieved(): void;
  /** Our own bell was rung, as the process on duty says. */
  onRung(): void;
  /** Other processes are about to rely on us. */
  onDuty(): void;
  /** No other process relies on us any more. */
  offDuty(): void;
  /** How many processes share the duty, as far as is known. */
  sharers(): number;
  /** We are one of the few that take over when the process on duty ends. */
  isDeputy(): boolean;
  /** A process that relied on us has hung up: it may have ended. */
  onLeft(): void;
  /** A process that relies on us cannot hear this bell. Answers how to stop listening for it. */
  hearFor(bell: string, tell: () => void): () => void;
}

export class Duty {
  readonly #directory: string;
  readonly #access: Access;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #events: DutyEvents;
  #server: Server | undefined;
  /** The processes that rely on us, by connection; undefined until a process has said which one it is. */
  readonly #clients = new Map<Socket, string | undefined>();
  readonly #present = new Set<string>();
  readonly #rings = new Uint8Array(LONGEST_LINE);
  #socket: Socket | undefined;
  #isRelieved = false;
  /** We have asked the process on duty to listen for our bell. */
  #isDeaf = false;
  /** The process on duty does listen for our bell. */
  #isHeardFor = false;
  /** The process on duty, if it has told us which one it is; kept after that process has ended. */
  #onDuty: string | undefined;
  /** Another process took the duty before we could. */
  #wasSlower = false;
  #timer: Timer | undefined;
  /** Identifies the file of the socket that we listen on, or are connected to. */
  #socketFile: string | undefined;
  #folder: number | undefined;
  #isOver = false;

  constructor(directory: string, access: Access, name: string, clock: Clock, events: DutyEvents) {
    this.#directory = directory;
    this.#access = access;
    this.#name = name;
    this.#clock = clock;
    this.#events = events;
  }

  get isRelieved(): boolean {
    return this.#isRelieved;
  }

  get isHeardFor(): boolean {
    return this.#isHeardFor;
  }

  /** Others rely on us. */
  get isOn(): boolean {
    return this.#server !== undefined;
  }

  /** Whether the given process relies on us, and so has not ended. */
  readonly isPresent = (process: ProcessIdentity): boolean => this.#present.has(nameOf(process));

  /** Whether the given process was on duty until it hung up, as far as we know. */
  readonly isPredecessor = (process: ProcessIdentity): boolean => !this.#isRelieved && this.#onDuty === nameOf(process);

  get hasPredecessor(): boolean {
    return !this.#isRelieved && this.#onDuty !== undefined;
  }

  /** Whether we notice by ourselves that the process on duty has ended. */
  get #isHeeding(): boolean {
    return this.#isDeaf || this.#events.isDeputy();
  }

  /** Has the process on duty listen for a bell of ours that we cannot hear. */
  haveHeard(bell: string): void {
    if (!this.#isRelieved) return;
    this.#isDeaf = true;
    this.#socket?.write(`${bell}\n`);
    this.heed();
  }

  /** Reads from the connection only if there is a reason to; otherwise, nothing that happens on it wakes this process. */
  heed(): void {
    if (!this.#isRelieved) return;
    if (this.#isHeeding) this.#socket?.resume();
    else this.#socket?.pause();
  }

  seek(): void {
    if (this.#isOver || this.#server !== undefined || this.#socket !== undefined) return;
    this.#timer?.cancel();
    this.#wasSlower = false;
    const tried = identityOf(this.#path());
    const socket = connect({
      path: this.#path(),
      onread: { buffer: this.#rings, callback: (length) => this.#heard(length) },
    });
    this.#socket = socket;
    socket.unref();
    socket.on('connect', () => {
      this.#isRelieved = true;
      this.#onDuty = undefined;
      // If another process has taken the place of the one on duty meanwhile, the next check finds out.
      this.#socketFile = tried ?? identityOf(this.#path());
      const process = thisProcess();
      if (process !== undefined) socket.write(`${nameOf(process)}\n`);
      this.#events.onRelieved();
      this.heed();
    });
    // `close` follows.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') this.#serve(tried);
    });
    socket.on('close', () => {
      this.#socket = undefined;
      const wasRelieved = this.#isRelieved;
      const isLate = this.#isDeaf && !this.#events.isDeputy();
      const seekMs = this.#seekMs(wasRelieved && !isLate);
      this.#isRelieved = this.#isDeaf = this.#isHeardFor = false;
      if (wasRelieved) this.#socketFile = undefined;
      if (this.#isOver || this.#server !== undefined) return;
      this.#seekIn(wasRelieved || this.#wasSlower ? seekMs : SEEK_AGAIN_MS, isLate ? SEEK_MS : 0);
      if (wasRelieved) this.#events.onAlone();
    });
  }

  /** Takes the duty from a process that makes no rounds: it may be stopped. */
  takeOver(): void {
    const stopped = this.#socketFile;
    this.#hangUp();
    this.#onDuty = undefined;
    this.#serve(stopped);
    this.#events.onAlone();
  }

  /**
   * To be called now and then. If two processes listen, one of them can no longer be reached by its path: it leaves its
   * clients to the other. If that process is stopped, it cannot do even this, and the clients leave it.
   */
  check(): void {
    if (this.#socketFile === undefined || this.#socketFile === identityOf(this.#path())) return;
    this.#hangUp();
    this.#leave();
    this.seek();
  }

  /** Makes no rounds for others, until it next seeks. */
  rest(): void {
    this.#timer?.cancel();
    this.#hangUp();
    this.#leave();
  }

  end(): void {
    this.#isOver = true;
    this.rest();
    if (this.#folder !== undefined) closeSync(this.#folder);
    this.#folder = undefined;
  }

  /** The first line says which process is on duty. All rings say the same, so several read at once count as one. */
  #heard(length: number): boolean {
    const text = Buffer.from(this.#rings.subarray(0, length)).toString('latin1');
    this.#onDuty ??= text.split('\n').find((line) => PROCESS.test(line));
    if (!text.includes(RING)) return true;
    this.#isHeardFor = true;
    this.#events.onRung();
    return true;
  }

  #hangUp(): void {
    this.#isRelieved = this.#isDeaf = this.#isHeardFor = false;
    if (this.#socket === undefined) return;
    this.#socket.removeAllListeners('close');
    this.#socket.destroy();
    this.#socket = this.#socketFile = undefined;
  }

  #welcome(client: Socket): void {
    this.#clients.set(client, undefined);
    client.unref();
    const own = thisProcess();
    if (own !== undefined) client.write(`${nameOf(own)}\n`);
    let [line, stop] = ['', (): void => undefined];
    client.on('error', () => undefined);
    client.on('data', (bytes) => {
      const lines = `${line}${bytes.toString('latin1')}`.split('\n');
      line = (lines.pop() ?? '').slice(0, LONGEST_LINE);
      const process = lines.findLast((said) => PROCESS.test(said));
      // Only once: a client that sends more and more names would fill our memory.
      if (process !== undefined && this.#clients.get(client) === undefined) this.#isHere(client, process);
      const bell = lines.findLast(isBellName);
      if (bell === undefined) return;
      stop();
      // If the client has not read the last ring yet, another one would tell it nothing new.
      stop = this.#events.hearFor(bell, () => {
        if (client.writable && client.writableLength === 0) client.write(RING);
      });
    });
    client.on('close', () => {
      stop();
      const process = this.#clients.get(client);
      if (!this.#clients.delete(client) || process === undefined) return;
      this.#present.delete(process);
      this.#events.onLeft();
    });
  }

  #isHere(client: Socket, process: string): void {
    this.#clients.set(client, process);
    this.#present.add(process);
  }

  /** `leftBehind`: the socket now at our path. Nobody listens on it, or only a process that makes no rounds. */
  #serve(leftBehind: string | undefined): void {
    if (this.#isOver || this.#server !== undefined) return;
    const server = createServer((client) => this.#welcome(client));
    server.unref();
    server.on('error', () => this.#giveUp(server, false));
    this.#server = server;
    // Before anyone can connect.
    this.#events.onDuty();
    try {
      this.#socketFile = this.#listen(server, leftBehind);
    } catch (error) {
      this.#giveUp(server, (error as NodeJS.ErrnoException).code === 'EEXIST');
    }
  }

  /** `isOthers`: another process was faster. Otherwise, no socket can be made here. */
  #giveUp(server: Server, isOthers: boolean): void {
    if (this.#server !== server) return;
    server.close();
    this.#server = this.#socketFile = undefined;
    this.#events.offDuty();
    this.#wasSlower = isOthers;
    this.#seekIn(isOthers ? this.#seekMs(false) : SEEK_AGAIN_MS);
  }

  /**
   * Makes the socket under a name of its own: closing a socket removes the name that it was made under, and by then
   * another process's socket may have that name. The umask gives it the mode of the other files: a `chmod` afterwards,
   * by name, could hit another file.
   */
  #listen(server: Server, leftBehind: string | undefined): string | undefined {
    const { share, heir } = this.#access;
    // Threads share their umask, so only the main one may change it. The directory of a private store is closed anyway.
    if (!isMainThread && share !== 'none') return undefined;
    const made = this.#path(randomHex(BELL_NAME_BYTES));
    const before = isMainThread ? process.umask(0o777 & ~MODES[share].file) : undefined;
    try {
      server.listen(made);
    } finally {
      if (before !== undefined) process.umask(before);
    }
    if (heir !== undefined) lchownSync(made, heir.uid, heir.gid);
    const file = identityOf(made);
    // Hundreds of processes may try at once; the slower ones must leave the socket of the first in its place.
    if (leftBehind !== undefined && leftBehind === identityOf(this.#path())) renameSync(made, this.#path());
    else linkSync(made, this.#path());
    removeQuietly(made);
    // Where the system does not tell when a file was made, it gives the time of the last change, which was just now.
    const placed = identityOf(this.#path());
    return placed?.split(' ')[0] === file?.split(' ')[0] ? placed : file;
  }

  #leave(): void {
    if (this.#server === undefined) return;
    if (this.#socketFile !== undefined && this.#socketFile === identityOf(this.#path())) removeQuietly(this.#path());
    this.#server.close();
    this.#server = this.#socketFile = undefined;
    this.#events.offDuty();
    for (const client of this.#clients.keys()) client.destroy();
    this.#clients.clear();
    this.#present.clear();
  }

  /** `isOfFew`: only the deputies have noticed, and only they seek. */
  #seekMs(isOfFew: boolean): number {
    if (isOfFew) return SEEK_MS;
    return Math.min(Math.max(SEEK_MS, this.#events.sharers() * BETWEEN_SEEKS_MS), LATEST_SEEK_MS);
  }

  /** `leastMs`: for processes that leave it to the deputies to be first. */
  #seekIn(longestMs: number, leastMs = 0): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.timer(leastMs + longestMs * Math.random(), () => this.seek());
  }

  #path(name = this.#name): string {
    // Every process looks at it when it is woken, and `join` reads a path letter by letter.
    const path = `${this.#directory}${sep}${name}`;
    if (path.length <= LONGEST_PATH) return path;
    try {
      this.#folder ??= openSync(this.#directory, constants.O_RDONLY | constants.O_DIRECTORY);
      return `/proc/self/fd/${this.#folder}/${name}`;
    } catch {
      // The directory is gone, or may not be read for now; the next attempt may work.
      return path;
    }
  }
}

function nameOf({ pid, start }: ProcessIdentity): string {
  return `${pid} ${start}`;
}

/**
 * Identifies the file at this path. The system reuses an inode number as soon as it is free, so the number alone is not
 * enough.
 */
function identityOf(path: string): string | undefined {
  try {
    const { ino, birthtimeNs } = statSync(path, { bigint: true });
    return `${ino} ${birthtimeNs}`;
  } catch {
    return undefined;
  }
}
