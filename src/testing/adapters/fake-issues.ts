/** A tracker in memory that searches like the local tracker. */
import type { Issues, TrackedIssue } from '../../adapters/index.ts';
import { matcherOf } from '../../adapters/issues/matching.ts';
import type { InputValues, IssueFields, IssueId, IssueSearch, IssueStatus } from '../../core/index.ts';
import { Fake } from './fake.ts';

/** An issue that exists only in a test. */
export type FakeIssue = { readonly id: IssueId } & Partial<Omit<TrackedIssue, 'id'>>;

/** A tracker that exists only in a test. */
export class FakeIssues extends Fake implements Issues {
  readonly #issues = new Map<string, TrackedIssue>();

  /** Begins with these issues. */
  constructor(issues: readonly FakeIssue[] = []) {
    super();
    for (const issue of issues) this.set(issue);
  }

  /** Makes the issue, or changes the given fields. */
  set({ id, ...fields }: FakeIssue): void {
    const before = this.#issues.get(String(id)) ?? FRESH;
    this.#issues.set(String(id), { ...before, ...fields, id: String(id) });
  }

  /** Changes the status of an issue. */
  setStatus(id: IssueId, status: IssueStatus): void {
    this.set({ id, status });
  }

  /** Removes an issue. */
  remove(id: IssueId): void {
    this.#issues.delete(String(id));
  }

  /** The issues that the filter matches. */
  issues(filter: IssueFields | IssueSearch, signal?: AbortSignal): Promise<InputValues['issues']> {
    return this.answer(['issues', filter], signal, () =>
      [...this.#issues.values()].filter(matcherOf(filter)).map(({ id, status }) => ({ id, status })),
    );
  }

  /** One issue; null if there is none. */
  issue(id: string, signal?: AbortSignal): Promise<InputValues['issue']> {
    return this.answer(['issue', id], signal, () => {
      const found = this.#issues.get(id);
      return found === undefined ? null : { status: found.status };
    });
  }
}

const FRESH = { title: '', status: 'todo', labels: [], assignee: null, milestone: null } as const;
