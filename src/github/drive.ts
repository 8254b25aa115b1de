/** Runs a procedure of the core: asks GitHub its questions, and returns the answers with their times. */
import { type Clock, pause } from '../clock.ts';
import type { Answer, CommitSeen, Instant, Procedure, Question, Reply } from '../core/github/index.ts';
import type { GitHubClient } from './client.ts';

/** Thrown by `drive` once its signal aborts. No request is under way then. */
export class Aborted extends Error {}

const MOST_COMMITS = 1_000;

export class Driver {
  readonly client: GitHubClient;
  readonly clock: Clock;
  /** Cached for ever, because a commit never changes. */
  readonly #commits = new Map<string, CommitSeen>();
  /** How far the server's clock is ahead of ours; only for texts that people read. */
  #aheadMs = 0;

  constructor(client: GitHubClient, clock: Clock) {
    this.client = client;
    this.clock = clock;
  }

  instant(): Instant {
    return { monotonicMs: this.clock.monotonic(), wallMs: this.clock.uptime?.() ?? this.clock.now() };
  }

  /** The server's time, as far as it is known. */
  serverIso(): string {
    return new Date(Math.floor((this.clock.now() + this.#aheadMs) / 1000) * 1000).toISOString();
  }

  /** Checks `signal` only before and after each pause, so that a request that was sent always gets its answer. */
  async drive<Result>(procedure: Procedure<Result>, signal?: AbortSignal): Promise<Result> {
    let step = procedure.next([]);
    while (step.done !== true) {
      const sent = this.instant();
      const questions = step.value;
      const replies = await Promise.all(questions.map((question) => this.#ask(question, signal)));
      if (signal?.aborted === true && questions.some(({ ask }) => ask === 'pause')) throw new Aborted();
      const at = this.instant();
      step = procedure.next(replies.map((reply): Answer<unknown> => ({ ...reply, sent, at })));
    }
    return step.value;
  }

  async #ask(question: Question, signal: AbortSignal | undefined): Promise<Reply<unknown>> {
    const reply = await this.#send(question, signal);
    if (reply.date !== undefined) this.#aheadMs = reply.date.ms - this.clock.now();
    return reply;
  }

  async #send(question: Question, signal: AbortSignal | undefined): Promise<Reply<unknown>> {
    const { client } = this;
    switch (question.ask) {
      case 'issue':
        return client.getIssue(question.issue);
      case 'ref':
        return client.getRef(question.ref);
      case 'refs':
        return client.listRefs(question.prefix);
      case 'commit':
        return this.commit(question.sha);
      case 'make-commit':
        return client.createCommit(question.message, question.parents);
      case 'make-ref':
        return client.createRef(question.ref, question.sha);
      case 'move-ref':
        return client.updateRef(question.ref, question.sha);
      case 'move-refs':
        return client.updateRefs(question.moves);
      case 'delete-ref':
        return client.deleteRef(question.ref);
      case 'assign':
        return client.assignIssue(question.issue, question.login);
      case 'unassign':
        return client.unassignIssue(question.issue, question.login);
      case 'comment':
        return client.addComment(question.issue, question.body);
      case 'comments':
        return client.listComments(question.issue);
      case 'edit-comment':
        return client.editComment(question.id, question.body);
      case 'is-admin':
        return client.isAdmin();
      case 'pause': {
        const spread = question.spread === true ? 1 + Math.random() / 2 : 1;
        await pause(question.ms * spread, signal, this.clock);
        return { kind: 'ok', value: null };
      }
    }
  }

  async commit(sha: string): Promise<Reply<CommitSeen>> {
    const known = this.#commits.get(sha);
    if (known !== undefined) return { kind: 'ok', value: known };
    const reply = await this.client.getCommit(sha);
    if (reply.kind === 'ok') {
      this.#commits.set(sha, reply.value);
      for (const oldest of this.#commits.keys()) {
        if (this.#commits.size <= MOST_COMMITS) break;
        this.#commits.delete(oldest);
      }
    }
    return reply;
  }
}
