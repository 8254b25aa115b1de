/** Keeps a process present in the store: starts its session, follows the anchors of all processes and its own mailbox. */
import { runAtOnce } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  always,
  type KeyValue,
  type Lease,
  Operations,
  pairIn,
  prefixed,
  readRange,
  type Revision,
} from '../../store/index.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import type { WriterIdentity } from '../write/commit.ts';
import { follow } from './follow.ts';
import { Mailbox } from './mailbox.ts';
import { anchorKey, ANCHORS, encode, type Letter, mailboxKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { isOfOneMachine, type Sent, sentNow, Session, type SessionEnd } from './session.ts';
import { isTrouble } from '../write/recovery.ts';
import { persistently, send } from '../write/write-once.ts';

/** A resource that this process has used. */
interface Visited {
  readonly keys: { readonly record: string };
  hasHoldOf(lease: string, record: KeyValue): boolean;
}

/** A process that used more resources than this does not look at each of them when it leaves: its lease ends instead. */
const MOST_LOOKED_AT = 64;

/** Most holds end soon; of those that last, the id is looked up. */
const MOST_GIVEN = 10_000;

export class Presence {
  readonly #host: Runtime;
  readonly #nobody: WriterIdentity;
  #sender: WriterIdentity;
  #session: Session | undefined;
  #mailbox: Mailbox | undefined;
  #starting: Promise<Session> | undefined;
  #following = false;
  /** The ids of earlier sessions of this process. */
  readonly #former = new Set<string>();
  /** The store's ids of other leases that this process made, by name. */
  readonly #leaseIds = new Map<string, string>();
  /** The same for leases that have become the holds of others: a release here then need not look up the id. */
  readonly #givenIds = new Map<string, string>();

  constructor(host: Runtime) {
    this.#host = host;
    this.#nobody = { id: '', anchor: '', epoch: 0, leaseId: () => '', isGone: (lease) => host.anchors.isGone(lease) };
    this.#sender = this.#nobody;
    // The store that is there now may have let others in already: the next renewal would notice it too late.
    host.store.over?.addEventListener('abort', () => this.#session?.end('disconnected'), { once: true });
  }

  get sender(): WriterIdentity {
    return this.#sender;
  }

  /** The session, if it is valid at this moment. */
  get session(): Session | undefined {
    return this.#session?.isValid() === true ? this.#session : undefined;
  }

  get lookedAt(): number {
    return this.#session?.lookedAt ?? this.#host.clock.monotonic();
  }

  /** Whether a lease is the session of this process, or was. */
  isOwn(lease: string): boolean {
    return this.#session?.id === lease || this.#former.has(lease);
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
        const session = this.session ?? (await (this.#starting ??= this.#start(until)));
        if (session.isValid()) return session;
      } catch (error) {
        // An earlier caller began this start, and its time was up first.
        if (!isTrouble(error) || this.#host.clock.monotonic() >= until) throw error;
      }
    }
  }

  /**
   * Makes a lease with an anchor, apart from the session's: for holds that outlive the session, and for limits. `tie`: the
   * process with which it ends. The anchor names it too, so that a process that moves the hold to another lease ties the new lease to it.
   */
  async anchorLease(
    name: string,
    ttlMs: number,
    tie?: ProcessIdentity,
  ): Promise<{ name: string; leaseId: string; ttlMs: number }> {
    const { store, stopped, anchors, options } = this.#host;
    const key = anchorKey(name);
    const value = encode(tie === undefined ? options.about : { ...(options.about as object), endsWith: tie });
    const granted: Lease[] = [];
    const made = await persistently(this.#host, this.#host.giveUpAt(), async () => {
      const fresh = await store.grantLease(ttlMs, stopped);
      granted.push(fresh);
      if (tie !== undefined) await store.endLeaseWith?.(fresh.id, [tie], stopped);
      // An earlier attempt without an answer may have landed, or land later: only one of them makes the anchor.
      const result = await send(this.#host, {
        compare: [{ key, target: 'version', is: '=', than: 0 }],
        success: [{ do: 'put', key, value, lease: fresh.id }],
        failure: [{ do: 'read', key }],
      }).catch((error: unknown) => {
        // The lease ended before the answer that granted it arrived: another attempt would come too late as well.
        if (Failure.is(error, 'not-found')) return error;
        throw error;
      });
      if (result instanceof Failure) return result;
      const found = pairIn(result.results, key);
      const lease = result.succeeded ? fresh : granted.find(({ id }) => id === found?.lease);
      if (lease === undefined)
        throw new Failure('inconsistent', `${key} is on a lease that this process did not ask for`);
      return { lease, revision: result.revision };
    });
    if (made instanceof Failure) throw made;
    const { lease, revision } = made;
    for (const { id } of granted) if (id !== lease.id) void store.revokeLease(id).catch(() => undefined);
    this.#host.saw(revision);
    anchors.add(name, revision);
    this.#leaseIds.set(name, lease.id);
    return { name, leaseId: lease.id, ttlMs: lease.ttlMs };
  }

  /** `visited`: every resource of which this session may have a hold. */
  async leave(visited: readonly Visited[]): Promise<void> {
    const session = this.#session;
    if (session === undefined) return;
    session.end('closed');
    const { store } = this.#host;
    // If this fails, the end of the lease deletes the same keys.
    if (isOfOneMachine(store)) await this.#leaveQuietly(session, visited).catch(() => undefined);
    await store.revokeLease(session.leaseId).catch(() => undefined);
  }

  /**
   * Deletes the anchor and the mailbox, if nothing else in the store rests on this session. The end of the lease would delete
   * them too, but it wakes every process that waits for anything, because a holder may have died. Reads from the store
   * whether something is left: this process may not know, since a release may have got no answer. Nothing can be added after
   * the read: every write of this session compares that its anchor is there, and the records are compared here.
   */
  async #leaveQuietly({ id, leaseId }: Session, visited: readonly Visited[]): Promise<void> {
    if (visited.length > MOST_LOOKED_AT) return;
    const { store } = this.#host;
    const own = [anchorKey(id), mailboxKey(id)];
    const lease = await store.leaseState(leaseId);
    if (lease === null || lease.keys.some((key) => !own.includes(key))) return;
    const reads = visited.map(({ keys }) => ({ do: 'read', key: keys.record }) as const);
    const { results } = await store.transaction(always(reads));
    const records = visited.map(({ keys }) => pairIn(results, keys.record));
    const isHeld = records.some((record, place) => record !== undefined && visited[place]?.hasHoldOf(id, record));
    if (isHeld) return;
    const compare = visited.map(({ keys }, place) => {
      return { key: keys.record, target: 'mod', is: '=', than: records[place]?.modRevision ?? 0 } as const;
    });
    await store.transaction({ compare, success: own.map((key) => ({ do: 'delete', key })), failure: [] });
  }

  forgetLease(name: string): void {
    const id = this.#leaseIds.get(name);
    if (id === undefined) return;
    this.#leaseIds.delete(name);
    this.#givenIds.set(name, id);
    if (this.#givenIds.size <= MOST_GIVEN) return;
    for (const oldest of this.#givenIds.keys()) {
      this.#givenIds.delete(oldest);
      return;
    }
  }

  /** The store's id of a lease that this process made and forgot, if it still knows it; asked once, to end the lease. */
  takeGivenId(name: string): string | undefined {
    const id = this.#givenIds.get(name);
    this.#givenIds.delete(name);
    return id;
  }

  sawLease(lease: string, version: number | undefined, revision: Revision): void {
    const session = this.#session;
    if (session !== undefined && lease === session.id) {
      if (version === undefined) session.end('expired');
      // A fence that got no answer has landed.
      else session.epoch = Math.max(session.epoch, version);
      return;
    }
    this.#host.anchors.saw(lease, version !== undefined, revision);
  }

  /** Once this calls back, no transaction that was sent before can take effect. */
  fence(done: () => void, failed: (error: unknown) => void): void {
    const session = this.#session;
    if (session === undefined) return done();
    const key = anchorKey(session.id);
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
        if (result.succeeded) this.sawLease(session.id, pairIn(result.results, key)?.version, result.revision);
        else session.end('expired');
        done();
      },
      failed,
    );
  }

  // Start

  async #start(until: number): Promise<Session> {
    try {
      return await persistently(this.#host, until, async () => {
        const session = await this.#tryStart();
        if (!session.isValid()) throw tooShort(session.ttlMs);
        return session;
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
        { changes: (changes) => anchors.changes(changes), resync: () => this.#listAnchors() },
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
      const { process } = options;
      if (process !== undefined) await store.endLeaseWith?.(lease.id, [process], stopped);
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
    const { store, clock, options, anchors, stopped, witness } = this.#host;
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
    const session = new Session(store, clock, id, lease, sent, ended, this.#host.measures);
    this.#session = session;
    this.#mailbox = mailbox;
    this.#sender = {
      id,
      anchor: anchorKey(id),
      get epoch() {
        return session.epoch;
      },
      leaseId: (name) => (name === id ? lease.id : (this.#leaseIds.get(name) ?? '')),
      isGone: this.#nobody.isGone,
    };
    return session;
  }

  #ended(session: Session, why: SessionEnd): void {
    this.#former.add(session.id);
    if (this.#session === session) {
      this.#session = undefined;
      this.#sender = this.#nobody;
    }
    this.#host.sessionEnded(session, why);
  }

  async #listAnchors(): Promise<Revision> {
    const { store, stopped, anchors } = this.#host;
    const { pairs, revision } = await readRange(store, prefixed(ANCHORS), stopped);
    runAtOnce(anchors.list(pairs, revision));
    return revision;
  }
}

function tooShort(ttlMs: number): Failure {
  const message = `the session's lease of ${ttlMs} ms ends before the store answers; open with a longer sessionTtlMs`;
  return new Failure('unavailable', message);
}
