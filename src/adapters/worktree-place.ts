/**
 * Finds a worktree's git directory, and checks that its directory is still the one that git means. A linked worktree
 * and its git directory name each other, but the list of worktrees comes from the git directory alone. So a directory
 * that was moved, deleted, or replaced by another repository is still in the list, and must not be judged by what is
 * there now.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Failure } from '../failure.ts';
import { lineIn } from './foreign-file.ts';
import type { Worktree } from './worktree-list.ts';

/** The git directories of linked worktrees, by the path that git has for each worktree. */
export async function linkedGitDirectories(common: string, signal?: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const all = join(common, 'worktrees');
  const names = await readdir(all).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new Failure('unavailable', `${all} cannot be looked at: ${error.message}`, { cause: error });
  });
  const found = await Promise.all(
    names.map(async (name): Promise<readonly (readonly [string, string])[]> => {
      const link = await lineIn(join(all, name, 'gitdir'), signal);
      return link === undefined ? [] : [[dirname(resolve(all, name, link)), join(all, name)]];
    }),
  );
  return new Map(found.flat());
}

/** Throws unless the directory of the worktree is there and names this git directory. */
export async function checkPlace(worktree: Worktree, gitDirectory: string, signal?: AbortSignal): Promise<void> {
  const { path, isLocked } = worktree;
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) {
    const help = 'if it was deleted, run git worktree prune; if it was moved, git worktree repair with its new path';
    const gone = found.code === 'ENOENT' && !isLocked;
    throw unseen(path, gone ? `it is not there any more: ${help}` : found.message, found);
  }
  const named = await gitDirectoryOf(path, signal);
  if (named === undefined) throw unseen(path, 'it has no .git any more, or one that leads nowhere');
  if (named !== (await realpath(gitDirectory))) throw unseen(path, `it belongs to another repository now, ${named}`);
}

/** The directory to which `.git` leads, behind all links; undefined if it leads nowhere. */
export async function gitDirectoryOf(path: string, signal?: AbortSignal): Promise<string | undefined> {
  const place = join(path, '.git');
  const found = await stat(place).catch(() => undefined);
  if (found === undefined) return undefined;
  if (found.isDirectory()) return realpath(place);
  const [, linked] = /^gitdir: (.*)$/s.exec((await lineIn(await realpath(place), signal)) ?? '') ?? [];
  return linked === undefined ? undefined : realpath(resolve(path, linked)).catch(() => undefined);
}

export function unseen(path: string, why: string, cause?: unknown): Failure {
  return new Failure('unavailable', `the worktree ${path} cannot be looked at: ${why}`, { cause });
}
