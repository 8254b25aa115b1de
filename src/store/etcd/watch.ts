/** One watch: what has come and was not yet read, and those who wait for more. */
import { Failure } from '../../failure.ts';
import type { Changes, Revision, Watch } from '../contract.ts';

type Step = IteratorResult<Changes, undefined>;

interface Reader {
  resolve(step: Step): void;
  reject(failure: Failure): void;
}

interface Unread {
  readonly changes: Changes;
  readonly bytes: number;
}

const DONE: Step = { done: true, value: undefined };

/** A reader that lets more than this lie is told that its watch broke, instead of filling the memory. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024;
/** What one change takes here, however short it was on the way. */
const LEAST_BYTES = 100;

export class EtcdWatch implements Watch, AsyncIterator<Changes, undefined> {
  since: Revision;
  readonly #signal: AbortSignal;
  readonly #onOver: (watch: EtcdWatch) => void;
  #unread: Unread[] = [];
  #read = 0;
  #unreadBytes = 0;
  #delivered: Revision = 0;
  readonly #readers: Reader[] = [];
  #end: 'open' | 'ended' | Failure = 'open';
  /** Tells the server that it need not go on. */
  cancel: () => void = () => undefined;

  constructor(since: Revision, signal: AbortSignal, onOver: (watch: EtcdWatch) => void) {
    this.since = since;
    this.#signal = signal;
    this.#onOver = onOver;
    signal.addEventListener('abort', this.end);
  }

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  next(): Promise<Step> {
    // One that has failed does not listen any more.
    if (this.#signal.aborted) this.end();
    const unread = this.#unread[this.#read];
    if (unread !== undefined) {
      this.#passOver(unread);
      return Promise.resolve({ done: false, value: unread.changes });
    }
    const end = this.#end;
    if (end === 'open') return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    if (end === 'ended') return Promise.resolve(DONE);
    // Told once; whoever asks again finds it over.
    this.#end = 'ended';
    return Promise.reject(end);
  }

  return(): Promise<Step> {
    this.end();
    return Promise.resolve(DONE);
  }

  /** `bytes`: what they took on the way here, as a measure of what they take now. */
  deliver(all: readonly Changes[], bytes: number): void {
    if (this.#end !== 'open') return;
    for (const changes of all) {
      // What was asked for begins one revision early; see the contract of `watch`. And a server before 3.4.25 and 3.5.8
      // may say something twice, after it has fallen behind.
      if (changes.revision <= this.since || changes.revision <= this.#delivered) continue;
      this.#delivered = changes.revision;
      const reader = this.#readers.shift();
      if (reader === undefined) {
        const cost = Math.max(bytes / all.length, LEAST_BYTES * changes.changes.length);
        this.#unread.push({ changes, bytes: cost });
        this.#unreadBytes += cost;
      } else {
        reader.resolve({ done: false, value: changes });
      }
    }
    if (this.#unreadBytes <= MOST_UNREAD_BYTES) return;
    this.cancel();
    this.fail(new Failure('unavailable', 'the watch was given up: its reader is too far behind'));
  }

  /** Over for a reason. What came before it can still be read. */
  fail(why: Failure): void {
    if (this.#end !== 'open') return;
    this.#end = why;
    this.#signal.removeEventListener('abort', this.end);
    this.#onOver(this);
    const [first, ...others] = this.#readers.splice(0);
    if (first === undefined) return;
    this.#end = 'ended';
    first.reject(why);
    for (const reader of others) reader.resolve(DONE);
  }

  readonly end = (): void => {
    this.#unread = [];
    this.#signal.removeEventListener('abort', this.end);
    const wasOpen = this.#end === 'open';
    this.#end = 'ended';
    if (!wasOpen) return;
    this.cancel();
    this.#onOver(this);
    for (const reader of this.#readers.splice(0)) reader.resolve(DONE);
  };

  #passOver({ bytes }: Unread): void {
    this.#unreadBytes -= bytes;
    this.#read += 1;
    // What was read is let go, but not one by one: that would move all the others each time.
    if (this.#read < this.#unread.length && this.#read < 1024) return;
    this.#unread = this.#unread.slice(this.#read);
    this.#read = 0;
  }
}
