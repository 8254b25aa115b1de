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
import type { ReadResult, Revision, TransactionResult } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { readTasks, taskIn } from './reading.ts';
import { isTrouble, persistently, send } from './sending.ts';
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
export interface Footing {
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
  footing: Footing,
  id: string,
  request: ClaimRequest,
  known?: Known,
): Promise<Attempt> {
  const attempt = new ClaimAttempt(runtime, footing, id, request, known);
  const until = runtime.giveUpAt();
  try {
    return await persistently(runtime, until, () => attempt.step());
  } catch (error) {
    // It may have landed: then nobody knows of it but the store.
    if (attempt.isUncertain) void abandon(runtime, footing, id, request.id);
    if (attempt.isUncertain && isTrouble(error)) throw unknown(error);
    throw error;
  }
}

class ClaimAttempt {
  readonly #runtime: Runtime;
  readonly #footing: Footing;
  readonly #id: string;
  readonly #request: ClaimRequest;
  #known: Known | undefined;
  isUncertain = false;

  constructor(runtime: Runtime, footing: Footing, id: string, request: ClaimRequest, known: Known | undefined) {
    this.#runtime = runtime;
    this.#footing = footing;
    this.#id = id;
    this.#request = request;
    this.#known = known;
  }

  async step(): Promise<Attempt> {
    for (;;) {
      if (this.isUncertain) {
        const landed = await this.#lookBack();
        if (landed !== undefined) return landed;
      }
      const ground = await this.#footing.ground();
      const answer = this.#known === undefined ? await this.#blindly(ground) : await this.#knowing(ground, this.#known);
      if (answer !== undefined) return answer;
    }
  }

  async #blindly(ground: ClaimGround): Promise<Attempt | undefined> {
    const write = claimUntouched(this.#request);
    const transaction = blindClaimTransaction(this.#id, write, this.#request.holder, ground);
    const result = await this.#send(ground, () => send(this.#runtime, transaction));
    if (result === undefined) return undefined;
    if (!result.succeeded) return void (await this.#learn(result, ground));
    const before = taskIn(this.#id, result.results);
    // What the book said of its publication is not in what we have put; it goes back when the claim ends.
    const book = { ...before.book?.entry, ...write.book };
    return this.#landed(before, { ...write, book }, result.revision, ground);
  }

  async #knowing(ground: ClaimGround, known: Known): Promise<Attempt | undefined> {
    const { task, status, readAt } = known;
    const decided = decideClaim(task, this.#request, status);
    if (decided.kind !== 'write') {
      if (readAt !== undefined) return { ...decided, revision: readAt };
      await this.#read();
      return undefined;
    }
    if (task.owner !== undefined) {
      const cleared = await send(this.#runtime, clearOwnerTransaction(task));
      if (cleared.succeeded) this.#known = { ...known, task: { ...task, owner: undefined } };
      else await this.#read();
      return undefined;
    }
    const transaction = claimTransaction(task, decided, this.#request.holder, ground);
    const result = await this.#send(ground, () => send(this.#runtime, transaction));
    if (result === undefined) return undefined;
    if (!result.succeeded) return void (await this.#learn(result, ground));
    return this.#landed(task, decided, result.revision, ground);
  }

  /** Undefined if what it stood on was gone: then nothing was done. */
  async #send(ground: ClaimGround, sending: () => Promise<TransactionResult>): Promise<TransactionResult | undefined> {
    try {
      return await sending();
    } catch (error) {
      if (Failure.is(error, 'outcome-unknown')) this.isUncertain = true;
      if (!Failure.is(error, 'not-found')) throw error;
      this.#footing.gone(ground);
      return undefined;
    }
  }

  #landed(before: Task, { status, book }: TaskWrite, revision: number, ground: ClaimGround): Claimed {
    const { holder } = this.#request;
    const owner = { holder, token: revision, mod: revision, lease: ground.leaseId };
    const task: Task = {
      ...before,
      owner,
      status: { word: status, mod: revision },
      book: { entry: book, mod: revision },
    };
    return { kind: 'claimed', task, token: revision, ground };
  }

  /** From the failure branch: the task, then the anchor. */
  async #learn(result: TransactionResult, ground: ClaimGround): Promise<void> {
    const task = taskIn(this.#id, result.results);
    if (ground.anchor !== undefined) {
      const [anchor] = (result.results[4] as ReadResult).pairs;
      this.#footing.saw(ground, anchor?.version, result.revision);
    }
    if ((task.data?.terms.dependsOn.length ?? 0) > 0) return this.#read();
    this.#known = { task, status: () => undefined, readAt: result.revision };
  }

  /** With what it depends on, so that a refusal can say why. */
  async #read(): Promise<void> {
    this.#known = await readKnown(this.#runtime, this.#id);
  }

  /**
   * The answer to an earlier attempt got lost. If it is there, it has landed; if not, then only once nothing of it can land
   * any more does looking tell.
   */
  async #lookBack(): Promise<Claimed | undefined> {
    const landed = await this.#landing();
    if (landed === undefined) await this.#footing.fence();
    const found = landed ?? (await this.#landing());
    this.isUncertain = false;
    if (found === undefined) await this.#read();
    return found;
  }

  async #landing(): Promise<Claimed | undefined> {
    const { tasks } = await readTasks(this.#runtime, [this.#id]);
    const [task] = tasks as [Task];
    if (task.book?.entry.claim?.id !== this.#request.id || task.owner === undefined || statusOf(task) !== 'running') {
      return undefined;
    }
    const ground = await this.#footing.ground();
    // Made on a lease that is not ours any more, it is none.
    return task.owner.lease === ground.leaseId ? { kind: 'claimed', task, token: task.owner.token, ground } : undefined;
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
export async function abandon(runtime: Runtime, footing: Footing, id: string, claim: string): Promise<void> {
  const until = runtime.clock.monotonic() + runtime.options.sessionTtlMs;
  await persistently(runtime, until, async () => {
    await footing.fence();
    const { tasks } = await readTasks(runtime, [id]);
    const [task] = tasks as [Task];
    if (task.owner === undefined || task.book?.entry.claim?.id !== claim) return;
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
