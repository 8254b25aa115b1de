/** Runs a procedure of the core: asks GitHub its questions, and returns the answers with their times. */
import { type Clock, pause } from '../clock.ts';
import type { Answer, Ask, CommitSeen, Instant, Procedure, Question, QuestionOf, Reply } from '../core/github/index.ts';
import type { GitHubClient } from './client.ts';

/** Thrown by `drive` once its signal aborts. No request is under way then. */
export class Aborted extends Error {}

const MOST_COMMITS = 1_000;

type Requests = {
  readonly [Kind in Exclude<Ask, 'commit' | 'pause'>]: (
    client: GitHubClient,
    question: QuestionOf<Kind>,
  ) => Promise<Reply<unknown>>;
};

/** The request that answers each question. */
const REQUESTS: Requests = {
  issue: (client, { issue }) => client.getIssue(issue),
  ref: (client, { ref }) => client.getRef(ref),
  refs: (client, { prefix }) => client.listRefs(prefix),
  'make-commit': (client, { message, parents }) => client.createCommit(message, parents),
  'make-ref': (client, { ref, sha }) => client.createRef(ref, sha),
  'move-ref': (client, { ref, sha }) => client.updateRef(ref, sha),
  'move-refs': (client, { moves }) => client.updateRefs(moves),
  'delete-ref': (client, { ref }) => client.deleteRef(ref),
  assign: (client, { issue, login }) => client.assignIssue(issue, login),
  unassign: (client, { issue, login }) => client.unassignIssue(issue, login),
  comment: (client, { issue, body }) => client.addComment(issue, body),
  comments: (client, { issue }) => client.listComments(issue),
  'edit-comment': (client, { id, body }) => client.editComment(id, body),
  'is-admin': (client) => client.isAdmin(),
};

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

  #send(question: Question, signal: AbortSignal | undefined): Promise<Reply<unknown>> {
    if (question.ask === 'commit') return this.commit(question.sha);
    if (question.ask === 'pause') return this.#pause(question, signal);
    const send = REQUESTS[question.ask] as (client: GitHubClient, asked: Question) => Promise<Reply<unknown>>;
    return send(this.client, question);
  }

  async #pause({ ms, spread }: QuestionOf<'pause'>, signal: AbortSignal | undefined): Promise<Reply<null>> {
    await pause(ms * (spread === true ? 1 + Math.random() / 2 : 1), signal, this.clock);
    return { kind: 'ok', value: null };
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
