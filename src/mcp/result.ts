/**
 * What tools answer. Every result has `status` for programs, `message` for the model and its user, and `next`: what to call
 * next. A lock that is busy is an answer; a hold that was lost, or is another's, is an error.
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { redactedWords } from '../failure.ts';
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

/** The same as structured content and as text, for clients that pass only one of them to the model. */
export function resultOf({ status, message, next, details = {}, isError }: Told): CallToolResult {
  const body = { status, message, next, ...details };
  const text = JSON.stringify(body);
  // What a client gets must be JSON: no undefined fields.
  const structuredContent = JSON.parse(text) as Record<string, unknown>;
  return { content: [{ type: 'text', text }], structuredContent, ...(isError === true && { isError }) };
}

/** Refusals that are answers: the model may simply go on with something else. */
const ANSWERS: readonly Refusal['kind'][] = ['busy', 'full', 'timed-out', 'none', 'taken', 'blocked', 'finished'];

/** What a thrown failure or refusal is told as. Of a bug no more than that there is one. */
export function failureTold(error: unknown): Told {
  const { body } = answerOf(error);
  const { code, detail } = body as { readonly code: string; readonly detail: string };
  if (error instanceof NotAcquired) {
    const { refusal } = error;
    const isAnswer = ANSWERS.includes(refusal.kind);
    const status = refusal.kind === 'timed-out' || refusal.kind === 'full' ? 'busy' : code;
    const details = { resource: error.resource };
    return { ...told(status, detail, afterRefusal(refusal), details), ...(!isAnswer && { isError: true }) };
  }
  const status = code === 'gone' || code === 'hold-lost' ? 'lost' : code;
  return refused(status, redactedWords(detail), NEXT[status] ?? 'Correct the arguments and call again.');
}

const NEXT: Readonly<Record<string, string>> = {
  lost: 'Stop the work that needed it: another holder may have it by now. Call acquire to ask again.',
  'not-owner': 'Change nothing. Call status to see who has it.',
  'wrong-role': 'Ask your user for a token with that role.',
  'foreign-holder': 'Use a holder that this token may act for.',
  unavailable: 'Nothing was done. Try again in a few seconds.',
  closed: 'Nothing was done. The server is stopping; try again in a few seconds.',
  'outcome-unknown': 'It may have been done. Call status and look before you try again.',
  'too-many-requests': 'Wait a second, then call again.',
  internal: 'Tell your user that signalbox has a bug here, and what you called.',
  forbidden: 'Tell your user: the server cannot use its store.',
};

function afterRefusal({ kind }: Refusal): string {
  switch (kind) {
    case 'busy':
    case 'full':
    case 'timed-out':
      return 'Do something else first, or call acquire with a larger waitSeconds to wait in line.';
    case 'none':
      return 'There is nothing to do now. Call claim with waitSeconds to wait for a task.';
    case 'taken':
    case 'blocked':
    case 'finished':
      return 'Claim another task: call claim without a task.';
    case 'missing':
      return 'Check the id with status, or publish the task first.';
    case 'deadlock':
      return 'Release what you hold, so that the others can go on; then ask again, for all in the same order.';
    case 'aborted':
    case 'closed':
    case 'session-lost':
      return 'Nothing is held. Call again.';
    default:
      return 'Nothing is held. Ask for something else.';
  }
}
