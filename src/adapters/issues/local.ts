/** An issue tracker in a local file. Reading takes no lock, because the file is always replaced as a whole. */
import { resolve } from 'node:path';
import { type IssueFields, type IssueId, type IssueSearch, type IssueStatus, issueStatuses } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { Issues } from '../adapters.ts';
import { matcherOf } from './matching.ts';
import { isStatus, makeFolderOf, readTrackerFile, type TrackedIssue, writeTrackerFile } from './tracker-file.ts';
import { withTurn } from './write-turn.ts';

/** An issue to add. */
export interface NewIssue {
  /** By default the next number. */
  readonly id?: IssueId;
  /** What it is about, in one line. */
  readonly title: string;
  /** Default `todo`. */
  readonly status?: IssueStatus;
  /** Words to find it by. */
  readonly labels?: readonly string[];
  /** Who works on it. */
  readonly assignee?: string | null;
  /** The milestone it belongs to. */
  readonly milestone?: string | null;
}

/** What to change of an issue; the rest stays. */
export type IssueChanges = Partial<Omit<TrackedIssue, 'id'>>;

/** The answer of `add`; an issue that exists is not changed. */
export type AddOutcome = { readonly kind: 'added' | 'exists'; readonly issue: TrackedIssue };
/** The answer of `update`. */
export type UpdateOutcome = { readonly kind: 'updated'; readonly issue: TrackedIssue } | { readonly kind: 'missing' };

/** Issues in a JSON file of this machine. */
export interface Tracker extends Issues {
  /** The file. */
  readonly path: string;
  /** The issues that the filter matches; all of them without one. */
  list(filter?: IssueFields | IssueSearch): Promise<readonly TrackedIssue[]>;
  /** One issue; undefined if there is none. */
  get(id: IssueId): Promise<TrackedIssue | undefined>;
  /** Makes the file if there is none. */
  add(issue: NewIssue, signal?: AbortSignal): Promise<AddOutcome>;
  /** Changes an issue. */
  update(id: IssueId, changes: IssueChanges, signal?: AbortSignal): Promise<UpdateOutcome>;
}

/** Opens a tracker. Nothing is read or made yet. */
export function openTracker(path: string): Tracker {
  const file = resolve(path);

  async function all(): Promise<readonly TrackedIssue[]> {
    const issues = await readTrackerFile(file);
    // A missing tracker must not look like "nothing left to do".
    if (issues === undefined) throw new Failure('not-found', `there are no issues in ${file}: there is no such file`);
    return issues;
  }

  async function list(filter: IssueFields | IssueSearch = {}): Promise<readonly TrackedIssue[]> {
    const isMeant = matcherOf(filter);
    return (await all()).filter(isMeant);
  }

  async function get(id: IssueId): Promise<TrackedIssue | undefined> {
    return (await all()).find((issue) => issue.id === String(id));
  }

  return {
    path: file,
    list,
    get,

    async add(issue, signal) {
      checkIssue(issue);
      await makeFolderOf(file);
      const change = async (): Promise<AddOutcome> => {
        const issues = (await readTrackerFile(file)) ?? [];
        const { id = nextId(issues), ...rest } = issue;
        const added: TrackedIssue = { id: String(id), ...FRESH, ...defined(rest) };
        const same = issues.find(({ id }) => id === added.id);
        if (same !== undefined) return { kind: 'exists', issue: same };
        await writeTrackerFile(file, [...issues, added]);
        return { kind: 'added', issue: added };
      };
      return withTurn(file, change, signal);
    },

    async update(id, changes, signal) {
      checkIssue(changes);
      // Checked before a lock file is made beside a file that does not exist.
      await all();
      const change = async (): Promise<UpdateOutcome> => {
        const issues = await all();
        const before = issues.find((issue) => issue.id === String(id));
        if (before === undefined) return { kind: 'missing' };
        const issue = { ...before, ...defined(changes), id: before.id };
        await writeTrackerFile(
          file,
          issues.map((each) => (each === before ? issue : each)),
        );
        return { kind: 'updated', issue };
      };
      return withTurn(file, change, signal);
    },

    async issues(filter, signal) {
      signal?.throwIfAborted();
      return (await list(filter)).map(({ id, status }) => ({ id, status }));
    },

    async issue(id, signal) {
      signal?.throwIfAborted();
      const found = await get(id);
      return found === undefined ? null : { status: found.status };
    },
  };
}

const FRESH = { title: '', status: 'todo', labels: [], assignee: null, milestone: null } as const;

function nextId(issues: readonly TrackedIssue[]): string {
  const numbers = issues.map(({ id }) => Number(id)).filter(Number.isSafeInteger);
  return String(numbers.reduce((largest, number) => Math.max(largest, number), 0) + 1);
}

function defined<T extends object>(given: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}

/** Checks what is written, because it must be readable again, and JavaScript callers may pass anything. */
function checkIssue({ id, title, status, labels, assignee, milestone }: Partial<NewIssue>): void {
  const check = (isRight: boolean, what: string): void => {
    if (!isRight) throw new Failure('invalid', what);
  };
  const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string';
  check(id === undefined || id !== '', 'an issue needs an id that is not empty');
  check(title === undefined || typeof title === 'string', `${shown(title)} is not a title`);
  check(
    status === undefined || isStatus(status),
    `${shown(status)} is not a status; expected ${issueStatuses.join(', ')}`,
  );
  check(
    labels === undefined || (Array.isArray(labels) && labels.every((label) => typeof label === 'string')),
    `${shown(labels)} is not a list of labels`,
  );
  check(assignee === undefined || isTextOrNull(assignee), `${shown(assignee)} is not an assignee`);
  check(milestone === undefined || isTextOrNull(milestone), `${shown(milestone)} is not a milestone`);
}
