/**
 * Who in this process gets which task, and who is told of it. Nothing here keeps a watch or a list of all tasks until
 * somebody needs one: claiming a task by its id takes one transaction.
 */
import { claimEntryOf, type ClaimRequest, isOrphaned, isOwned, type Task } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { Board, type BoardListener, type Turn } from './board.ts';
import { TaskClaim } from './claim.ts';
import { type Attempt, attemptClaim, type Known } from './claiming.ts';
import { DetachedClaims } from './detached.ts';
import { TaskFeed } from './feed.ts';
import { SessionFooting } from './footing.ts';
import { taskResource } from './keys.ts';
import type { TaskWaitOptions } from './patience.ts';
import { Repairs } from './repairs.ts';
import type { ClaimAttempt, ClaimOptions, NextAttempt } from './tasks.ts';
import { Telling } from './telling.ts';
import { type Made, NEXT, refusalIn, Waiting } from './waiting.ts';

/** A claim that lost its session before anything was claimed is tried under the next one. */
const MOST_SESSIONS = 3;

export class Dispatch implements BoardListener {
  readonly feed: TaskFeed;
  readonly board: Board;
  readonly repairs: Repairs;
  readonly telling: Telling;
  readonly detached: DetachedClaims;
  readonly #runtime: Runtime;
  readonly #waiting: Waiting;

  constructor(runtime: Runtime, repairs: boolean) {
    this.#runtime = runtime;
    this.feed = new TaskFeed(runtime);
    this.board = new Board(runtime, this.feed, this);
    this.repairs = new Repairs(runtime, this.board, repairs);
    this.telling = new Telling(this.board);
    this.#waiting = new Waiting(runtime, this.board);
    this.detached = new DetachedClaims(runtime, this.#waiting, (id) => this.#known(id));
  }

  close(): void {
    this.#waiting.close();
    this.telling.stop();
    this.repairs.stop();
  }

  wrote(revision: Revision): void {
    this.#waiting.wrote(revision);
  }

  // Claiming

  async tryClaim(id: string, options: ClaimOptions): Promise<ClaimAttempt> {
    const { attempt, made } = await this.#attempt(id, options);
    return made === undefined ? refusalIn(attempt) : { kind: 'claimed', claim: made };
  }

  claim(id: string, options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#waiting.patiently(
      taskResource(id),
      options,
      (patience) => this.#waiting.named(id, options, patience, (task) => this.#attempt(task, options)),
      (claim) => claim.release(),
    );
  }

  async tryClaimNext(options: ClaimOptions): Promise<NextAttempt> {
    const claim = await this.#waiting.next(options.capabilities, undefined, (id) => this.#attempt(id, options));
    return claim === undefined ? { kind: 'none' } : { kind: 'claimed', claim };
  }

  claimNext(options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#waiting.patiently(
      NEXT,
      options,
      async (patience) => {
        const patient = options.waitMs === 0 ? undefined : patience;
        const claim = await this.#waiting.next(options.capabilities, patient, (id) => this.#attempt(id, options));
        if (claim === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
        return claim;
      },
      (claim) => claim.release(),
    );
  }

  /** Under the session of this process. What was claimed under one that has ended goes back by itself. */
  async #attempt(id: string, options: ClaimOptions): Promise<Made<TaskClaim>> {
    for (let sessions = 1; ; sessions++) {
      const session = await this.#runtime.ready();
      const footing = new SessionFooting(this.#runtime, session);
      const request = this.#request(this.#runtime.nextId(session), options);
      let attempt: Attempt;
      try {
        attempt = await attemptClaim(this.#runtime, footing, id, request, this.#known(id));
      } catch (error) {
        if (isSessionLost(error) && sessions < MOST_SESSIONS) continue;
        throw error;
      }
      if (attempt.kind !== 'claimed') return { attempt, made: undefined };
      // The last thing before control goes back to who asked: after a stall, this may be the first to notice.
      if (!footing.isValid) throw new NotAcquired(taskResource(id), { kind: 'session-lost' });
      const made = new TaskClaim(this.#runtime, attempt, session.id, (revision) => this.wrote(revision));
      return { attempt, made };
    }
  }

  #request(id: string, { holder = id, capabilities = [] }: ClaimOptions): ClaimRequest {
    return { id, holder, capabilities, at: this.#runtime.clock.now() };
  }

  #known(id: string): Known | undefined {
    const task = this.board.isStarted ? this.board.get(id) : undefined;
    return task && { task, status: (other) => this.board.status(other) };
  }

  // What the board tells

  found(task: Task): void {
    if (isOrphaned(task)) this.repairs.look(task.id);
  }

  turned(turn: Turn): void {
    const { before, after, revision } = turn;
    this.#loseIfOurs(before, after);
    if (isOrphaned(after)) this.repairs.look(after.id);
    this.telling.turned(turn);
    this.#waiting.turned(after.id, revision);
  }

  unblocked(task: Task): void {
    this.telling.tell({ why: 'unblocked', task: this.telling.view(task) });
    this.#waiting.turned(task.id, Number.POSITIVE_INFINITY);
  }

  missed(): void {
    this.telling.tell({ why: 'resync' });
  }

  settled(): void {
    this.#waiting.settled();
  }

  /** Somebody who keeps to no rule may have taken a task from us. */
  #loseIfOurs(before: Task, after: Task): void {
    if (this.#runtime.holds.size === 0) return;
    // Written over, the key is as old as before.
    if (before.owner?.token === after.owner?.token && before.owner?.holder === after.owner?.holder) return;
    const claim = claimEntryOf(before);
    if (claim === undefined) return;
    this.#runtime.holds.get(claim.id)?.lose({ why: isOwned(after) ? 'reclaimed' : 'expired' });
  }
}

function isSessionLost(error: unknown): boolean {
  return error instanceof NotAcquired && error.refusal.kind === 'session-lost';
}
