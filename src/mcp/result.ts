/**
 * The answers of tools. Every result has `status` for programs, `message` for the model and its user, and `next`: what to call
 * next. A busy lock is an answer; a hold that was lost, or belongs to another holder, is an error.
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { type FailureCode, redactedWords } from '../failure.ts';
import { NotAcquired, type Refusal } from '../runtime/refusal.ts';
import { answerOf } from '../server/problem.ts';

export interface Told {
  readonly status: string;
  readonly message: string;
  readonly next: string;
  readonly isError?: true;
  /** Further fields of the answer. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export const NOTHING_NEXT = 'Nothing.';

export function told(status: string, message: string, next: string, details: Told['details'] = {}): Told {
  return { status, message, next, details };
}

export function refused(status: string, message: string, next: string, details: Told['details'] = {}): Told {
  return { status, message, next, details, isError: true };
}

/** Tolerates the moment that passed since a time was measured. */
const MOMENT_MS = 50;

/** `45 s`, `10 minutes`: rounded down, so that it never promises too much time. */
export function spoken(ms: number): string {
  const seconds = Math.floor((ms + MOMENT_MS) / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} minutes` : `${Math.floor(minutes / 60)} hours`;
}

/** How to call a tool, as text. */
export function calling(toolName: string, input: Readonly<Record<string, unknown>>): string {
  return `${toolName} ${JSON.stringify(input)}`;
}

/** Repeats the structured content as text, for clients that pass only one of them to the model. */
export function resultOf({ status, message, next, details = {}, isError }: Told): CallToolResult {
  const body = { status, message, next, ...details };
  const text = JSON.stringify(body);
  // A client must get JSON, which has no undefined fields.
  const structuredContent = JSON.parse(text) as Record<string, unknown>;
  return { content: [{ type: 'text', text }], structuredContent, ...(isError === true && { isError }) };
}

/** Turns a thrown failure or refusal into an answer. A bug is reported without its details, which may be secret. */
export function failureTold(error: unknown): Told {
  const { body } = answerOf(error);
  const { code, detail } = body as { readonly code: string; readonly detail: string };
  if (error instanceof NotAcquired) {
    const { resource, refusal } = error;
    const { status = refusal.kind, next, isError } = AFTER_REFUSAL[refusal.kind];
    return { ...told(status, detail, next, { resource }), ...(isError === true && { isError }) };
  }
  const status = code === 'gone' || code === 'hold-lost' ? 'lost' : code;
  const next = Object.hasOwn(AFTER, status)
    ? AFTER[status as keyof typeof AFTER]
    : 'Correct the arguments and call again.';
  return refused(status, redactedWords(detail), next);
}

interface After {
  /** The status for this refusal, if it differs from its kind. */
  readonly status?: string;
  readonly next: string;
  /** Absent if the refusal is just an answer, and the model may go on with something else. */
  readonly isError?: true;
}

const WAIT_OR_LEAVE = 'Do something else first, or call acquire with a larger waitSeconds to wait in line.';
const AGAIN = 'Nothing is held. Call again.';
const ANOTHER_TASK = 'Claim another task: call claim without a task.';

const AFTER_REFUSAL = {
  busy: { next: WAIT_OR_LEAVE },
  full: { status: 'busy', next: WAIT_OR_LEAVE },
  'timed-out': { status: 'busy', next: WAIT_OR_LEAVE },
  none: { next: 'There is nothing to do now. Call claim with waitSeconds to wait for a task.' },
  taken: { next: ANOTHER_TASK },
  blocked: { next: ANOTHER_TASK },
  finished: { next: ANOTHER_TASK },
  unfit: { next: ANOTHER_TASK },
  missing: { next: 'Check the id with status, or publish the task first.', isError: true },
  deadlock: {
    next: 'Release what you hold, so that the others can go on; then ask again, always in the same order.',
    isError: true,
  },
  'upgrade-conflict': { next: 'Release your shared hold, then acquire it exclusively.', isError: true },
  'too-large': { next: 'Nothing is held. Ask with a shorter reason.', isError: true },
  impossible: { next: 'Nothing is held. Ask for fewer slots.', isError: true },
  'capacity-mismatch': { next: 'Nothing is held. Ask without capacity, or name the right one.', isError: true },
  lost: { next: AGAIN, isError: true },
  aborted: { next: AGAIN, isError: true },
  closed: { next: AGAIN, isError: true },
  'session-lost': { next: AGAIN, isError: true },
} satisfies Record<Refusal['kind'], After> as Readonly<Record<Refusal['kind'], After>>;

export const STOP = 'Stop the work that needed it: another holder may have it by now. Call acquire to ask again.';

const AFTER = {
  lost: STOP,
  'not-owner': 'Change nothing. Call status to see who has it.',
  'wrong-role': 'Ask your user for a token with that role.',
  'foreign-holder': 'Use a holder that this token may act for.',
  'commands-off': 'Check a condition without a command.',
  internal: 'Tell your user that signalbox has a bug here, and what you called.',
  'too-many-requests': 'Wait a second, then call again.',
  invalid: 'Correct the arguments and call again.',
  unavailable: 'Nothing was done. Try again in a few seconds.',
  // The server stops, or its store was removed, replaced or restored; the message says which.
  closed: 'Nothing was done. Try again in a few seconds; if it fails again, ask your user to start signalbox again.',
  'outcome-unknown': 'It may have been done. Call status and look before you try again.',
  corrupt: 'Tell your user: signalbox doctor says more.',
  inconsistent: 'Tell your user: signalbox doctor says more.',
  compacted: 'Call again.',
  'not-found': 'Call again.',
  forbidden: 'Tell your user: the server cannot use its store.',
  'not-acquired': AGAIN,
  'hold-lost': STOP,
} satisfies Record<FailureCode, string> & Record<string, string>;
