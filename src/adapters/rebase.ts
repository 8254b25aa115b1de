/** While a branch is rebased git has detached its worktree from it; but it is that branch that is worked on there. */
import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** The full ref of the branch that is being rebased in a worktree; undefined if none is. */
export async function rebasedIn(worktree: string): Promise<string | undefined> {
  const directory = await gitDirectoryOf(worktree);
  if (directory === undefined) return undefined;
  const names = ['rebase-merge', 'rebase-apply'].map((kind) => textIn(join(directory, kind, 'head-name')));
  return (await Promise.all(names)).find((name) => name !== undefined);
}

/** In a linked worktree `.git` is a file that says where it is. */
async function gitDirectoryOf(worktree: string): Promise<string | undefined> {
  const place = join(worktree, '.git');
  const found = await stat(place).catch(() => undefined);
  if (found?.isDirectory() === true) return place;
  const linked = /^gitdir: (.*)$/m.exec((await textIn(place)) ?? '')?.[1];
  return linked === undefined ? undefined : resolve(worktree, linked);
}

async function textIn(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text?.trim();
}
