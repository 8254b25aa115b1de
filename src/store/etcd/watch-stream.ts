/**
 * All watches of this process over one stream. Each is known by a number that we choose, and confirmed by etcd before it
 * counts. When the stream breaks, those that were open are told, and whoever follows them opens them again.
 */
import { Failure } from '../../failure.ts';
import type { KeyRange, Revision } from '../contract.ts';
import type { Keyspace } from './keyspace.ts';
import type { Link } from './link.ts';
import { CallFailure, type OutgoingStream } from './transport.ts';
import type { EtcdWatch } from './watch.ts';
import { cancelWatch, createWatch, requestProgress, watchMessage, type WatchMessage } from './wire/watch.ts';

interface Asked {
  /** With the revision at which it was confirmed. */
  readonly created: (revision: Revision) => void;
  readonly failed: (failure: CallFailure) => void;
}

interface Watcher {
  readonly watch: EtcdWatch;
  /** Until it is confirmed. */
  asked: Asked | undefined;
}

export class WatchStream {
  readonly #link: Link;
  readonly #stream: OutgoingStream;
  readonly #keyspace: Keyspace;
  readonly #watchers = new Map<number, Watcher>();
  #lastId = 0;
  /** Since when nothing was heard of it, and whether it was asked since. */
  #quietMs = 0;
  isOver = false;

  constructor(link: Link, keyspace: Keyspace) {
    this.#link = link;
    this.#keyspace = keyspace;
    this.#stream = link.connection.stream(
      { path: '/etcdserverpb.Watch/Watch', headers: link.headers },
      {
        message: (message) => {
          link.heard();
          this.#quietMs = 0;
          this.#hear(watchMessage(message, this.#keyspace), message.length);
        },
        ended: (failure) => this.#over(failure),
      },
    );
  }

  /** From `start` on; 0 is from now on. */
  create(watch: EtcdWatch, range: KeyRange, start: Revision, asked: Asked): void {
    const id = ++this.#lastId;
    this.#watchers.set(id, { watch, asked });
    watch.cancel = () => this.#cancel(id);
    this.#stream.send(createWatch(id, range, start, this.#keyspace));
  }

  /** One that stays silent when it is asked for a sign of life is as good as broken. Answers whether it is. */
  isSilent(passedMs: number, limitMs: number): boolean {
    if (this.#watchers.size === 0) return false;
    const before = this.#quietMs;
    this.#quietMs += passedMs;
    if (before >= 2 * limitMs) return true;
    if (before < limitMs && this.#quietMs >= limitMs) this.#stream.send(requestProgress());
    return false;
  }

  end(why: CallFailure): void {
    if (this.isOver) return;
    this.#stream.cancel();
    this.#over(why);
  }

  #cancel(id: number): void {
    if (!this.#watchers.delete(id) || this.isOver) return;
    this.#stream.send(cancelWatch(id));
  }

  #hear(message: WatchMessage, bytes: number): void {
    const { id } = message;
    const watcher = this.#watchers.get(id) ?? (message.created ? this.#oldestUnconfirmed() : undefined);
    // A sign of life, or the last words of a watch that is no longer wanted.
    if (watcher === undefined) return;
    if (message.created && !message.canceled) {
      watcher.asked?.created(message.revision);
      watcher.asked = undefined;
    }
    if (message.changes.length > 0) watcher.watch.deliver(message.changes, bytes);
    if (message.canceled) this.#canceled(watcher, message);
  }

  /** etcd names none where it refuses one for its number. */
  #oldestUnconfirmed(): Watcher | undefined {
    for (const watcher of this.#watchers.values()) if (watcher.asked !== undefined) return watcher;
    return undefined;
  }

  #canceled(watcher: Watcher, { compacted, reason }: WatchMessage): void {
    for (const [id, each] of this.#watchers) if (each === watcher) this.#watchers.delete(id);
    const { watch, asked } = watcher;
    if (asked !== undefined) asked.failed(this.#refusal(reason));
    else if (compacted > 0) watch.fail(new Failure('compacted', `history up to ${compacted} is forgotten: list again`));
    else watch.fail(broken(reason === '' ? 'etcd cancelled it' : reason));
  }

  #refusal(reason: string): CallFailure {
    if (!/permission denied/.test(reason)) return new CallFailure(9, reason, false);
    if (this.#link.mayBeForgotten) return new CallFailure(16, 'etcdserver: invalid auth token', false);
    return new CallFailure(7, reason, false);
  }

  #over(failure: CallFailure): void {
    if (this.isOver) return;
    this.isOver = true;
    const watchers = [...this.#watchers.values()];
    this.#watchers.clear();
    for (const { watch, asked } of watchers) {
      if (asked === undefined) watch.fail(broken(failure.message, failure));
      else asked.failed(failure);
    }
  }
}

function broken(why: string, cause?: CallFailure): Failure {
  return new Failure('unavailable', `the watch broke: ${why}`, { cause });
}
