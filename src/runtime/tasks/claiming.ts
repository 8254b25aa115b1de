/**
 * One attempt to claim one task, until it is certain what has become of it.
 *
 *     decide ──▶ one transaction ──▶ claimed
 *        ▲             │ └─ it was not as we knew: what it is came with the answer ─┐
 *        └─────────────┼────────────────────────────────────────────────────────────┘
 *                      └─ no answer: nothing of ours may land from now on (fence), then look
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
import type { Runtime } from '../runtime.ts';
import { readTasks, taskIn } from './reading.ts';
import { isTrouble } from '../write/recovery.ts';
import { type NextStep, type Intent, persistently, send, writeOnce } from '../write/write-once.ts';
import {
  blindClaimTransaction,
  type ClaimGround,
  claimTransaction,
  clearOwnerTransaction,
  endTransaction,
} from './writing.ts';

export interface Claimed {
  readonly kind: 'claimed';
  /** As it is now: ours. */
  readonly task: Task;
  readonly token: Token;
  readonly ground: ClaimGround;
}

export type Attempt = (ClaimRefusal & { readonly revision: number }) | Claimed;

/** What a claim stands on, made anew where it has to be. */
export interface ClaimLease {
  ground(): Promise<ClaimGround>;
  /** From now on nothing that was sent before can land. */
  fence(): Promise<void>;
  /** The lease or session was gone. */
  gone(ground: ClaimGround): void;
  /** How the anchor was found, after a write that compared it failed. */
  saw(ground: ClaimGround, version: number | undefined, revision: number): void;
}

export interface Known {
  readonly task: Task;
  /** Undefined for a task that does not exist; those that are not known of count as complete until they are read. */
  readonly status: (id: string) => TaskStatus | undefined;
  /** When it was so, if it was read since we asked: only then may it refuse. Any later, and a change would be missed. */
  readonly readAt?: Revision;
}

export async function attemptClaim(
  runtime: Runtime,
  claimLease: ClaimLease,
  id: string,
  request: ClaimRequest,
  known?: Known,
): Promise<Attempt> {
  return writeOnce(runtime, new ClaimIntent(runtime, claimLease, id, request, known));
}

/** What a claim rests on. */
interface ClaimView {
  /** Undefined: nothing, so it is claimed as one that nobody has touched. */
  readonly known: Known | undefined;
  readonly ground: ClaimGround;
}

class ClaimIntent implements Intent<ClaimView, Attempt> {
  readonly until: number;
  readonly #runtime: Runtime;
  readonly #claimLease: ClaimLease;
  readonly #id: string;
  readonly #request: ClaimRequest;
  readonly #known: Known | undefined;

  constructor(runtime: Runtime, claimLease: ClaimLease, id: string, request: ClaimRequest, known: Known | undefined) {
    this.until = runtime.giveUpAt();
    this.#runtime = runtime;
    this.#claimLease = claimLease;
    this.#id = id;
    this.#request = request;
    this.#known = known;
  }

  async read(isFirst: boolean): Promise<ClaimView> {
    // With what it depends on, so that a refusal can say why.
    const known = isFirst ? this.#known : await readKnown(this.#runtime, this.#id);
    return { known, ground: await this.#claimLease.ground() };
  }

  decide({ known, ground }: ClaimView): NextStep<ClaimView, Attempt> {
    if (known === undefined) return this.#blindly(ground);
    const { task, status, readAt } = known;
    const decided = decideClaim(task, this.#request, status);
    if (decided.kind !== 'write') {
      if (readAt === undefined) return { kind: 'look' };
      return { kind: 'answer', answer: { ...decided, revision: readAt } };
    }
    if (task.owner !== undefined) {
      const without: ClaimView = { known: { ...known, task: { ...task, owner: undefined } }, ground };
      const then = ({ succeeded }: TransactionResult): ClaimView | undefined => (succeeded ? without : undefined);
      return { kind: 'step', transaction: clearOwnerTransaction(task), then };
    }
    return {
      kind: 'write',
      transaction: claimTransaction(task, decided, this.#request.holder, ground),
      landed: ({ revision }) => this.#landed(task, decided, revision, ground),
      overtaken: (result) => this.#learnt(result, ground),
    };
  }

  #blindly(ground: ClaimGround): NextStep<ClaimView, Attempt> {
    const write = claimUntouched(this.#request);
    return {
      kind: 'write',
      transaction: blindClaimTransaction(this.#id, write, this.#request.holder, ground),
      landed: ({ results, revision }) => {
        const before = taskIn(this.#id, results);
        // What the bookkeeping said of its publication is not in what we have put; it goes back when the claim ends.
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

  #landed(before: Task, { status, bookkeeping }: TaskWrite, revision: number, ground: ClaimGround): Claimed {
    const { holder } = this.#request;
    const owner = { holder, token: revision, mod: revision, lease: ground.leaseId };
    const task: Task = {
      ...before,
      owner,
      status: { word: status, mod: revision },
      bookkeeping: { entry: bookkeeping, mod: revision },
    };
    return { kind: 'claimed', task, token: revision, ground };
  }

  /** What the failure branch read. */
  #learnt(result: TransactionResult, ground: ClaimGround): Promise<ClaimView> | undefined {
    const task = taskIn(this.#id, result.results);
    if (ground.anchor !== undefined) {
      this.#claimLease.saw(ground, pairIn(result.results, ground.anchor.key)?.version, result.revision);
    }
    if ((task.data?.terms.dependsOn.length ?? 0) > 0) return undefined;
    const known: Known = { task, status: () => undefined, readAt: result.revision };
    return this.#claimLease.ground().then((newer) => ({ known, ground: newer }));
  }

  gone({ ground }: ClaimView): void {
    this.#claimLease.gone(ground);
  }

  found({ known, ground }: ClaimView): Claimed | undefined {
    const { task } = known ?? {};
    if (
      task?.bookkeeping?.entry.claim?.id !== this.#request.id ||
      task.owner === undefined ||
      statusOf(task) !== 'running'
    ) {
      return undefined;
    }
    // Made on a lease that is not ours any more, it is none.
    return task.owner.lease === ground.leaseId ? { kind: 'claimed', task, token: task.owner.token, ground } : undefined;
  }

  /** Looks first: what a detached claim stands on would be gone with the fence, and a claim that has landed with it. */
  readonly fence = (done: () => void, failed: (error: unknown) => void): void => {
    const fenced = async (): Promise<void> => {
      if (this.found(await this.read(false)) === undefined) await this.#claimLease.fence();
    };
    fenced().then(done, failed);
  };

  /** It may have landed: then nobody knows of it but the store. */
  abandoned(_doubt: Failure, error: unknown): unknown {
    void abandon(this.#runtime, this.#claimLease, this.#id, this.#request.id);
    return isTrouble(error) ? unknown(error) : error;
  }
}

/** The task and what it depends on, at most two reads. */
export async function readKnown(runtime: Runtime, id: string): Promise<Known> {
  const { tasks, revision: readAt } = await readTasks(runtime, [id]);
  const [task] = tasks as [Task];
  const dependsOn = task.data?.terms.dependsOn ?? [];
  const found = new Map<string, TaskStatus>();
  // As many at a time as one transaction has room for.
  for (let first = 0; first < dependsOn.length; first += 30) {
    const some = await readTasks(runtime, dependsOn.slice(first, first + 30));
    for (const one of some.tasks) if (one.data !== undefined) found.set(one.id, statusOf(one));
  }
  return { task, status: (other) => found.get(other), readAt };
}

/** A claim that nobody waits for any more goes back as soon as the store is there again, or ends with its lease. */
export async function abandon(runtime: Runtime, claimLease: ClaimLease, id: string, claim: string): Promise<void> {
  const until = runtime.clock.monotonic() + runtime.options.sessionTtlMs;
  await persistently(runtime, until, async () => {
    await claimLease.fence();
    const { tasks } = await readTasks(runtime, [id]);
    const [task] = tasks as [Task];
    if (task.owner === undefined || task.bookkeeping?.entry.claim?.id !== claim) return;
    const at = { request: claim, now: runtime.clock.now() };
    const write = decideEnd(task, { token: task.owner.token }, { how: 'release' }, at);
    if (write.kind === 'write') await send(runtime, endTransaction(task, write));
  }).catch(() => undefined);
}

function unknown(cause: unknown): Failure {
  return new Failure('outcome-unknown', 'no answer came; should the task have been claimed, it goes back by itself', {
    cause,
  });
}
