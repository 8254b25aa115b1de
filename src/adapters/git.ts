/**
 * Git, by the `git` on the PATH. A name is that of a branch: `refs/heads/NAME`; where there is none, and the name has a
 * slash, that of a remote-tracking branch, `refs/remotes/NAME`, as it was fetched last. Git only ever sees full
 * refs and object ids, so that no name can be taken for anything else.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Failure, shown } from '../failure.ts';
import type { Git } from './adapters.ts';
import { checkBranchName } from './branch-name.ts';
import { gitEnvironment, QUIET } from './git-environment.ts';
import { type Printed, printedBy } from './program.ts';
import { rebasedIn } from './rebase.ts';
import { parseWorktrees, type Worktree } from './worktree-list.ts';

export interface GitOptions {
  /** The repository, or any directory in it. */
  readonly root: string;
  /** For each call of git; a look may take several. Default 30 s. */
  readonly timeoutMs?: number;
  readonly env?: NodeJS.ProcessEnv;
}

const TIMEOUT_MS = 30_000;
/** Since 2.36 git tells worktrees with NULs between; one that does not know `-z` says so with this. */
const USAGE = 129;

export function realGit({ root, timeoutMs = TIMEOUT_MS, env = process.env }: GitOptions): Git {
  const environment = gitEnvironment(env);

  async function git(args: readonly string[], signal?: AbortSignal, cwd = root): Promise<Printed> {
    const ceiling = cwd === root ? {} : { GIT_CEILING_DIRECTORIES: dirname(cwd) };
    await checkDirectory(cwd);
    return printedBy('git', [...QUIET, ...args], { cwd, env: { ...environment, ...ceiling }, timeoutMs, signal });
  }

  /** The commit that each of these branches is at; nothing for those that do not exist. */
  async function tipsOf(names: readonly string[], signal?: AbortSignal): Promise<ReadonlyMap<string, string>> {
    names.forEach(checkBranchName);
    const refs = names.flatMap(refsOf);
    // A pattern without wildcards is the ref itself, or a directory of refs; those are sorted out below.
    const listed = await git(['for-each-ref', '--format=%(objectname) %(refname)', '--', ...refs], signal);
    checkDone(listed, root);
    const broken = refs.find((ref) => listed.stderr.includes(`broken ref ${ref}\n`));
    if (broken !== undefined) throw new Failure('corrupt', `${root}: ${broken} is broken, says git`);
    const commits = new Map(
      listed.stdout.split('\n').map((line) => [line.slice(line.indexOf(' ') + 1), line.split(' ')[0]]),
    );
    return new Map(
      names.flatMap((name) => {
        const commit = refsOf(name)
          .map((ref) => commits.get(ref))
          .find((found) => found !== undefined);
        return commit === undefined ? [] : [[name, commit] as const];
      }),
    );
  }

  async function listWorktrees(signal?: AbortSignal): Promise<readonly Worktree[]> {
    const listed = await git(['worktree', 'list', '--porcelain', '-z'], signal);
    if (listed.exitCode !== USAGE) {
      checkDone(listed, root);
      return parseWorktrees(listed.stdout, '\0');
    }
    const lines = await git(['worktree', 'list', '--porcelain'], signal);
    checkDone(lines, root);
    return parseWorktrees(lines.stdout, '\n');
  }

  async function isClean(path: string, signal?: AbortSignal): Promise<boolean> {
    const args = ['status', '--porcelain', '--untracked-files=normal', '--ignored=no', '--ignore-submodules=none'];
    const status = await git([...args, '--no-renames', '-z'], signal, path);
    checkDone(status, path);
    // It says so, leaves it out, and ends as if nothing were the matter.
    const [, unseen] = /^warning: (could not open directory .*)$/m.exec(status.stderr) ?? [];
    if (unseen !== undefined) throw new Failure('unavailable', `git in ${path}: ${unseen}`);
    return status.stdout === '';
  }

  return {
    async branch(name, signal) {
      return { exists: (await tipsOf([name], signal)).has(name) };
    },

    async worktrees(branch, signal) {
      checkBranchName(branch);
      const ref = `refs/heads/${branch}`;
      const found = await Promise.all(
        (await listWorktrees(signal)).map(async (worktree) => {
          const isRebased = worktree.branch === undefined && (await rebasedIn(worktree.path)) === ref;
          if (worktree.branch !== ref && !isRebased) return [];
          if (!(await isThere(worktree))) return [];
          return [{ path: worktree.path, clean: !isRebased && (await isClean(worktree.path, signal)) }];
        }),
      );
      return found.flat();
    },

    async merged(branch, into, signal) {
      const tips = await tipsOf([branch, into], signal);
      const missing = [...new Set([branch, into])].filter((name) => !tips.has(name));
      if (missing.length > 0) return { missing };
      const commits = [branch, into].map((name) => tips.get(name) as string);
      const asked = await git(['merge-base', '--is-ancestor', ...commits], signal);
      if (asked.exitCode === 0) return { merged: true };
      if (asked.exitCode !== 1) checkDone(asked, root);
      checkWhole(await git(['rev-parse', '--is-shallow-repository'], signal), root);
      return { merged: false };
    },
  };
}

function refsOf(name: string): readonly string[] {
  return name.includes('/') ? [`refs/heads/${name}`, `refs/remotes/${name}`] : [`refs/heads/${name}`];
}

/** One whose directory was deleted has nothing uncommitted; but a locked one may lie on a disk that is not there now. */
async function isThere({ path, isLocked }: Worktree): Promise<boolean> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error)) return true;
  if (found.code === 'ENOENT' && !isLocked) return false;
  throw new Failure('unavailable', `the worktree ${path} cannot be looked at: ${found.message}`, { cause: found });
}

/** Otherwise it would be the program that is said to be missing. */
async function checkDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: Error) => error);
  if (found instanceof Error) throw new Failure('unavailable', `${path}: ${found.message}`, { cause: found });
  if (!found.isDirectory()) throw new Failure('invalid', `${path} is not a directory`);
}

function checkDone({ exitCode, stderr }: Printed, where: string): void {
  if (exitCode === 0) return;
  const said = stderr.split('\n').find((line) => /^(fatal|error): /.test(line)) ?? stderr.trim().split('\n')[0] ?? '';
  throw new Failure(
    'unavailable',
    `git in ${where}: ${said === '' ? `exit code ${exitCode}` : said.replace(/^fatal: /, '')}`,
  );
}

/** Where history was cut off, a commit may seem not to be an ancestor only because nobody can see it. */
function checkWhole(asked: Printed, root: string): void {
  checkDone(asked, root);
  if (asked.stdout.trim() !== 'true') return;
  throw new Failure(
    'unavailable',
    `${shown(root)} is a shallow clone: its history does not tell what was merged; git fetch --unshallow`,
  );
}
