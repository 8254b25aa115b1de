/** One watch: the changes that arrived and were not read yet. */
import { Failure } from '../../failure.ts';
import type { Changes, Revision } from '../contract.ts';
import { WatchIterator } from '../watch-iterator.ts';

interface Unread {
  readonly changes: Changes;
  readonly bytes: number;
}

/** Limits the memory of a watch: if more than this lies unread, the watch fails. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024;
/** What one change takes in memory at least, however short its message was. */
const LEAST_BYTES = 100;

export class EtcdWatch extends WatchIterator {
  since: Revision;
  readonly #onOver: (watch: EtcdWatch) => void;
  #unread: Unread[] = [];
  #read = 0;
  #unreadBytes = 0;
  #delivered: Revision = 0;
  #isFailed = false;
  /** Cancels the watch on the server. */
  cancel: () => void = () => undefined;

  constructor(since: Revision, signal: AbortSignal, onOver: (watch: EtcdWatch) => void) {
    super(signal);
    this.since = since;
    this.#onOver = onOver;
  }

  protected take(): Changes | undefined {
    const unread = this.#unread[this.#read];
    if (unread === undefined) return undefined;
    this.#passOver(unread);
    return unread.changes;
  }

  /** `bytes` is the size of the message, as an estimate of the memory that its changes take. */
  deliver(all: readonly Changes[], bytes: number): void {
    if (!this.isOpen) return;
    for (const changes of all) {
      // The request begins one revision early; see the contract of `watch`. And etcd before 3.4.25 or 3.5.8 may repeat
      // changes after a watch has fallen behind.
      if (changes.revision <= this.since || changes.revision <= this.#delivered) continue;
      this.#delivered = changes.revision;
      if (this.give(changes)) continue;
      const cost = Math.max(bytes / all.length, LEAST_BYTES * changes.changes.length);
      this.#unread.push({ changes, bytes: cost });
      this.#unreadBytes += cost;
    }
    if (this.#unreadBytes <= MOST_UNREAD_BYTES) return;
    this.cancel();
    this.fail(new Failure('unavailable', 'the watch was given up: its reader is too far behind'));
  }

  override fail(why: Failure): void {
    // Done now, not when the reader has read the rest: the store keeps no watch that the server has ended.
    if (this.isOpen) {
      this.#isFailed = true;
      this.#onOver(this);
    }
    super.fail(why);
  }

  protected ended(): void {
    this.#unread = [];
    if (this.#isFailed) return;
    this.cancel();
    this.#onOver(this);
  }

  #passOver({ bytes }: Unread): void {
    this.#unreadBytes -= bytes;
    this.#read += 1;
    // Read changes are dropped in batches: dropping each would move all the others each time.
    if (this.#read < this.#unread.length && this.#read < 1024) return;
    this.#unread = this.#unread.slice(this.#read);
    this.#read = 0;
  }
}
