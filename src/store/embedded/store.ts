/** The embedded engine as a store: one handle of one process on the file that all processes share. */
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Clock, systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { type ProcessIdentity, thisHost } from '../../host/index.ts';
import { checkTransaction, checkTtl, checkWatch } from '../check.ts';
import type {
  Health,
  KeyRange,
  Lease,
  LeaseId,
  LeaseState,
  Revision,
  Store,
  Transaction,
  TransactionResult,
  Watch,
  WatchHint,
} from '../contract.ts';
import { readsOnly } from '../reads-only.ts';
import type { Connection } from './connection.ts';
import { Duty } from './duty.ts';
import { Engine, type News } from './engine.ts';
import type { LeaseRow } from './leases.ts';
import { Listening } from './listening.ts';
import { Mark } from './mark.ts';
import { Sentry } from './sentry.ts';
import type { Access } from './share.ts';
import { asFailure } from './sqlite-failure.ts';
import { Turns } from './turns.ts';
import { EmbeddedWatch, type Look } from './watches.ts';

export interface EmbeddedSettings {
  readonly directory: string;
  readonly file: string;
  readonly mark: string;
  readonly access: Access;
  readonly clock: Clock;
  readonly historyLimit: number;
  readonly historyBytes: number;
  readonly busyMs: number;
  readonly isGone?: ((process: ProcessIdentity) => boolean) | undefined;
}

export class EmbeddedStore implements Store {
  readonly isOfSeveralUsers: boolean;
  readonly #connection: Connection;
  readonly #engine: Engine;
  readonly #turns: Turns;
  readonly #listening: Listening;
  readonly #duty: Duty | undefined;
  readonly #sentry: Sentry;
  readonly #file: string;
  readonly #inode: string;
  readonly #watches = new Set<EmbeddedWatch>();
  /** The lease that was renewed last: most often the only one, the session's. Its id and its ttl never change. */
  #renewed: LeaseRow | undefined;
  #checkSoon: NodeJS.Immediate | undefined;
  #isClosing = false;
  #isRemoved = false;
  readonly #over = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(
    connection: Connection,
    { directory, file, mark, access, clock, historyLimit, historyBytes, busyMs, isGone }: EmbeddedSettings,
  ) {
    this.#connection = connection;
    this.#file = file;
    // Root in another user's store makes two users, although the store is shared with nobody.
    this.isOfSeveralUsers = access.share === 'group' || access.heir !== undefined;
    this.#engine = new Engine(
      connection,
      clock,
      { revisions: historyLimit, bytes: historyBytes },
      (made, listeners) => this.#listening.announce(made, listeners),
      isGone,
    );
    this.#turns = new Turns(clock, file, busyMs);
    this.#listening = new Listening(this.#engine, clock, directory, access, this.#rung, () => this.#haveHeard());
    this.#inode = inodeOf(file);
    // Other processes do not share the made-up time of a test.
    const canShare = clock === systemClock && thisHost() !== undefined;
    this.#duty = canShare
      ? new Duty(join(directory, 'bells'), access, basename(mark).replace('rounds', 'duty'), clock, {
          onAlone: () => this.#sentry.goAtOnce(),
          onRelieved: () => {
            this.#haveHeard();
            // The process on duty rings again only for changes after it took the duty: earlier ones have to be read now.
            this.#look();
          },
          onRung: this.#look,
          isDeputy: () => this.#sentry.isDeputy,
          onDuty: () => {
            this.#listening.retryHearing();
            this.#turns.now(() => this.#listening.relay.begin()).catch(() => undefined);
            this.#sentry.onDuty();
          },
          offDuty: () => this.#listening.relay.end(),
          onLeft: () => this.#sentry.hurry(),
          sharers: () => this.#sentry.waiting,
          hearFor: (bell, tell) => this.#listening.relay.hearFor(bell, tell),
        })
      : undefined;
    this.#sentry = new Sentry(this.#engine, this.#listening, this.#turns, clock, {
      mark: new Mark(mark, access),
      duty: this.#duty,
      isRemoved: () => inodeOf(file) !== this.#inode,
      onRemoved: () => this.#removed(),
    });
  }

  get over(): AbortSignal {
    return this.#over.signal;
  }

  async transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    this.#refuseIfClosed();
    checkTransaction(transaction);
    if (readsOnly(transaction)) return this.#turns.now(() => this.#engine.consult(transaction), signal);
    return this.#turns.take(() => this.#engine.transact(transaction), signal);
  }

  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal, hint?: WatchHint): Promise<Watch> {
    checkWatch(range, since);
    return this.#do(() => {
      const { entry, revision, compacted } = this.#listening.enter(range, hint);
      const start = since === 'now' ? revision : since;
      const watch = new EmbeddedWatch(range, start, this.#newsTo, signal, this.#ended);
      this.#watches.add(watch);
      this.#listening.add(watch, entry);
      this.#sentry.begin();
      if (start < compacted) {
        watch.fail(new Failure('compacted', `all history up to revision ${compacted} is forgotten: list again`));
      }
      if (signal.aborted) watch.end();
      return watch;
    }, signal);
  }

  async grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    checkTtl(ttlMs);
    return this.#do(() => ({ id: this.#engine.grantLease(ttlMs), ttlMs }), signal);
  }

  async keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null> {
    // A session that cannot be sure of its file is not renewed: if that lasts, it ends in time, before another process
    // gets the lock.
    if (inodeOf(this.#file) !== this.#inode) this.#removed();
    return this.#do(() => {
      this.#renewed = this.#engine.write(() => {
        const { leases } = this.#engine;
        const lease = leases.get(Number(id));
        if (lease === undefined) return undefined;
        leases.renew(lease);
        this.#listening.stayOnListAlong();
        return lease;
      });
      // This process is awake, and looking now costs less than being woken later.
      this.#sentry.pass();
      return this.#renewed === undefined ? null : { id, ttlMs: this.#renewed.ttl_ms };
    }, signal);
  }

  keepLeaseAliveNow(id: LeaseId): boolean {
    const lease = this.#renewed;
    if (lease?.id !== Number(id) || this.#closed !== undefined || this.#isRemoved) return false;
    try {
      if (inodeOf(this.#file) !== this.#inode) return false;
      if (!this.#engine.leases.renewAlone(lease, () => this.#listening.stayOnListAlong())) return false;
    } catch {
      // The file is busy, or something is wrong.
      return false;
    }
    this.#sentry.pass();
    return true;
  }

  async endLeaseWith(id: LeaseId, processes: readonly ProcessIdentity[], signal?: AbortSignal): Promise<void> {
    return this.#do(
      () =>
        this.#engine.write(() => {
          const { leases } = this.#engine;
          if (leases.get(Number(id)) === undefined) throw new Failure('not-found', `no lease ${id}: it has ended`);
          leases.endWith(Number(id), processes);
        }),
      signal,
    );
  }

  async revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void> {
    return this.#do(() => this.#engine.endLeases(() => [Number(id)]), signal);
  }

  async leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null> {
    this.#refuseIfClosed();
    return this.#turns.now(() => {
      const { leases, keys } = this.#engine;
      return this.#engine.look(() => {
        const lease = leases.get(Number(id));
        if (lease === undefined) return null;
        return {
          id,
          ttlMs: lease.ttl_ms,
          remainingMs: leases.remainingMs(lease),
          keys: keys.attachedTo(lease.id),
        };
      });
    }, signal);
  }

  async compact(revision: Revision, signal?: AbortSignal): Promise<void> {
    return this.#do(() => this.#engine.compact(revision), signal);
  }

  async health(signal?: AbortSignal): Promise<Health> {
    this.#refuseIfClosed();
    return this.#turns.now(() => this.#engine.health(), signal);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    this.#sentry.end();
    for (const watch of this.#watches) watch.end();
    try {
      this.#duty?.end();
      // Waits its turn behind everything that was asked for before.
      await this.#turns.take(() => this.#listening.close()).catch(() => this.#listening.abandon());
    } finally {
      this.#engine.leases.end();
      this.#connection.close();
    }
  }

  async #do<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    this.#refuseIfClosed();
    return this.#turns.take(work, signal);
  }

  #refuseIfClosed(): void {
    if (this.#closed !== undefined) throw new Failure('closed', 'this store was closed');
    if (this.#isRemoved) throw this.#removal();
  }

  /** The store was removed. A process that opens it now finds another store, so the holds in this one are over. */
  #removed(): void {
    if (this.#isRemoved) return;
    this.#isRemoved = true;
    for (const watch of [...this.#watches]) watch.fail(this.#removal());
    this.#over.abort(this.#removal());
  }

  #removal(): Failure {
    return new Failure('closed', `${this.#file} was removed or moved while it was in use; open it again`);
  }

  /** To be called when another process may have written. */
  readonly #look = (): void => {
    this.#turns.now(this.#listening.look).catch(() => undefined);
  };

  readonly #rung = (): void => {
    this.#look();
    this.#checkSoon ??= setImmediate(this.#check);
  };

  /** Comes after the news has been acted on: a process that gets a hold should not wait until it knows who is on duty. */
  readonly #check = (): void => {
    this.#checkSoon = undefined;
    if (this.#isClosing) return;
    this.#duty?.check();
    this.#sentry.wasRung();
  };

  /** Asks the process on duty to listen for our bell, if we cannot hear it. */
  #haveHeard(): void {
    const { isDeaf, bell } = this.#listening;
    if (isDeaf && bell !== undefined) this.#duty?.haveHeard(bell);
  }

  readonly #newsTo: Look = (cursor) => {
    try {
      const [news] = this.#engine.news(() => [cursor]);
      return news as News | Failure;
    } catch (error) {
      throw asFailure(error, this.#file);
    }
  };

  readonly #ended = (watch: EmbeddedWatch): void => {
    this.#watches.delete(watch);
    const strike = this.#listening.remove(watch);
    // Closing strikes all entries at once.
    if (strike !== undefined && !this.#isClosing) this.#turns.take(strike).catch(() => undefined);
  };
}

/** Identifies a file, whatever its name. Throws `forbidden` if it cannot look, because it may still be the same file. */
function inodeOf(file: string): string {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? '' : `${stat.dev}:${stat.ino}`;
  } catch (cause) {
    throw new Failure('forbidden', `${file} cannot be reached at the moment: ${(cause as Error).message}`, { cause });
  }
}
