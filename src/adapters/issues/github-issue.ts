/** Reads the fields of GitHub's issues that matter here. */
import type { IssueStatus } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Matchable } from './matching.ts';

export interface StatusLabels {
  readonly blocked: string;
  readonly inProgress: string;
}

/** Undefined for a pull request, which GitHub counts among the issues. */
export function issueIn(item: unknown, labels: StatusLabels): Matchable | undefined {
  const { number, title, state, milestone, pull_request: pull, ...lists } = objectIn(item);
  if (pull !== undefined && pull !== null) return undefined;
  if (!Number.isSafeInteger(number) || (state !== 'open' && state !== 'closed')) throw strange();
  const own = listOf(lists['labels']).map((label) => (typeof label === 'string' ? label : textIn(label, 'name')));
  return {
    id: String(number),
    title: typeof title === 'string' ? title : '',
    status: statusOf(state, own, labels),
    labels: own,
    assignees: listOf(lists['assignees']).map((user) => textIn(user, 'login')),
    milestone: milestone === null || milestone === undefined ? null : textIn(milestone, 'title'),
  };
}

function statusOf(
  state: 'open' | 'closed',
  own: readonly string[],
  { blocked, inProgress }: StatusLabels,
): IssueStatus {
  if (state === 'closed') return 'done';
  if (own.some((label) => sameInAnyCase(label, blocked))) return 'blocked';
  return own.some((label) => sameInAnyCase(label, inProgress)) ? 'in-progress' : 'todo';
}

/** Compares as GitHub compares labels and the names of people. */
export function sameInAnyCase(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

export function listIn(body: unknown): readonly Record<string, unknown>[] {
  if (!Array.isArray(body)) throw strange();
  return body.map(objectIn);
}

export function objectIn(body: unknown): Record<string, unknown> {
  if (typeof body !== 'object' || body === null) throw strange();
  return body as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textIn(body: unknown, key: string): string {
  const value = objectIn(body)[key];
  return typeof value === 'string' ? value : '';
}

function strange(): Failure {
  return new Failure('unavailable', "GitHub's answer is not what its API says; is that address its API?");
}
