/**
 * The file of a local tracker.
 *
 *     { "version": 1, "issues": [{ "id": "7", "title": "…", "status": "todo", "labels": [], "assignee": null, "milestone": null }] }
 *
 * People and other programs may write it too: only `id`, `title` and `status` must be there, ids may be numbers, and
 * fields that are not ours are kept. Any other file is refused and never overwritten.
 */
import { mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isRecord, issueStatuses, type IssueStatus } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { randomHex } from '../../host/index.ts';
import { readForeign } from '../foreign-file.ts';
import { textOf } from '../text.ts';

/** An issue in a file of this machine. */
export interface TrackedIssue {
  /** Its id. */
  readonly id: string;
  /** What it is about, in one line. */
  readonly title: string;
  /** How far it is. */
  readonly status: IssueStatus;
  /** Words to find it by. */
  readonly labels: readonly string[];
  /** Who works on it. */
  readonly assignee: string | null;
  /** The milestone it belongs to. */
  readonly milestone: string | null;
}

const LIMIT_BYTES = 64 * 1024 * 1024;
const VERSION = 1;

/** Undefined if there is no such file. */
export async function readTrackerFile(path: string): Promise<readonly TrackedIssue[] | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readForeign(await realpath(path), { name: path, limitBytes: LIMIT_BYTES });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (cause instanceof Failure) throw damaged(path, message);
    if (code === 'ENOENT') return undefined;
    throw new Failure('unavailable', `the issues in ${path} cannot be read: ${message}`, { cause });
  }
  return issuesIn(textOf(bytes, path), path);
}

export function issuesIn(text: string, path: string): readonly TrackedIssue[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw damaged(path, `it is not JSON: ${(error as Error).message}`);
  }
  if (!isRecord(content) || !Array.isArray(content['issues'])) throw damaged(path, 'it has no list of "issues"');
  const { version } = content;
  if (typeof version !== 'number') throw damaged(path, 'it has no "version"');
  if (version !== VERSION)
    throw damaged(path, `it is of version ${version}, but this signalbox reads version ${VERSION}`);
  const issues = content['issues'].map((issue: unknown, place) => issueOf(issue, place, path));
  const ids = new Set<string>();
  for (const { id } of issues) {
    if (ids.has(id)) throw damaged(path, `it has two issues ${shown(id)}`);
    ids.add(id);
  }
  return issues;
}

function issueOf(issue: unknown, place: number, path: string): TrackedIssue {
  const bad = (what: string): Failure => damaged(path, `issue number ${place + 1} in it ${what}`);
  if (!isRecord(issue)) throw bad('is not an object');
  const { id, title, status, labels = [], assignee = null, milestone = null } = issue;
  const isId = (typeof id === 'string' && id !== '') || Number.isSafeInteger(id);
  if (!isId) throw bad('has no "id"');
  if (typeof title !== 'string') throw bad('has no "title"');
  if (!isStatus(status)) throw bad(`has the "status" ${shown(status)}, not one of ${issueStatuses.join(', ')}`);
  if (!Array.isArray(labels) || !labels.every(isText)) throw bad('has "labels" that are not a list of texts');
  if (assignee !== null && !isText(assignee)) throw bad('has an "assignee" that is not text');
  if (milestone !== null && !isText(milestone)) throw bad('has a "milestone" that is not text');
  return { ...issue, id: String(id), title, status, labels, assignee, milestone };
}

/** Writes all of it or nothing, even if the machine loses power. The caller must have the turn to write. */
export async function writeTrackerFile(path: string, issues: readonly TrackedIssue[]): Promise<void> {
  // A link must stay a link.
  const real = await realpath(path).catch(() => path);
  const folder = dirname(real);
  const temporary = join(folder, `${prefixOf(real)}${randomHex(6)}`);
  const before = await stat(real).catch(() => undefined);
  try {
    const file = await open(temporary, 'wx');
    try {
      await file.writeFile(`${JSON.stringify({ version: VERSION, issues }, null, 2)}\n`);
      if (before !== undefined) await file.chmod(before.mode & 0o777);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, real);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw new Failure('unavailable', `the issues in ${path} cannot be written: ${(cause as Error).message}`, { cause });
  }
  await syncFolder(folder);
  await removeLeftOvers(real);
}

export async function makeFolderOf(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
}

const prefixOf = (path: string): string => `.${basename(path)}.new-`;

/** Removes the files of writers that died before they finished. */
async function removeLeftOvers(path: string): Promise<void> {
  const folder = dirname(path);
  const names = await readdir(folder);
  const left = names.filter((name) => name.startsWith(prefixOf(path)));
  await Promise.all(left.map((name) => rm(join(folder, name), { force: true })));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  // Some file systems cannot sync a folder; the rename then reaches the disk a little later.
  await folder.sync().catch(() => undefined);
  await folder.close();
}

export function isStatus(value: unknown): value is IssueStatus {
  return issueStatuses.some((status) => status === value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function damaged(path: string, what: string): Failure {
  return new Failure('corrupt', `${path} is not a tracker's file: ${what}`);
}
