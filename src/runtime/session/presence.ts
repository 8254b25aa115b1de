/**
 * Keeps a process present in the store: starts its session (`Presence`), reads the letters to it (`Mailbox`), and follows which
 * leases are alive (`Anchors`).
 */
import { runAtOnce, type Steps } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  Operations,
  pairIn,
  prefixed,
  readRange,
  type Revision,
  type Changes,
  type KeyValue,
} from '../../store/index.ts';
import type { WriterIdentity } from '../write/commit.ts';
import { follow } from '../../store/follow.ts';
import { anchorKey, ANCHORS, encode, type Letter, mailboxKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { type Sent, sentNow, Session, type SessionEnd, leave, type Visited } from './session.ts';
import { isTrouble } from '../write/recovery.ts';
import { persistently } from '../write/write-once.ts';
import { readLetter } from '../write/letters.ts';

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

  /** `visited`: every resource of which this session may have a hold. */
  async leave(visited: readonly Visited[]): Promise<void> {
    const session = this.#session;
    session?.end('closed');
    if (session !== undefined) await leave(this.#host.store, session, visited);
  }

  /** A read at `revision` found this lease alive, or not there. */
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
      leaseId: (name) => (name === id ? lease.id : (this.#host.leases.idOf(name) ?? '')),
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

/** The key into which other processes write letters to a session. Reads every letter once, in order. */
class Mailbox {
  readonly #host: Runtime;
  readonly #key: string;
  readonly #over: AbortSignal;
  #readUpTo: Revision = 0;
  /** The history was compacted before all letters up to here were read. */
  #missedUpTo: Revision = 0;
  readonly #awaited: (() => void)[] = [];

  /** `over`: the session has ended. */
  constructor(host: Runtime, session: string, over: AbortSignal) {
    this.#host = host;
    this.#key = mailboxKey(session);
    this.#over = over;
    over.addEventListener('abort', () => this.#progress(), { once: true });
  }

  async follow(): Promise<void> {
    const host = this.#host;
    await follow(
      host.store,
      host.clock,
      { key: this.#key },
      {
        changes: ({ changes, revision }) => {
          for (const change of changes) {
            if (change.kind === 'delete') continue;
            host.saw(change.pair.modRevision);
            readLetter(change.pair, host);
          }
          this.#readUpTo = revision;
          this.#progress();
        },
        resync: async () => {
          this.#readUpTo = this.#missedUpTo = await host.missedLetters();
          this.#progress();
          return this.#readUpTo;
        },
      },
      this.#over,
    );
  }

  /**
   * Waits until this process has read every letter that was sent to it until now. False if some of those that were sent after
   * `since` cannot be read any more, or if the session ends first.
   */
  async hasReadAllSince(since: Revision): Promise<boolean> {
    const { store, stopped } = this.#host;
    const { pairs } = await readRange(store, { key: this.#key }, stopped);
    const last = pairs[0]?.modRevision;
    const alive = this.#host.clock.keepAlive?.();
    while (last !== undefined && this.#readUpTo < last && !this.#over.aborted) {
      await new Promise<void>((resolve) => this.#awaited.push(resolve));
    }
    alive?.cancel();
    return last !== undefined && this.#missedUpTo <= since && this.#readUpTo >= last;
  }

  #progress(): void {
    for (const resolve of this.#awaited.splice(0)) resolve();
  }
}

/** How many ended leases are remembered; an older one counts as unknown, and is looked up again. */
const MOST_GONE = 10_000;

/**
 * Follows the anchors in the store, to know which leases are alive. This may lag behind the store, so no decision rests on it
 * alone: a write that reclaims a hold compares that the anchor is gone. An unknown lease counts as alive until it is looked up.
 */
export class Anchors {
  /** The living leases, each with the revision at which it was made. */
  readonly #alive = new Map<string, Revision>();
  readonly #gone = new Set<string>();
  /** All changes up to this revision are included. */
  #asOf: Revision = 0;
  readonly #onGone: () => void;

  /** Calls `onGone` after leases have ended, when `isGone` says so. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  isGone(lease: string): boolean {
    return this.#gone.has(lease);
  }

  isKnown(lease: string): boolean {
    return this.#alive.has(lease) || this.#gone.has(lease);
  }

  /** How many leases are known to be alive. */
  get size(): number {
    return this.#alive.size;
  }

  /** Adds a lease that this process made. */
  add(lease: string, revision: Revision): void {
    this.#alive.set(lease, revision);
  }

  /**
   * Takes a list of all anchors, read at `revision`, or from then on page by page: a lease that had ended before its page was
   * read does not come back. Changes that were followed later win. There may be an anchor for each hold, so it yields after
   * each.
   */
  *list(pairs: readonly KeyValue[], revision: Revision): Steps<void> {
    const listed = new Map<string, Revision>();
    for (const pair of pairs) {
      yield;
      listed.set(leaseOf(pair.key), pair.createRevision);
    }
    let gone = false;
    for (const [lease, since] of this.#alive) {
      yield;
      // A lease that was made after the list was read is not in it.
      if (!listed.has(lease) && since <= revision) gone = this.#ended(lease) || gone;
    }
    for (const [lease, since] of listed) {
      yield;
      if (revision >= this.#asOf || !this.#gone.has(lease)) this.#came(lease, since);
    }
    this.#asOf = Math.max(this.#asOf, revision);
    if (gone) this.#onGone();
  }

  changes({ revision, changes }: Changes): void {
    if (revision <= this.#asOf) return;
    this.#asOf = revision;
    let gone = false;
    for (const change of changes) {
      if (change.kind === 'put') this.#came(leaseOf(change.pair.key), change.pair.createRevision);
      else gone = this.#ended(leaseOf(change.key)) || gone;
    }
    if (gone) this.#onGone();
  }

  /** Takes one anchor, read at `revision`. For a known lease, changes that were followed later than that win. */
  saw(lease: string, wasAlive: boolean, revision: Revision): void {
    if (this.isKnown(lease) && this.#asOf > revision) return;
    if (wasAlive) this.#came(lease, this.#alive.get(lease) ?? revision);
    else if (this.#ended(lease)) this.#onGone();
  }

  /** Of all anchors, only the maintainer's comes back after it has gone. */
  #came(lease: string, since: Revision): void {
    this.#alive.set(lease, since);
    this.#gone.delete(lease);
  }

  /** Whether the lease was known to be alive until now. */
  #ended(lease: string): boolean {
    const wasAlive = this.#alive.delete(lease);
    this.#gone.add(lease);
    if (this.#gone.size > MOST_GONE) this.#gone.delete(this.#gone.values().next().value as string);
    return wasAlive;
  }
}

function leaseOf(key: string): string {
  return key.slice(ANCHORS.length);
}
