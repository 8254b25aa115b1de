/**
 * Makes a process present in the store: starts its session, fences its earlier writes, and leaves. `session.ts` has what the
 * process knows of the session from then on.
 */
import { runAtOnce } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  always,
  type KeyValue,
  Operations,
  pairIn,
  prefixed,
  readRange,
  type Revision,
  type Store,
} from '../../store/index.ts';
import { follow } from '../../store/follow.ts';
import { anchorKey, ANCHORS, encode, type Letter, mailboxKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { isOfOneMachine, type Sent, sentNow, Session, type SessionEnd } from './session.ts';
import { isTrouble } from '../write/recovery.ts';
import { persistently } from '../write/write-once.ts';
import { Mailbox } from '../write/letters.ts';

export class Presence {
  readonly #host: Runtime;
  #mailbox: Mailbox | undefined;
  #starting: Promise<Session> | undefined;
  #following = false;
  /** The ids of earlier sessions of this process. */
  readonly #former = new Set<string>();

  constructor(host: Runtime) {
    this.#host = host;
    // The store that is there now may have let others in already: the next renewal would notice it too late.
    host.store.over?.addEventListener('abort', () => host.current?.end('disconnected'), { once: true });
  }

  /** Whether a lease is the session of this process, or was. */
  isOwn(lease: string): boolean {
    return this.#host.current?.id === lease || this.#former.has(lease);
  }

  /**
   * Waits until this process has read every letter that was sent to it until now, at most until `until`. False if it could not
   * read all of those that were sent after `since`.
   */
  async hasReadAllSince(since: Revision, until: number): Promise<boolean> {
    const mailbox = this.#mailbox;
    if (mailbox === undefined) return false;
    return persistently(this.#host, until, () => mailbox.hasReadAllSince(since)).catch(() => false);
  }

  async ready(): Promise<Session> {
    const until = this.#host.giveUpAt();
    for (;;) {
      this.#host.refuseIfClosed();
      try {
        const session = this.#host.session ?? (await (this.#starting ??= this.#start(until)));
        if (session.isValid()) return session;
      } catch (error) {
        // An earlier caller began this start, and its time was up first.
        if (!isTrouble(error) || this.#host.clock.monotonic() >= until) throw error;
      }
    }
  }

  /** `visited`: every resource of which this session may have a hold. */
  async leave(visited: readonly Visited[]): Promise<void> {
    const { current, store } = this.#host;
    current?.end('closed');
    if (current !== undefined) await giveUpLease(store, current, visited);
  }

  /** Once this calls back, no transaction that was sent before can take effect. */
  fence(done: () => void, failed: (error: unknown) => void): void {
    const { current } = this.#host;
    if (current === undefined) return done();
    const key = current.anchor;
    this.#host.commit(
      {
        compare: [{ key, target: 'version', is: '>', than: 0 }],
        success: [
          { do: 'put', key, value: encode(this.#host.options.about), lease: 'keep' },
          { do: 'read', key },
        ],
        failure: [],
      },
      (result) => {
        if (result.succeeded) this.#host.sawLease(current.id, pairIn(result.results, key)?.version, result.revision);
        else current.end('expired');
        done();
      },
      failed,
    );
  }

  async #start(until: number): Promise<Session> {
    try {
      return await persistently(this.#host, until, async () => {
        const session = await this.#tryStart();
        if (session.isValid()) return session;
        const took = `the session's lease of ${session.ttlMs} ms ends before the store answers`;
        throw new Failure('unavailable', `${took}; open with a longer sessionTtlMs`);
      });
    } finally {
      this.#starting = undefined;
    }
  }

  async #tryStart(): Promise<Session> {
    const { store, clock, options, anchors, stopped } = this.#host;
    if (!this.#following) {
      await follow(
        store,
        clock,
        prefixed(ANCHORS),
        anchors.followed(() => this.#listAnchors()),
        stopped,
        // Only the end of a lease can free a hold; a process that starts, or leaves without holds, is not urgent.
        { urgent: 'lease-ends' },
      );
      this.#following = true;
    }
    const id = options.newId();
    const sent = sentNow(clock);
    const lease = await store.grantLease(options.sessionTtlMs, stopped);
    const over = new AbortController();
    try {
      if (options.process !== undefined) await store.endLeaseWith?.(lease.id, [options.process], stopped);
      return await this.#register(id, lease, sent, over);
    } catch (error) {
      over.abort();
      void store.revokeLease(lease.id).catch(() => undefined);
      throw error;
    }
  }

  /** Follows the mailbox before it makes it, so that no letter is missed. */
  async #register(
    id: string,
    lease: { readonly id: string; readonly ttlMs: number },
    sent: Sent,
    over: AbortController,
  ): Promise<Session> {
    const { store, options, anchors, stopped, witness } = this.#host;
    const mailbox = new Mailbox(this.#host, id, AbortSignal.any([stopped, over.signal]));
    await mailbox.follow();
    const empty: Letter = { answers: [], losses: [] };
    const registering = new Operations().add(
      { do: 'put', key: anchorKey(id), value: encode(options.about), lease: lease.id },
      { do: 'put', key: mailboxKey(id), value: encode(empty), lease: lease.id },
    );
    const listed = registering.read(prefixed(ANCHORS));
    // Also if it was off: it may have been switched on while this process had no session.
    if (!witness.isOn) witness.ask(registering);
    const result = await store.transaction(
      {
        compare: [{ key: anchorKey(id), target: 'version', is: '=', than: 0 }],
        success: registering.list,
        failure: [],
      },
      stopped,
    );
    if (!result.succeeded) throw new Failure('unavailable', `the id ${id} is taken by another process`);
    this.#host.refuseIfClosed();
    if (!witness.isOn) witness.told(result);
    this.#host.saw(result.revision);
    runAtOnce(anchors.list(listed.in(result.results).pairs, result.revision));
    const ended = (one: Session, why: SessionEnd): void => {
      over.abort();
      this.#ended(one, why);
    };
    const session = new Session(this.#host, id, lease, sent, ended);
    this.#mailbox = mailbox;
    this.#host.sessionBegan(session);
    return session;
  }

  #ended(session: Session, why: SessionEnd): void {
    this.#former.add(session.id);
    this.#host.sessionEnded(session, why);
  }

  async #listAnchors(): Promise<Revision> {
    const { store, stopped, anchors } = this.#host;
    const { pairs, revision } = await readRange(store, prefixed(ANCHORS), stopped);
    runAtOnce(anchors.list(pairs, revision));
    return revision;
  }
}

/** A resource that this process has used. */
interface Visited {
  readonly keys: { readonly record: string };
  readonly cached: { hasHoldOf(lease: string, record: KeyValue): boolean };
}

/** A process that used more resources than this does not look at each of them when it leaves: its lease ends instead. */
const MOST_LOOKED_AT = 64;

/** Gives up the lease of a session that has ended. */
async function giveUpLease(store: Store, session: Session, visited: readonly Visited[]): Promise<void> {
  // If this fails, the end of the lease deletes the same keys.
  if (isOfOneMachine(store)) await leaveQuietly(store, session, visited).catch(() => undefined);
  await store.revokeLease(session.leaseId).catch(() => undefined);
}

/**
 * Deletes the anchor and the mailbox, if nothing else in the store rests on this session. The end of the lease would delete
 * them too, but it wakes every process that waits for anything, because a holder may have died. Reads from the store
 * whether something is left: this process may not know, since a release may have got no answer. Nothing can be added after
 * the read: every write of this session compares that its anchor is there, and the records are compared here.
 */
async function leaveQuietly(store: Store, { id, leaseId }: Session, visited: readonly Visited[]): Promise<void> {
  if (visited.length > MOST_LOOKED_AT) return;
  const own = [anchorKey(id), mailboxKey(id)];
  const lease = await store.leaseState(leaseId);
  if (lease === null || lease.keys.some((key) => !own.includes(key))) return;
  const reads = visited.map(({ keys }) => ({ do: 'read', key: keys.record }) as const);
  const { results } = await store.transaction(always(reads));
  const records = visited.map(({ keys }) => pairIn(results, keys.record));
  const isHeld = records.some((record, place) => record !== undefined && visited[place]?.cached.hasHoldOf(id, record));
  if (isHeld) return;
  const compare = visited.map(({ keys }, place) => {
    return { key: keys.record, target: 'mod', is: '=', than: records[place]?.modRevision ?? 0 } as const;
  });
  await store.transaction({ compare, success: own.map((key) => ({ do: 'delete', key })), failure: [] });
}
