/** One watch on the gateway: an answer that goes on, a line for each message. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Failure } from '../../../src/failure.ts';
import type { Change, Changes, Revision, Watch } from 'signalbox/store';
import { changeFromWire, type WireEvent, type WireHeader } from './gateway-wire.ts';

interface Message {
  readonly error?: { readonly message?: string };
  readonly result?: {
    readonly header?: WireHeader;
    readonly created?: boolean;
    readonly canceled?: boolean;
    readonly compact_revision?: string;
    readonly events?: readonly WireEvent[];
  };
}

type Step = IteratorResult<Changes, undefined>;
interface Waiting {
  resolve(step: Step): void;
  reject(failure: Failure): void;
}

const DONE: Step = { done: true, value: undefined };

export class GatewayWatch implements Watch, AsyncIterator<Changes, undefined> {
  since: Revision;
  readonly #request: ClientRequest;
  readonly #delivered: Changes[] = [];
  readonly #waiting: Waiting[] = [];
  #end: 'open' | 'ended' | Failure = 'open';
  #opened: ((error?: Failure) => void) | undefined;

  private constructor(since: Revision, request: ClientRequest) {
    this.since = since;
    this.#request = request;
  }

  /** Resolves once etcd has confirmed it. `'now'` is where etcd says that it begins. */
  static async open(request: ClientRequest, since: Revision | 'now', signal?: AbortSignal): Promise<GatewayWatch> {
    const watch = new GatewayWatch(since === 'now' ? 0 : since, request);
    const confirmed = new Promise<void>((resolve, reject) => {
      watch.#opened = (error) => (error === undefined ? resolve() : reject(error));
    });
    signal?.addEventListener('abort', watch.end);
    // Not once: a request that is destroyed says so in more than one place.
    const onBroken = (error: Error): void => watch.#close(broken(error.message));
    request.on('error', onBroken);
    request.once('response', (answer: IncomingMessage) => {
      answer.on('error', onBroken);
      answer.once('close', () => watch.#close(broken('the connection was closed')));
      let unfinished = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        const lines = (unfinished + chunk).split('\n');
        unfinished = lines.pop() ?? '';
        for (const line of lines) watch.#hear(JSON.parse(line) as Message, since);
      });
    });
    await confirmed;
    return watch;
  }

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  next(): Promise<Step> {
    const value = this.#end === 'ended' ? undefined : this.#delivered.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#end === 'open') return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    const failure = this.#end;
    this.#end = 'ended';
    return failure === 'ended' ? Promise.resolve(DONE) : Promise.reject(failure);
  }

  return(): Promise<Step> {
    this.end();
    return Promise.resolve(DONE);
  }

  readonly end = (): void => {
    this.#close('ended');
    this.#end = 'ended';
  };

  #hear({ error, result }: Message, since: Revision | 'now'): void {
    if (error !== undefined) return this.#close(broken(error.message ?? 'etcd gave no reason'));
    if (result?.created === true) {
      if (since === 'now') this.since = Number(result.header?.revision);
      this.#opened?.();
    }
    this.#deliver(result?.events ?? []);
    if (result?.canceled !== true) return;
    const compacted = Number(result.compact_revision ?? 0);
    const forgotten = new Failure('compacted', `history up to ${compacted} is forgotten: list again`);
    this.#close(compacted > 0 ? forgotten : broken('etcd cancelled the watch'));
  }

  /** etcd never parts the changes of one revision, but one message may carry several revisions. */
  #deliver(events: readonly WireEvent[]): void {
    const byRevision = new Map<Revision, Change[]>();
    for (const event of events) {
      const { revision, change } = changeFromWire(event);
      // What was asked for begins one revision early; see the contract of `watch`.
      if (revision <= this.since) continue;
      const changes = byRevision.get(revision);
      if (changes === undefined) byRevision.set(revision, [change]);
      else changes.push(change);
    }
    for (const [revision, changes] of byRevision) {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#delivered.push({ revision, changes });
      else waiting.resolve({ done: false, value: { revision, changes } });
    }
  }

  #close(why: 'ended' | Failure): void {
    if (this.#end !== 'open') return;
    this.#end = why;
    this.#request.destroy();
    if (why === 'ended') this.#opened?.();
    else this.#opened?.(why);
    for (const waiting of this.#waiting.splice(0)) {
      if (why === 'ended') waiting.resolve(DONE);
      else waiting.reject(why);
    }
  }
}

function broken(why: string): Failure {
  return new Failure('unavailable', `the watch broke: ${why}`);
}
