/**
 * What somebody has begun in a worktree and not finished: git keeps it in files of the worktree's git directory. While a
 * branch is rebased or bisected git has detached the worktree from it, but it is that branch that is worked on there.
 */
import { join } from 'node:path';
import type { WorktreeOperation } from '../core/index.ts';
import { isThere, lineIn } from './foreign-file.ts';

export interface Operation {
  readonly doing: WorktreeOperation;
  /** The full refs of the branches that will be gone back to. */
  readonly branches: readonly string[];
}

/** The first that is there names what is going on: a rebase that stops at a conflict leaves a CHERRY_PICK_HEAD as well. */
const SIGNS: readonly (readonly [file: string, doing: WorktreeOperation])[] = [
  ['rebase-merge', 'rebase'],
  ['rebase-apply/applying', 'am'],
  ['rebase-apply', 'rebase'],
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
  // Several commits are picked or reverted, and the next one has not been begun.
  ['sequencer', 'cherry-pick'],
  ['BISECT_LOG', 'bisect'],
];

/** Undefined if nothing is going on. */
export async function operationIn(gitDirectory: string, signal?: AbortSignal): Promise<Operation | undefined> {
  const found = await Promise.all(SIGNS.map(([file]) => isThere(join(gitDirectory, file))));
  const [, doing] = SIGNS.find((_, place) => found[place] === true) ?? [];
  if (doing === undefined) return undefined;
  const [merging, applying, bisected] = await Promise.all(
    ['rebase-merge/head-name', 'rebase-apply/head-name', 'BISECT_START'].map((file) =>
      lineIn(join(gitDirectory, file), signal),
    ),
  );
  // A bisection writes the short name; where it began at a commit, this is no branch's.
  const begun = bisected === undefined ? undefined : `refs/heads/${bisected.replace(/^refs\/heads\//, '')}`;
  return { doing, branches: [merging, applying, begun].filter((name) => name !== undefined) };
}
