// What the contract of git does not say: what is not a branch, who else has set up git, and where it cannot tell.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Git, localAdapters } from 'signalbox';
import { Repository } from '../support/repository.ts';
import { ODD_NAMES } from './contract.ts';

let repository: Repository;
let git: Git;

beforeEach(() => {
  repository = new Repository();
  git = localAdapters(repository).git;
});

afterEach(() => repository.remove());

/** A program by the name of git in front of the real one. */
function shadowed(script: string): NodeJS.ProcessEnv {
  const bin = join(repository.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { ...repository.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
}

it('a directory that git may not open is an error, and not a clean worktree', async () => {
  const env =
    shadowed(`case "$*" in *" status "*) echo "warning: could not open directory 'secret/': Permission denied" >&2; esac
PATH="\${PATH#*:}" exec git "$@"`);
  await expect(localAdapters({ root: repository.root, env }).git.worktrees('main')).rejects.toThrow(
    "could not open directory 'secret/': Permission denied",
  );
});

describe('a name', () => {
  it('is what git itself takes for one', () => {
    const all = [
      ...ODD_NAMES.filter((name) => !name.includes('\0')),
      'main',
      'feature/x',
      'a-b_c.d',
      'ünï',
      'a@b',
      '{a}',
      '$(x)',
      "'",
      'a;b',
      '%',
    ];
    const accepts = (name: string): boolean => {
      try {
        repository.git('check-ref-format', `refs/heads/${name}`);
        return !name.startsWith('-') && name !== 'HEAD';
      } catch {
        return false;
      }
    };
    const refused = new Set(ODD_NAMES);
    // Half a character cannot be passed to git at all, and "@" alone git refuses only as a short name.
    const told = all.filter((name) => name !== '\ud800' && name !== '@');
    expect(told.filter(accepts)).toEqual(told.filter((name) => !refused.has(name)));
  });

  it('that is none reaches no git', async () => {
    const marker = join(repository.folder, 'was-run');
    const { root } = repository;
    const watched = localAdapters({ root, env: shadowed(`touch '${marker}'; exit 1`) }).git;
    for (const name of ODD_NAMES) {
      await expect(watched.branch(name)).rejects.toMatchObject({ code: 'invalid' });
      await expect(watched.worktrees(name)).rejects.toMatchObject({ code: 'invalid' });
      await expect(watched.merged(name, name)).rejects.toMatchObject({ code: 'invalid' });
    }
    expect(existsSync(marker)).toBe(false);
    await expect(watched.branch('main')).rejects.toMatchObject({ code: 'unavailable' });
    expect(existsSync(marker)).toBe(true);
  });

  it('with every sign that shells and git might mind is a branch like any other', async () => {
    for (const name of [
      '$(touch x)'.replace(' ', '+'),
      "it's",
      'a;b',
      'a&b',
      '{a,b}',
      'ünï',
      '%s',
      '#1',
      '!',
      'a@b',
      'x'.repeat(200),
    ]) {
      expect(await git.branch(name), name).toEqual({ exists: false });
      repository.git('branch', name);
      expect(await git.branch(name), name).toEqual({ exists: true });
      expect(await git.merged(name, 'main'), name).toEqual({ merged: true });
    }
  });

  it('is neither that of a tag nor that of a commit', async () => {
    repository.git('tag', 'v1');
    expect(await git.branch('v1')).toEqual({ exists: false });
    expect(await git.branch(repository.git('rev-parse', 'HEAD').trim())).toEqual({ exists: false });
    expect(await git.branch('refs/heads/main')).toEqual({ exists: false });
    expect(await git.branch('heads/main')).toEqual({ exists: false });
    expect(await git.merged('v1', 'main')).toEqual({ missing: ['v1'] });
  });

  it('may be that of a remote-tracking branch, but a local branch comes first', async () => {
    const clone = join(repository.folder, 'clone');
    repository.git('clone', '-q', repository.root, clone);
    const inClone = localAdapters({ root: clone, env: repository.env }).git;
    expect(await inClone.branch('origin/main')).toEqual({ exists: true });
    expect(await inClone.merged('main', 'origin/main')).toEqual({ merged: true });
    expect(await inClone.worktrees('origin/main')).toEqual([]);
    repository.commit('later');
    repository.gitIn(clone, 'fetch', '-q');
    expect(await inClone.merged('origin/main', 'main')).toEqual({ merged: false });
    repository.gitIn(clone, 'branch', 'origin/main', 'main');
    expect(await inClone.merged('origin/main', 'main')).toEqual({ merged: true });
  });
});

describe('a worktree', () => {
  const clean = async (): Promise<boolean | undefined> => (await git.worktrees('main'))?.[0]?.clean;

  it('is not clean with changes, staged or not, and with untracked files; ignored ones do not count', async () => {
    repository.write('.gitignore', '*.log\n');
    repository.git('add', '.');
    expect(await clean()).toBe(false);
    repository.git('commit', '-q', '-m', 'ignore');
    repository.write('build.log', 'x');
    expect(await clean()).toBe(true);
    repository.write('README', 'changed');
    expect(await clean()).toBe(false);
    repository.git('checkout', '-q', 'README');
    repository.write('new/deep/file', 'x');
    repository.git('config', 'status.showUntrackedFiles', 'no');
    expect(await clean()).toBe(false);
  });

  it('is found whatever its path, and every one of them where the branch was checked out by force', async () => {
    repository.git('branch', 'work');
    const odd = repository.addWorktree('a "b"\nc ünï', 'work');
    const second = join(repository.folder, 'second');
    repository.git('worktree', 'add', '-q', '--force', second, 'work');
    repository.write('x', 'x', odd);
    const found = await git.worktrees('work');
    expect(found?.toSorted((one, other) => one.path.localeCompare(other.path))).toEqual([
      { path: odd, clean: false },
      { path: second, clean: true },
    ]);
    // From inside another worktree it is the same.
    expect(await localAdapters({ root: second, env: repository.env }).git.worktrees('work')).toEqual(found);
  });

  it('whose directory is not there was deleted or moved, which git cannot tell apart', async () => {
    repository.git('branch', 'work');
    const path = repository.addWorktree('work', 'work');
    repository.write('x', 'x', path);
    expect(await git.worktrees('work')).toEqual([{ path, clean: false }]);
    renameSync(path, `${path}-elsewhere`);
    await expect(git.worktrees('work')).rejects.toThrow(
      `the worktree ${path} cannot be looked at: it is not there any more: if it was deleted, run git worktree prune`,
    );
    // The others are not its concern.
    expect(await git.worktrees('main')).toEqual([{ path: repository.root, clean: true }]);
    repository.git('worktree', 'repair', `${path}-elsewhere`);
    expect(await git.worktrees('work')).toEqual([{ path: `${path}-elsewhere`, clean: false }]);
    rmSync(`${path}-elsewhere`, { recursive: true });
    repository.git('worktree', 'lock', `${path}-elsewhere`);
    await expect(git.worktrees('work')).rejects.toThrow(`the worktree ${path}-elsewhere cannot be looked at`);
    repository.git('worktree', 'unlock', `${path}-elsewhere`);
    repository.git('worktree', 'prune');
    expect(await git.worktrees('work')).toEqual([]);
  });

  it('in which the branch is being rebased has it, and is not clean', async () => {
    repository.git('branch', 'work');
    const path = repository.addWorktree('work', 'work');
    repository.commit('README-2', path);
    repository.write('README-2', 'other\n');
    repository.git('add', '.');
    repository.git('commit', '-q', '-m', 'conflict');
    expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
    expect(() => repository.gitIn(path, 'rebase', 'main')).toThrow('could not apply');
    expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing: 'rebase' }]);
    // Also where nothing is left to be committed for the moment.
    repository.gitIn(path, 'checkout', '-q', '-f', '--detach', 'HEAD');
    expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing: 'rebase' }]);
    repository.gitIn(path, 'rebase', '--abort');
    expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
  });

  it('that lost its link to the repository is not taken for the repository around it', async () => {
    repository.write('.gitignore', 'inner\n');
    repository.git('add', '.');
    repository.git('commit', '-q', '-m', 'ignore');
    repository.git('branch', 'work');
    const path = repository.addWorktree('main/inner', 'work');
    repository.write('x', 'x', path);
    rmSync(join(path, '.git'));
    await expect(git.worktrees('work')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('runs no program that the repository names', async () => {
    const marker = join(repository.folder, 'was-run');
    repository.git('config', 'core.fsmonitor', `touch '${marker}'; false`);
    repository.git('config', 'core.hooksPath', join(repository.folder, 'hooks'));
    expect(await clean()).toBe(true);
    expect(existsSync(marker)).toBe(false);
  });

  it('is looked at without a trace: the index stays as it is, and a lock of others is no hindrance', async () => {
    const index = join(repository.root, '.git', 'index');
    // Touched, but not changed: git would like to write down that it looked.
    utimesSync(join(repository.root, 'README'), 1_000_000_000, 1_000_000_000);
    const before = readFileSync(index);
    expect(await clean()).toBe(true);
    expect(readFileSync(index)).toEqual(before);
    writeFileSync(`${index}.lock`, '');
    expect(await clean()).toBe(true);
  });
});

describe('the repository', () => {
  it('is the one of the root, also in a hook of another one', async () => {
    const other = new Repository();
    try {
      other.git('branch', 'theirs');
      const theirs = {
        GIT_DIR: join(other.root, '.git'),
        GIT_WORK_TREE: other.root,
        GIT_INDEX_FILE: join(other.root, '.git', 'index'),
      };
      const hooked = localAdapters({
        root: repository.root,
        env: { ...repository.env, ...theirs, GIT_TRACE: '1' },
      }).git;
      expect(await hooked.branch('theirs')).toEqual({ exists: false });
      expect(await hooked.worktrees('main')).toEqual([{ path: repository.root, clean: true }]);
    } finally {
      other.remove();
    }
  });

  it('may have no commit yet', async () => {
    const empty = join(repository.folder, 'empty');
    repository.git('init', '-q', '-b', 'main', empty);
    const fresh = localAdapters({ root: empty, env: repository.env }).git;
    expect(await fresh.branch('main')).toEqual({ exists: false });
    expect(await fresh.merged('main', 'other')).toEqual({ missing: ['main', 'other'] });
  });

  it('may be bare', async () => {
    const bare = join(repository.folder, 'bare.git');
    repository.git('clone', '-q', '--bare', repository.root, bare);
    const there = localAdapters({ root: bare, env: repository.env }).git;
    expect(await there.branch('main')).toEqual({ exists: true });
    expect(await there.worktrees('main')).toEqual([]);
  });

  it('that is shallow does not say that something was not merged', async () => {
    repository.git('branch', 'work');
    for (const file of ['a', 'b', 'c']) repository.commit(file);
    const shallow = join(repository.folder, 'shallow');
    repository.git('clone', '-q', '--depth=1', '--no-single-branch', `file://${repository.root}`, shallow);
    const there = localAdapters({ root: shallow, env: repository.env }).git;
    await expect(there.merged('origin/work', 'main')).rejects.toThrow('shallow clone');
    expect(await there.merged('origin/main', 'main')).toEqual({ merged: true });
  });

  it('that is damaged is an error, and not a branch that does not exist', async () => {
    repository.git('branch', 'work');
    writeFileSync(join(repository.root, '.git', 'refs', 'heads', 'work'), 'rubbish\n');
    await expect(git.branch('work')).rejects.toThrow('refs/heads/work is broken');
  });
});

describe('where git cannot be asked', () => {
  it('it says that there is no repository, or no such directory', async () => {
    const { folder, env } = repository;
    await expect(localAdapters({ root: folder, env }).git.branch('main')).rejects.toThrow('not a git repository');
    await expect(localAdapters({ root: join(folder, 'gone'), env }).git.branch('main')).rejects.toThrow('no such file');
    await expect(localAdapters({ root: join(repository.root, 'README'), env }).git.branch('main')).rejects.toThrow(
      'not a directory',
    );
  });

  it('it says that there is no git', async () => {
    const env = { PATH: join(repository.folder, 'nothing') };
    await expect(localAdapters({ root: repository.root, env }).git.branch('main')).rejects.toThrow(
      'there is no git on this machine',
    );
  });

  it('a git that hangs is ended when its time is over, or nobody wants to know any more', async () => {
    const pidFile = join(repository.folder, 'pid');
    const env = shadowed(`echo $$ > '${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec sleep 1000`);
    const hanging = localAdapters({ root: repository.root, env, gitTimeoutMs: 300 }).git;
    await expect(hanging.branch('main')).rejects.toThrow('git took longer than 300 ms');
    const patient = localAdapters({ root: repository.root, env }).git;
    await expect(patient.branch('main', AbortSignal.timeout(300))).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});
