/**
 * A way to a server that can be disturbed, as networks are: what is sent waits, in one direction or in both, or every
 * connection breaks. The server is not disturbed, nor is whoever has another way to it.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export type Direction = 'requests' | 'answers';

export class Proxy {
  readonly port: number;
  readonly #server: Server;
  readonly #target: number;
  readonly #pipes = new Set<Pipe>();
  readonly #stalled = new Set<Direction>();
  #isCut = false;
  #delayMs = 0;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    const address = server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    server.on('connection', (client) => this.#accept(client));
  }

  static async start(target: number): Promise<Proxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Proxy(server, target);
  }

  /** Connections are accepted and stay open, and nothing passes. What is sent meanwhile is kept. */
  stall(...directions: readonly Direction[]): void {
    for (const direction of directions.length === 0 ? (['requests', 'answers'] as const) : directions) {
      this.#stalled.add(direction);
    }
  }

  /** Everything passes again, first what was kept. */
  goOn(): void {
    this.#stalled.clear();
    this.#isCut = false;
    for (const pipe of this.#pipes) pipe.flush();
  }

  /** The connections there are stay open for ever and say nothing more; new ones are as they should be. */
  freeze(): void {
    for (const pipe of this.#pipes) pipe.freeze();
  }

  /** Every connection breaks, what was kept is lost, and new ones break as soon as they are made. */
  cut(): void {
    this.#isCut = true;
    this.drop();
  }

  /** Every connection breaks; new ones may be made. */
  drop(): void {
    for (const pipe of [...this.#pipes]) pipe.break();
  }

  /** Each piece takes this much longer, in each direction. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  get connections(): number {
    return this.#pipes.size / 2;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.drop();
    await closed;
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.on('error', () => undefined).destroy();
      return;
    }
    const server = connect({ port: this.#target, host: '127.0.0.1', noDelay: true });
    client.setNoDelay(true);
    this.#pass(client, server, 'requests');
    this.#pass(server, client, 'answers');
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    const pipe = new Pipe(from, to, {
      isStalled: () => this.#stalled.has(direction),
      delayMs: () => this.#delayMs,
    });
    this.#pipes.add(pipe);
    from.once('close', () => {
      this.#pipes.delete(pipe);
      to.destroy();
    });
  }
}

interface Weather {
  readonly isStalled: () => boolean;
  readonly delayMs: () => number;
}

class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #weather: Weather;
  #kept: Buffer[] = [];
  #isFrozen = false;

  constructor(from: Socket, to: Socket, weather: Weather) {
    this.#from = from;
    this.#to = to;
    this.#weather = weather;
    // Whoever resets the connection closes it too; nothing else is to be done about it.
    from.on('error', () => undefined);
    from.on('data', (data: Buffer) => {
      const delayMs = weather.delayMs();
      if (delayMs === 0) this.#arrived(data);
      else setTimeout(() => this.#arrived(data), delayMs);
    });
  }

  flush(): void {
    const kept = this.#kept;
    this.#kept = [];
    for (const data of kept) this.#to.write(data);
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  break(): void {
    this.#kept = [];
    this.#from.destroy();
    this.#to.destroy();
  }

  #arrived(data: Buffer): void {
    if (this.#isFrozen) return;
    if (this.#weather.isStalled()) this.#kept.push(data);
    else if (!this.#to.destroyed) this.#to.write(data);
  }
}
