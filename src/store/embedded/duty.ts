/**
 * Who goes on rounds for all. One process of a pid namespace listens on a socket in the store's directory, and the others
 * connect to it: when it ends, in whatever way, the system closes their connections, and they know at once. So those who
 * wait need not look. Nothing is ever said on these connections.
 *
 *     alone ── connected, and its rounds are fresh ──▶ relieved
 *       ▲                                                 │
 *       └── the connection closed, or no rounds were made ┘
 *
 * Whoever is alone goes on rounds. Two may be for a while; the mark that each leaves keeps them from going twice.
 */
import { closeSync, constants, lchownSync, openSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { Clock, Timer } from '../../clock.ts';
import { type Access, MODES } from './share.ts';

/** The most that fits into the address of a socket, less a few. */
const LONGEST_PATH = 100;
/** Not all of those whose connection was closed come back in the same moment. */
const SEEK_MS = 200;
const SEEK_AGAIN_MS = 2000;

export class Duty {
  readonly #directory: string;
  readonly #access: Access;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #onAlone: () => void;
  #server: Server | undefined;
  readonly #clients = new Set<Socket>();
  #socket: Socket | undefined;
  #isRelieved = false;
  #timer: Timer | undefined;
  /** Of the file of the socket that we listen on. */
  #inode: number | undefined;
  #folder: number | undefined;
  #isOver = false;

  /** `onAlone`: nobody else goes on rounds, as far as we know. */
  constructor(directory: string, access: Access, name: string, clock: Clock, onAlone: () => void) {
    this.#directory = directory;
    this.#access = access;
    this.#name = name;
    this.#clock = clock;
    this.#onAlone = onAlone;
  }

  get isRelieved(): boolean {
    return this.#isRelieved;
  }

  seek(): void {
    if (this.#isOver || this.#server !== undefined || this.#socket !== undefined) return;
    this.#timer?.cancel();
    const socket = connect(this.#path());
    this.#socket = socket;
    socket.unref();
    socket.on('connect', () => (this.#isRelieved = true));
    // `close` follows.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') this.#serve(error.code === 'ECONNREFUSED');
    });
    socket.on('close', () => {
      this.#socket = undefined;
      const wasRelieved = this.#isRelieved;
      this.#isRelieved = false;
      if (this.#isOver || this.#server !== undefined) return;
      this.#seekIn(wasRelieved ? SEEK_MS : SEEK_AGAIN_MS);
      if (wasRelieved) this.#onAlone();
    });
  }

  /** The one that we rely on does not go on its rounds: it may be stopped. */
  takeOver(): void {
    const socket = this.#socket;
    this.#isRelieved = false;
    this.#socket = undefined;
    socket?.removeAllListeners('close');
    socket?.destroy();
    this.#serve(true);
    this.#onAlone();
  }

  /** To be called now and then: of two who listen, one cannot be reached any more, and leaves its clients to the other. */
  check(): void {
    if (this.#inode === undefined || this.#inode === inodeOf(this.#path())) return;
    this.#leave();
    this.seek();
  }

  /** Goes on no rounds for others, until it next seeks. */
  rest(): void {
    this.#timer?.cancel();
    this.#isRelieved = false;
    this.#socket?.removeAllListeners('close');
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#leave();
  }

  end(): void {
    this.#isOver = true;
    this.rest();
    if (this.#folder !== undefined) closeSync(this.#folder);
    this.#folder = undefined;
  }

  #serve(isLeftBehind: boolean): void {
    if (this.#isOver || this.#server !== undefined) return;
    const server = createServer((client) => {
      this.#clients.add(client);
      client.unref();
      client.on('error', () => undefined);
      client.on('close', () => this.#clients.delete(client));
      client.resume();
    });
    this.#server = server;
    server.unref();
    server.on('listening', () => {
      if (this.#server === server) this.#inode = inodeOf(this.#path());
    });
    server.on('error', () => {
      // Somebody else was faster, or it cannot be done here.
      this.#server = undefined;
      this.#seekIn(SEEK_AGAIN_MS);
    });
    try {
      if (isLeftBehind) rmSync(this.#path(), { force: true });
      this.#listen(server);
    } catch {
      this.#server = undefined;
    }
  }

  /** The socket is made with the mode of the other files: set afterwards, by its name, it could be that of another file. */
  #listen(server: Server): void {
    const { share, heir } = this.#access;
    // Threads share their umask, so only the main one may change it. The directory of a private store is closed anyway.
    if (!isMainThread) {
      if (share === 'none') server.listen(this.#path());
      return;
    }
    const before = process.umask(0o777 & ~MODES[share].file);
    try {
      server.listen(this.#path());
    } finally {
      process.umask(before);
    }
    if (heir !== undefined) lchownSync(this.#path(), heir.uid, heir.gid);
  }

  /** Closing it removes the file of that name, which may by now be another's: its clients would then come here no more. */
  #leave(): void {
    this.#server?.close();
    this.#server = undefined;
    this.#inode = undefined;
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
  }

  #seekIn(longestMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.timer(longestMs * Math.random(), () => this.seek());
  }

  #path(): string {
    const path = join(this.#directory, this.#name);
    if (path.length <= LONGEST_PATH) return path;
    this.#folder ??= openSync(this.#directory, constants.O_RDONLY | constants.O_DIRECTORY);
    return `/proc/self/fd/${this.#folder}/${this.#name}`;
  }
}

function inodeOf(path: string): number | undefined {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}
