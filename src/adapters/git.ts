/**
 * Git, by the `git` on the PATH. A name is that of a branch: `refs/heads/NAME`; where there is none, and the name has a
 * slash, that of a remote-tracking branch, `refs/remotes/NAME`, as it was fetched last. Git only ever sees full
 * refs and object ids, so that no name can be taken for anything else.
 *
 * One time limit covers a whole inspection: every call of git and every file. If git prints an `error:` on stderr, its exit
 * code is not taken as an answer.
 */
import { resolve } from 'node:path';
import { Failure, shown } from '../failure.ts';
import type { Git } from './adapters.ts';
import { checkBranchName } from './branch-name.ts';
import { within } from './deadline.ts';
import { isThere } from './foreign-file.ts';
import { gitEnvironment } from '../host/index.ts';
import { GitLook } from './git-look.ts';

export interface GitOptions {
  /** The repository, or any directory in it. */
  readonly root: string;
  /** Time limit of one inspection, for all calls of git together. Default 30 s. */
  readonly timeoutMs?: number;
  readonly env?: NodeJS.ProcessEnv;
}

const TIMEOUT_MS = 30_000;

export function realGit({ root, timeoutMs = TIMEOUT_MS, env = process.env }: GitOptions): Git {
  const environment = gitEnvironment(env);
  const look = <T>(signal: AbortSignal | undefined, work: (look: GitLook) => Promise<T>): Promise<T> =>
    within(timeoutMs, 'git', signal, (over) => work(new GitLook(root, environment, over)));

  return {
    async branch(name, signal) {
      checkBranchName(name);
      return look(signal, async (git) => ({ exists: (await git.tipsOf([name])).has(name) }));
    },

    async worktrees(branch, signal) {
      checkBranchName(branch);
      return look(signal, async (git) => {
        const tip = (await git.tipsOf([branch])).get(branch);
        return tip === undefined ? null : git.worktreesAt(tip);
      });
    },

    async worktree(path, signal) {
      if (path === '' || path.includes('\0')) throw new Failure('invalid', `${shown(path)} is not a path`);
      return look(signal, async (git) => {
        const directory = resolve(root, path);
        return (await isThere(directory)) ? git.worktreeAround(directory) : null;
      });
    },

    async merged(branch, into, signal) {
      [branch, into].forEach(checkBranchName);
      return look(signal, async (git) => {
        const tips = await git.tipsOf([branch, into]);
        const [one, other] = [tips.get(branch), tips.get(into)];
        if (one !== undefined && other !== undefined) return { merged: await git.isAncestor(one, other) };
        return { missing: [...new Set([branch, into])].filter((name) => !tips.has(name)) };
      });
    },
  };
}
