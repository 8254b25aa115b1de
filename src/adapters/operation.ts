/**
 * Finds an unfinished operation in a worktree, such as a rebase: git keeps it in files of the worktree's git directory. While
 * a branch is rebased or bisected, git has detached the worktree from it, but the work there still belongs to that branch.
 */
import { join } from 'node:path';
import type { WorktreeOperation } from '../core/index.ts';
import { isThere, lineIn } from './foreign-file.ts';

export interface Operation {
  readonly doing: WorktreeOperation;
  /** The full refs of the branches to which the operation will return. */
  readonly branches: readonly string[];
}

/** The first file that exists names the operation: a rebase that stops at a conflict leaves a CHERRY_PICK_HEAD as well. */
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

/** Undefined if there is no unfinished operation. */
export async function operationIn(gitDirectory: string, signal?: AbortSignal): Promise<Operation | undefined> {
  const found = await Promise.all(SIGNS.map(([file]) => isThere(join(gitDirectory, file))));
  const [, doing] = SIGNS.find((_, place) => found[place] === true) ?? [];
  if (doing === undefined) return undefined;
  const [merging, applying, bisected] = await Promise.all(
    ['rebase-merge/head-name', 'rebase-apply/head-name', 'BISECT_START'].map((file) =>
      lineIn(join(gitDirectory, file), signal),
    ),
  );
  // A bisection writes the short name; if it began at a commit, this is not the name of a branch.
  const begun = bisected === undefined ? undefined : `refs/heads/${bisected.replace(/^refs\/heads\//, '')}`;
  return { doing, branches: [merging, applying, begun].filter((name) => name !== undefined) };
}
