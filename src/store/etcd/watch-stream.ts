/**
 * Carries all watches of this process over one stream. Each watch has an id that we choose, and counts once etcd has
 * confirmed it. When the stream breaks, all open watches fail, and their readers open them again.
 */
import { Failure } from '../../failure.ts';
import {
  FAILED_PRECONDITION,
  INTERNAL,
  PERMISSION_DENIED,
  RESOURCE_EXHAUSTED,
  UNAUTHENTICATED,
} from '../../grpc/status.ts';
import { CallFailure, type OutgoingStream } from '../../grpc/transport.ts';
import type { KeyRange, Revision } from '../contract.ts';
import type { Keyspace } from './keyspace.ts';
import type { Link } from './link.ts';
import type { EtcdWatch } from './watch.ts';
import {
  cancelWatch,
  createWatch,
  requestProgress,
  type MutableChanges,
  watchMessage,
  type WatchMessage,
} from './wire/watch.ts';

interface Asked {
  /** Called with the revision at which etcd confirmed the watch. */
  readonly created: (revision: Revision) => void;
  readonly failed: (failure: CallFailure) => void;
}

interface Watcher {
  readonly watch: EtcdWatch;
  readonly start: Revision;
  /** Undefined once etcd has confirmed the watch. */
  asked: Asked | undefined;
  /** The last revision of a fragment: the next message may bring the rest of it. */
  parted: Parted | undefined;
}

interface Parted {
  readonly last: MutableChanges;
  readonly bytes: number;
}

const MIB = 1024 * 1024;
/** One revision is one request, or the end of one lease: a server that sends more fragments than this is no etcd. */
const LARGEST_REVISION = 64 * MIB;

export class WatchStream {
  readonly #link: Link;
  readonly #stream: OutgoingStream;
  readonly #keyspace: Keyspace;
  readonly #watchers = new Map<number, Watcher>();
  /** Watches that etcd has not confirmed yet, wanted or not, in the order in which it will. */
  readonly #unanswered = new Set<number>();
  #lastId = 0;
  /** For how long nothing was heard on this stream. */
  #quietMs = 0;
  #newest: Revision = 0;
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
          if (link.continuity.admits(message, 0, link)) this.#read(message);
        },
        ended: (failure) => this.#over(failure),
      },
    );
  }

  /** Starts a watch at `start`; 0 is from now on. */
  create(watch: EtcdWatch, range: KeyRange, start: Revision, asked: Asked): void {
    const id = ++this.#lastId;
    this.#watchers.set(id, { watch, start, asked, parted: undefined });
    watch.cancel = () => this.#cancel(id);
    this.#unanswered.add(id);
    this.#stream.send(createWatch(id, range, start, this.#keyspace));
  }

  /**
   * Whether the stream is as good as broken: it stays silent when asked for a sign of life. It is asked again and
   * again: since 3.4.25 and 3.5.8, etcd ignores the question while one of its watches catches up.
   */
  isSilent(passedMs: number, limitMs: number): boolean {
    if (this.#watchers.size === 0) return false;
    if (this.#quietMs >= 2 * limitMs && !this.#mayStaySilent()) return true;
    this.#quietMs += passedMs;
    if (this.#quietMs >= limitMs) this.#stream.send(requestProgress());
    return false;
  }

  /**
   * Newer versions of etcd give no sign of life while a watch begins at a revision that is still to come: then only the
   * connection's own pings tell.
   */
  #mayStaySilent(): boolean {
    for (const { start } of this.#watchers.values()) if (start > this.#newest) return true;
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

  #read(bytes: Uint8Array): void {
    let message: WatchMessage;
    try {
      message = watchMessage(bytes, this.#keyspace);
    } catch (cause) {
      return this.end(new CallFailure(INTERNAL, "the server's message about watches cannot be read", false, { cause }));
    }
    this.#hear(message, bytes.length);
  }

  #hear(message: WatchMessage, bytes: number): void {
    this.#newest = Math.max(this.#newest, message.revision);
    const id = message.created ? this.#answered(message.id) : message.id;
    const watcher = id === undefined ? undefined : this.#watchers.get(id);
    // A sign of life, or the last message for a watch that is no longer wanted.
    if (id === undefined || watcher === undefined) return;
    if (message.created && !message.canceled) {
      watcher.asked?.created(message.revision);
      watcher.asked = undefined;
    }
    if (message.changes.length > 0 || watcher.parted !== undefined) this.#deliver(watcher, message, bytes);
    if (message.canceled) this.#canceled(id, watcher, message);
  }

  /** Delivers whole revisions: puts the changes of a revision together that fragments split. */
  #deliver(watcher: Watcher, { changes, isFragment }: WatchMessage, bytes: number): void {
    const { parted } = watcher;
    const all = parted === undefined ? changes : joined(parted.last, changes);
    const size = bytes + (parted?.bytes ?? 0);
    if (!isFragment) {
      watcher.parted = undefined;
      return watcher.watch.deliver(all, size);
    }
    const last = all.at(-1);
    if (last === undefined) return;
    if (all.length > 1) watcher.watch.deliver(all.slice(0, -1), bytes);
    watcher.parted = { last, bytes: all.length > 1 ? bytes : size };
    if (watcher.parted.bytes <= LARGEST_REVISION) return;
    const told = `the server began a revision of more than ${LARGEST_REVISION / MIB} MiB, which is more than signalbox reads`;
    this.end(new CallFailure(RESOURCE_EXHAUSTED, told, false));
  }

  /**
   * Tells which watch was answered. etcd names none when it refuses one, but answers in the order in which they were
   * asked for.
   */
  #answered(named: number): number | undefined {
    const id = this.#unanswered.has(named) ? named : this.#unanswered.values().next().value;
    if (id !== undefined) this.#unanswered.delete(id);
    return id;
  }

  #canceled(id: number, { watch, asked }: Watcher, { compacted, reason }: WatchMessage): void {
    this.#watchers.delete(id);
    if (asked !== undefined) asked.failed(this.#refusal(reason));
    else if (compacted > 0) watch.fail(new Failure('compacted', `history up to ${compacted} is compacted: list again`));
    else watch.fail(broken(reason === '' ? 'etcd cancelled it' : reason));
  }

  #refusal(reason: string): CallFailure {
    if (!/permission denied/.test(reason)) return new CallFailure(FAILED_PRECONDITION, reason, false);
    if (this.#link.mayBeForgotten) return new CallFailure(UNAUTHENTICATED, 'etcdserver: invalid auth token', false);
    return new CallFailure(PERMISSION_DENIED, reason, false);
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

/** Adds in place: copying would take longer and longer when a revision comes in many pieces. */
function joined(last: MutableChanges, more: readonly MutableChanges[]): readonly MutableChanges[] {
  const [first, ...others] = more;
  if (first?.revision !== last.revision) return [last, ...more];
  for (const change of first.changes) last.changes.push(change);
  return [last, ...others];
}

function broken(why: string, cause?: CallFailure): Failure {
  return new Failure('unavailable', `the watch broke: ${why}`, { cause });
}
