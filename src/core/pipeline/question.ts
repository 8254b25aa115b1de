/**
 * Questions to a person. A pipeline that cannot go on by itself asks one, with a number, and an answer names that number.
 * An answer to any other question is void and changes nothing: it was about something else, and the phase that is asked
 * about now may be one that must not run twice, or must not be left out.
 */
import { type Moment, nextToken } from '../machine.ts';
import type { PipelineRecord } from './record.ts';

/** To run the phase again, or to take it as done. */
export type Choice = 'rerun' | 'skip';

export const CHOICES: readonly Choice[] = ['rerun', 'skip'];

/** Why an answer is void. */
export type VoidAnswer =
  /** The pipeline asks nothing, and has never asked the question that the answer names. */
  | { readonly kind: 'not-asked' }
  /** The question is no longer open. `by` and `choice`: the answer that counted, if it is still known. */
  | { readonly kind: 'answered'; readonly by?: string; readonly choice?: Choice }
  /** The pipeline asks another question. */
  | { readonly kind: 'another-question'; readonly question: number };

/** The number of the question that is open; undefined if there is none. */
export function openQuestion({ blocked }: PipelineRecord): number | undefined {
  return blocked?.on === 'person' ? blocked.question : undefined;
}

/** Undefined if the answer counts. `question`: the one that it names; undefined if none was open to be named. */
export function whyVoid(record: PipelineRecord, question: number | undefined): VoidAnswer | undefined {
  if (question === undefined) return { kind: 'not-asked' };
  const open = openQuestion(record);
  if (open === question) return undefined;
  const { answered } = record;
  if (answered?.question === question) return { kind: 'answered', by: answered.by, choice: answered.choice };
  if (open !== undefined) return { kind: 'another-question', question: open };
  return record.lastQuestion > 0 && question <= record.lastQuestion ? { kind: 'answered' } : { kind: 'not-asked' };
}

/** Numbers are never used again, like tokens: not even by a pipeline of the same id after this one was forgotten. */
export function nextQuestion({ lastQuestion }: PipelineRecord, at: Moment): number {
  return nextToken(lastQuestion, at);
}
