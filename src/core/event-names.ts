/** The names of all events, to check patterns against: a pattern that matches none of them would wait forever. */
import { nearest } from './nearest.ts';
import { shown } from './shown.ts';

export const eventNames = [
  ...named('lock', 'acquired reclaimed denied queued released stale forced downgraded deadlock'),
  ...named('semaphore', 'acquired reclaimed denied queued released stale forced resized drained undrained deadlock'),
  ...named('task', 'published claimed released requeued completed failed'),
  ...named('pipeline', 'started phase blocked resumed done failed cancelling cancelled'),
  ...named('member', 'joined left'),
  ...named('coordinator', 'changed'),
  ...named('topology', 'changed'),
  ...named('guard', 'evaluating passed failed'),
  ...named('witness', 'filling trimmed failed damaged'),
];

const PATTERNS = ['*', ...new Set(eventNames.map((name) => name.replace(/:.*/, ':*'))), ...eventNames];

/** What is wrong with a pattern, and what is accepted; undefined if nothing is. */
export function patternProblem(pattern: unknown, what: string): string | undefined {
  if (typeof pattern === 'string' && PATTERNS.includes(pattern)) return undefined;
  const meant = typeof pattern === 'string' ? nearest(pattern, PATTERNS) : undefined;
  const hint = meant === undefined ? '' : `did you mean ${meant}? `;
  const expected = 'an event such as lock:released, all of a kind such as task:*, or *';
  return `${what} is ${shown(pattern)}; ${hint}${hint === '' ? 'expected' : 'Expected'} ${expected}`;
}

function named(kind: string, words: string): readonly string[] {
  return words.split(' ').map((word) => `${kind}:${word}`);
}
