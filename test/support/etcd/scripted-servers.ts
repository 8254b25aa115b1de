/** Servers that answer as a test says, without any network: what a server may do that a real one cannot be made to. */
import {
  type Address,
  type Call,
  CallFailure,
  type Connect,
  type Connection,
  type ConnectOptions,
  type OutgoingStream,
  type StreamListener,
} from '../../../src/grpc/transport.ts';

/** An answer, a failure, or nothing at all. */
export type Reply = Uint8Array | CallFailure | 'silence';

export class ScriptedServer {
  readonly host: string;
  /** Every call there was, by its method. */
  readonly asked: string[] = [];
  readonly tokens: (string | undefined)[] = [];
  reply: (method: string, message?: Uint8Array) => Reply = () => new Uint8Array();
  /** What a message on a stream is answered with. */
  echo: (method: string, message: Uint8Array) => readonly Uint8Array[] = () => [];
  refuses: CallFailure | undefined;
  connections: ScriptedConnection[] = [];

  constructor(host: string) {
    this.host = host;
  }

  /** Every connection to it breaks; perhaps before anything that is not answered was looked at. */
  break(neverSent = false): void {
    for (const connection of this.connections.splice(0)) connection.break(neverSent);
  }
}

export function connectTo(...servers: readonly ScriptedServer[]): Connect {
  return async (address: Address, options: ConnectOptions) => {
    const server = servers.find(({ host }) => host === address.host);
    if (server === undefined) throw new CallFailure(14, 'ECONNREFUSED', true);
    if (server.refuses !== undefined) throw server.refuses;
    const connection = new ScriptedConnection(server, options);
    server.connections.push(connection);
    return connection;
  };
}

class ScriptedConnection implements Connection {
  isOpen = true;
  readonly #server: ScriptedServer;
  readonly #options: ConnectOptions;
  readonly #open = new Set<(failure: CallFailure) => void>();

  constructor(server: ScriptedServer, options: ConnectOptions) {
    this.#server = server;
    this.#options = options;
  }

  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void {
    const method = this.#note(call);
    const reply = this.#server.reply(method, call.message);
    this.#open.add(failed);
    queueMicrotask(() => {
      if (reply === 'silence' || !this.#open.delete(failed)) return;
      if (reply instanceof CallFailure) failed(reply);
      else done(reply);
    });
    return () => this.#open.delete(failed);
  }

  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream {
    const method = this.#note(call);
    const ended = (failure: CallFailure): void => listener.ended(failure);
    this.#open.add(ended);
    return {
      send: (message) =>
        queueMicrotask(() => {
          if (!this.#open.has(ended)) return;
          const reply = this.#server.reply(method);
          if (reply instanceof CallFailure) {
            this.#open.delete(ended);
            ended(reply);
          } else if (reply !== 'silence') {
            for (const each of this.#server.echo(method, message)) listener.message(each);
          }
        }),
      cancel: () => this.#open.delete(ended),
    };
  }

  close(): void {
    this.isOpen = false;
    this.#open.clear();
  }

  break(neverSent: boolean): void {
    this.isOpen = false;
    const broken = new CallFailure(14, 'the connection broke', neverSent);
    this.#options.onClose(broken);
    for (const failed of [...this.#open]) failed(broken);
    this.#open.clear();
  }

  #note({ path, headers }: Omit<Call, 'message'>): string {
    const method = path.slice(path.lastIndexOf('/') + 1);
    this.#server.asked.push(method);
    this.#server.tokens.push(headers?.['token']);
    return method;
  }
}
