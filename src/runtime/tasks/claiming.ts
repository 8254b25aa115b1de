/**
 * Makes one attempt to claim one task, until its result is certain.
 *
 *     decide ──▶ one transaction ──▶ claimed
 *        ▲             │ └─ the task had changed: the answer says how it is now ─────┐
 *        └─────────────┼────────────────────────────────────────────────────────────┘
 *                      └─ no answer: fence, so that nothing of ours can land any more, then read
 */
import {
  claimUntouched,
  type ClaimRefusal,
  type ClaimRequest,
  decideClaim,
  decideEnd,
  statusOf,
  type Task,
  type TaskStatus,
  type TaskWrite,
  type Token,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { pairIn, type Revision, type TransactionResult } from '../../store/index.ts';
import { anchorKey } from '../layout.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type Sent, sentNow, type Session } from '../session/session.ts';
import { isTrouble } from '../write/recovery.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { type Intent, type NextStep, persistently, sendWitnessed, writeOnce } from '../write/write-once.ts';
import { taskDeeds } from './witnessed.ts';
import { readManyTasks, readTask, readTasks, statusIn, taskIn } from './reading.ts';
import {
  blindClaimTransaction,
  type ClaimGround,
  claimTransaction,
  clearOwnerTransaction,
  endTransaction,
  idleTransaction,
} from './writing.ts';

export interface Claimed {
  readonly kind: 'claimed';
  /** The task as the claim has made it. */
  readonly task: Task;
  readonly token: Token;
  readonly ground: ClaimGround;
}

export type Attempt = (ClaimRefusal & { readonly revision: number }) | Claimed;

/** At which revision the task was claimed, or could not be. */
export function revisionOf(attempt: Attempt): Revision {
  return attempt.kind === 'claimed' ? attempt.token : attempt.revision;
}

/** The lease that a claim rests on: that of the session, or one of its own. */
export interface ClaimLease {
  /** Makes a new lease where the last one is gone. */
  ground(): Promise<ClaimGround>;
  /** After this, no request that was sent before can land. */
  fence(): Promise<void>;
  /** The store said that the lease does not exist any more. */
  gone(ground: ClaimGround): void;
  /** The version of the anchor, as read by a claim that did not land. */
  saw(ground: ClaimGround, version: number | undefined, revision: number): void;
}

export interface Known {
  readonly task: Task;
  /** Undefined for a task that does not exist, or that was not read. */
  readonly status: (id: string) => TaskStatus | undefined;
  /** The revision of the read, if it was made for this attempt: only then may it refuse. A later revision would hide a change. */
  readonly readAt?: Revision;
}

export interface ClaimTerms {
  readonly claimLease: ClaimLease;
  readonly id: string;
  readonly request: ClaimRequest;
  /** When the worker began to wait, by the wall clock. */
  readonly askedAt: number;
  readonly known: Known | undefined;
}

export async function attemptClaim(runtime: Runtime, terms: ClaimTerms): Promise<Attempt> {
  return writeOnce(runtime, new ClaimIntent(runtime, terms));
}

/** What one pass of a claim decides on. */
interface ClaimView {
  /** Undefined: nothing is known, so the claim assumes a task that nothing has touched. */
  readonly known: Known | undefined;
  readonly ground: ClaimGround;
}

class ClaimIntent implements Intent<ClaimView, Attempt> {
  readonly until: number;
  readonly #runtime: Runtime;
  readonly #terms: ClaimTerms;

  constructor(runtime: Runtime, terms: ClaimTerms) {
    this.until = runtime.giveUpAt();
    this.#runtime = runtime;
    this.#terms = terms;
  }

  async read(isFirst: boolean): Promise<ClaimView> {
    // Reads the dependencies as well, so that a refusal can name what blocks the task. The entry of a claim names the trace of the
    // task, which only the task knows.
    const isEnough = isFirst && (this.#terms.known !== undefined || !this.#runtime.witness.isOn);
    const known = isEnough ? this.#terms.known : await readKnown(this.#runtime, this.#terms.id);
    return { known, ground: await this.#terms.claimLease.ground() };
  }

  decide({ known, ground }: ClaimView): NextStep<ClaimView, Attempt> {
    if (known === undefined) return this.#blindly(ground);
    const { task, status, readAt } = known;
    const decided = decideClaim(task, this.#terms.request, status);
    if (decided.kind === 'lost-too-often') {
      // The task is read again after this write, whether it landed or not.
      const deeds = this.#deeds(task, decided.kind, decided.write);
      return { kind: 'step', transaction: idleTransaction(task, decided.write), deeds, then: () => undefined };
    }
    if (decided.kind !== 'write') {
      if (readAt === undefined) return { kind: 'look' };
      return { kind: 'answer', answer: { ...decided, revision: readAt } };
    }
    if (task.owner !== undefined) {
      const without: ClaimView = { known: { ...known, task: { ...task, owner: undefined } }, ground };
      const then = ({ succeeded }: TransactionResult): ClaimView | undefined => (succeeded ? without : undefined);
      const deeds = this.#deeds(task, 'owner-cleared');
      return { kind: 'step', transaction: clearOwnerTransaction(task), deeds, then };
    }
    return {
      kind: 'write',
      transaction: claimTransaction(task, decided, this.#terms.request.holder, ground),
      deeds: this.#deeds(task, 'claimed', decided),
      landed: ({ revision }) => this.#landed(task, decided, revision, ground),
      overtaken: (result) => this.#learnt(result, ground),
    };
  }

  #blindly(ground: ClaimGround): NextStep<ClaimView, Attempt> {
    const write = claimUntouched(this.#terms.request);
    return {
      kind: 'write',
      transaction: blindClaimTransaction(this.#terms.id, write, this.#terms.request.holder, ground),
      deeds: this.#deeds({ id: this.#terms.id, bookkeeping: undefined }, 'claimed', write),
      landed: ({ results, revision }) => {
        const before = taskIn(this.#terms.id, results);
        // The write has overwritten what the bookkeeping said of the publication. The end of the claim puts it back.
        return this.#landed(
          before,
          { ...write, bookkeeping: { ...before.bookkeeping?.entry, ...write.bookkeeping } },
          revision,
          ground,
        );
      },
      overtaken: (result) => this.#learnt(result, ground),
    };
  }

  #deeds(task: Pick<Task, 'id' | 'bookkeeping'>, outcome: string, write?: TaskWrite): readonly Deed[] {
    const { attempts, events = [] } = write?.bookkeeping ?? {};
    const detail = attempts === undefined ? {} : { attempt: attempts };
    const askedAt = outcome === 'claimed' ? this.#terms.askedAt : undefined;
    return taskDeeds(task, { actor: this.#terms.request.holder, command: 'claim', outcome, events, detail, askedAt });
  }

  #landed(before: Task, { status, bookkeeping }: TaskWrite, revision: number, ground: ClaimGround): Claimed {
    const { holder } = this.#terms.request;
    const owner = { holder, token: revision, mod: revision, lease: ground.leaseId };
    // Drops the head, which is from before this write: the write has put a newer one.
    const { head: _head, ...entry } = bookkeeping;
    const task: Task = {
      ...before,
      owner,
      status: { word: status, mod: revision },
      bookkeeping: { entry, mod: revision },
    };
    return { kind: 'claimed', task, token: revision, ground };
  }

  /** Takes up what the failure branch read. */
  #learnt(result: TransactionResult, ground: ClaimGround): Promise<ClaimView> | undefined {
    const task = taskIn(this.#terms.id, result.results);
    if (ground.anchor !== undefined) {
      this.#terms.claimLease.saw(ground, pairIn(result.results, ground.anchor.key)?.version, result.revision);
    }
    if ((task.data?.terms.dependsOn.length ?? 0) > 0) return undefined;
    const known: Known = { task, status: () => undefined, readAt: result.revision };
    return this.#terms.claimLease.ground().then((newer) => ({ known, ground: newer }));
  }

  gone({ ground }: ClaimView): void {
    this.#terms.claimLease.gone(ground);
  }

  found({ known, ground }: ClaimView): Claimed | undefined {
    const { task } = known ?? {};
    if (
      task?.bookkeeping?.entry.claim?.id !== this.#terms.request.id ||
      task.owner === undefined ||
      statusOf(task) !== 'running'
    ) {
      return undefined;
    }
    // A claim on a lease that is no longer ours does not count.
    return task.owner.lease === ground.leaseId ? { kind: 'claimed', task, token: task.owner.token, ground } : undefined;
  }

  /** Reads first: fencing a detached claim revokes its lease, which would end a claim that has landed. */
  readonly fence = (done: () => void, failed: (error: unknown) => void): void => {
    const fenced = async (): Promise<void> => {
      if (this.found(await this.read(false)) === undefined) await this.#terms.claimLease.fence();
    };
    fenced().then(done, failed);
  };

  /** Gives the claim back: it may have landed without any worker knowing. */
  abandoned(_doubt: Failure, error: unknown): unknown {
    void abandon(this.#runtime, this.#terms.claimLease, this.#terms.id, this.#terms.request.id);
    return isTrouble(error) ? unknown(error) : error;
  }
}

/** Reads the task, then the tasks it depends on. */
export async function readKnown(runtime: Runtime, id: string): Promise<Known> {
  const { tasks, revision: readAt } = await readTasks(runtime, [id]);
  const [task] = tasks as [Task];
  const dependsOn = await readManyTasks(runtime, task.data?.terms.dependsOn ?? []);
  return { task, status: statusIn(dependsOn), readAt };
}

/** Gives an abandoned claim back as soon as the store answers again. Until then it ends with its lease. */
async function abandon(runtime: Runtime, claimLease: ClaimLease, id: string, claim: string): Promise<void> {
  const until = runtime.clock.monotonic() + runtime.options.sessionTtlMs;
  await persistently(runtime, until, async () => {
    await claimLease.fence();
    const task = await readTask(runtime, id);
    if (task.owner === undefined || task.bookkeeping?.entry.claim?.id !== claim) return;
    const at = { request: claim, now: runtime.clock.now() };
    const write = decideEnd(task, { token: task.owner.token }, { how: 'release' }, at);
    if (write.kind !== 'write') return;
    const { holder: actor } = task.owner;
    const { events } = write.bookkeeping;
    const deeds = taskDeeds(task, { actor, command: 'release', outcome: 'released', events });
    await sendWitnessed(runtime, endTransaction(task, write), deeds);
  }).catch(() => undefined);
}

function unknown(cause: unknown): Failure {
  const message = 'the store did not answer the claim; if the claim landed, signalbox gives the task back';
  return new Failure('outcome-unknown', message, { cause });
}

/** An attached claim ends with the session of this process, so it must be made in that session. */
export class SessionClaimLease implements ClaimLease {
  readonly #runtime: Runtime;
  readonly #session: Session;

  constructor(runtime: Runtime, session: Session) {
    this.#runtime = runtime;
    this.#session = session;
  }

  ground(): Promise<ClaimGround> {
    const { id, leaseId, epoch } = this.#session;
    if (!this.isValid) return Promise.reject(new NotAcquired('task', { kind: 'session-lost' }));
    return Promise.resolve({ leaseId, anchor: { key: anchorKey(id), epoch } });
  }

  get isValid(): boolean {
    return this.#runtime.session === this.#session;
  }

  fence(): Promise<void> {
    return new Promise((resolve, reject) => this.#runtime.presence.fence(resolve, reject));
  }

  gone(): void {
    this.#session.end('expired');
  }

  saw(_: ClaimGround, version: number | undefined, revision: number): void {
    if (this.isValid) this.#runtime.sawLease(this.#session.id, version, revision);
  }
}

/** A detached claim has a lease of its own. It needs no session, and outlives the process that made it. */
export class DetachedClaimLease implements ClaimLease {
  readonly #runtime: Runtime;
  readonly #ttlMs: number;
  #lease: { readonly ground: ClaimGround; readonly ttlMs: number; readonly sent: Sent } | undefined;

  constructor(runtime: Runtime, ttlMs: number) {
    this.#runtime = runtime;
    this.#ttlMs = ttlMs;
  }

  /** The time that the store granted, and when the request for it was sent. */
  get lease(): { readonly ttlMs: number; readonly sent: Sent } | undefined {
    return this.#lease;
  }

  async ground(): Promise<ClaimGround> {
    if (this.#lease === undefined) {
      const { store, stopped, clock } = this.#runtime;
      const sent = sentNow(clock);
      const lease = await store.grantLease(this.#ttlMs, stopped);
      this.#lease = { ground: { leaseId: lease.id }, ttlMs: lease.ttlMs, sent };
    }
    return this.#lease.ground;
  }

  /** Without the lease no request can land, and a claim that has landed ends. */
  async fence(): Promise<void> {
    await this.drop();
  }

  gone(): void {
    this.#lease = undefined;
  }

  saw(): void {}

  /** Revokes the lease, if there is one. */
  async drop(): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return;
    await this.#runtime.store.revokeLease(lease.ground.leaseId).catch((error: unknown) => {
      if (!Failure.is(error, 'not-found')) throw error;
    });
    this.#lease = undefined;
  }
}
