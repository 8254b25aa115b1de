/**
 * The questions that the lock protocol asks GitHub, and the answers that it understands.
 *
 *     procedure ──questions──▶ driver ──requests──▶ GitHub
 *     procedure ◀──answers──── driver ◀──responses─ GitHub
 *
 * A procedure is a generator: it yields questions that may be sent together, and goes on with their answers. It knows
 * no clock; each answer carries the moments at which its request was sent and answered. So the driver, the simulator
 * and the tests run the same decisions.
 */

/** A moment on the clocks of one machine. */
export interface Instant {
  readonly monotonicMs: number;
  /** Read from a clock that goes on while the machine is suspended. */
  readonly wallMs: number;
}

/** GitHub did what it was asked, or said why not. `unknown`: it may have done it. */
export type Reply<Value> = {
  /** The server's time, from its `Date` header. Absent if no answer came. */
  readonly date?: { readonly ms: number; readonly iso: string };
} & (
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'missing'; readonly message: string }
  /** The token may not do this. */
  | { readonly kind: 'denied'; readonly message: string }
  /** A rate limit, primary or secondary. */
  | { readonly kind: 'limited'; readonly waitMs: number; readonly message: string }
  /** 409, 422 and all other refusals. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** No answer, or a broken one (5xx). */
  | { readonly kind: 'unknown'; readonly message: string }
);

/** A reply, and when its question was sent and answered. */
export type Answer<Value> = Reply<Value> & { readonly sent: Instant; readonly at: Instant };

/** An issue. */
export interface IssueSeen {
  /** Whether it is open. */
  readonly isOpen: boolean;
  /** The accounts that it is assigned to. */
  readonly assignees: readonly string[];
}

/** A commit. */
export interface CommitSeen {
  /** Its name. */
  readonly sha: string;
  /** Its message. */
  readonly message: string;
  /** The commits before it. */
  readonly parents: readonly string[];
  /** The committer's date, which the server sets. */
  readonly dateMs: number;
}

/** A comment on an issue. */
export interface CommentSeen {
  /** Its id. */
  readonly id: number;
  /** Its text. */
  readonly body: string;
}

/** A ref. */
export interface RefSeen {
  /** Its name. */
  readonly ref: string;
  /** The commit that it points at. */
  readonly sha: string;
}

/** `from` is null for a ref that must not exist yet; `to` is null to delete it. */
export interface RefMove {
  /** The ref. */
  readonly ref: string;
  /** The commit it is expected at. */
  readonly from: string | null;
  /** The commit it moves to. */
  readonly to: string | null;
}

interface Asked {
  readonly issue: { readonly question: { readonly issue: number }; readonly value: IssueSeen };
  readonly ref: { readonly question: { readonly ref: string }; readonly value: RefSeen };
  readonly refs: { readonly question: { readonly prefix: string }; readonly value: readonly RefSeen[] };
  readonly commit: { readonly question: { readonly sha: string }; readonly value: CommitSeen };
  readonly 'make-commit': {
    readonly question: { readonly message: string; readonly parents: readonly string[] };
    readonly value: { readonly sha: string; readonly dateMs: number };
  };
  readonly 'make-ref': { readonly question: { readonly ref: string; readonly sha: string }; readonly value: null };
  /** Moves forward only, to a descendant. */
  readonly 'move-ref': { readonly question: { readonly ref: string; readonly sha: string }; readonly value: null };
  /** Moves all of these refs, each from its `from`, or none. */
  readonly 'move-refs': { readonly question: { readonly moves: readonly RefMove[] }; readonly value: null };
  /** Only ever a ticket: its name is used once. */
  readonly 'delete-ref': { readonly question: { readonly ref: string }; readonly value: null };
  readonly assign: {
    readonly question: { readonly issue: number; readonly login: string };
    /** GitHub drops those who may not be assigned, without an error. */
    readonly value: { readonly assignees: readonly string[] };
  };
  readonly unassign: { readonly question: { readonly issue: number; readonly login: string }; readonly value: null };
  readonly comment: {
    readonly question: { readonly issue: number; readonly body: string };
    readonly value: { readonly id: number };
  };
  readonly comments: { readonly question: { readonly issue: number }; readonly value: readonly CommentSeen[] };
  readonly 'edit-comment': { readonly question: { readonly id: number; readonly body: string }; readonly value: null };
  readonly 'is-admin': { readonly question: object; readonly value: boolean };
  /** Asks the driver, not GitHub, to go on after this time. `spread`: up to half of it more, by chance. */
  readonly pause: { readonly question: { readonly ms: number; readonly spread?: boolean }; readonly value: null };
}

export type Ask = keyof Asked;
export type QuestionOf<Kind extends Ask> = { readonly [K in Kind]: { readonly ask: K } & Asked[K]['question'] }[Kind];
export type Question = QuestionOf<Ask>;
export type AnswerTo<Kind extends Ask> = Answer<Asked[Kind]['value']>;

/** What is decided step by step, with GitHub's answers in between. */
export type Procedure<Result> = Generator<readonly Question[], Result, readonly Answer<unknown>[]>;

/** Asks one question. */
export function* ask<Kind extends Ask>(question: QuestionOf<Kind>): Procedure<AnswerTo<Kind>> {
  const [answer] = yield [question as Question];
  return answer as AnswerTo<Kind>;
}

/** Asks several questions at once. */
export function* askAll<Kind extends Ask>(
  questions: readonly QuestionOf<Kind>[],
): Procedure<readonly AnswerTo<Kind>[]> {
  if (questions.length === 0) return [];
  return (yield questions as readonly Question[]) as readonly AnswerTo<Kind>[];
}

export function* pause(ms: number, spread = false): Procedure<Instant> {
  const { at } = yield* ask({ ask: 'pause', ms, spread });
  return at;
}

/** Whether a moment has come, by the clock that is further on: the monotonic one may stand still in suspend. */
export function isPast(deadline: Instant, at: Instant): boolean {
  return at.monotonicMs >= deadline.monotonicMs || at.wallMs >= deadline.wallMs;
}

export function later(at: Instant, ms: number): Instant {
  return { monotonicMs: at.monotonicMs + ms, wallMs: at.wallMs + ms };
}
