/** Applies a filter to issues, for trackers that cannot filter themselves. */
import type { IssueFields, IssueSearch } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { TrackedIssue } from './tracker-file.ts';

/** An issue as trackers have it in common: some allow several assignees. */
export type Matchable = Omit<TrackedIssue, 'assignee'> & { readonly assignees: readonly string[] };

export function isSearch(filter: IssueFields | IssueSearch): filter is IssueSearch {
  return 'query' in filter;
}

/** Compares exactly, as the local tracker does. */
export function matcherOf(filter: IssueFields | IssueSearch): (issue: TrackedIssue) => boolean {
  const same = (one: string, other: string): boolean => one === other;
  if (!isSearch(filter))
    return (issue) => hasFields({ ...issue, assignees: [issue.assignee ?? []].flat() }, filter, same);
  const words = wordsOf(filter.query);
  return (issue) => hasWords(issue, words);
}

/** `same` compares labels and people: trackers differ in whether case matters. */
export function hasFields(
  issue: Matchable,
  { labels = [], ids, assignee, status, milestone }: IssueFields,
  same: (one: string, other: string) => boolean,
): boolean {
  return (
    labels.every((label) => issue.labels.some((own) => same(own, label))) &&
    (ids === undefined || ids.some((id) => String(id) === issue.id)) &&
    (assignee === undefined || issue.assignees.some((own) => same(own, assignee))) &&
    (status === undefined || issue.status === status) &&
    (milestone === undefined || issue.milestone === milestone)
  );
}

/**
 * The words of a query, which must all be in the title or in a label; case does not matter. The query language of
 * another tracker is refused: taken as words it would match nothing, and "all of nothing is done" would pass.
 */
function wordsOf(query: string): readonly string[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const odd = words.find((word) => /[:"()]|^-|^(or|and|not)$/.test(word));
  if (words.length === 0 || odd !== undefined) {
    const why =
      odd === undefined
        ? 'it has no words'
        : `it is asked for words in title and labels only, and ${shown(odd)} is more`;
    throw new Failure('invalid', `the local tracker cannot search for ${shown(query)}: ${why}`);
  }
  return words;
}

function hasWords({ title, labels }: Pick<Matchable, 'title' | 'labels'>, words: readonly string[]): boolean {
  const text = [title, ...labels].join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}
