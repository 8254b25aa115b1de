// A repository as others left it: half done, moved, replaced, damaged, or made to harm whoever looks at it. What cannot be
// told is an error, and nothing that the repository names is run.

import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Git, localAdapters } from 'signalbox';
import { Repository } from '../support/repository.ts';

let repository: Repository;
let git: Git;

beforeEach(() => {
  repository = new Repository();
  git = gitAt(repository.root);
});

afterEach(() => repository.remove());

function gitAt(root: string, more: NodeJS.ProcessEnv = {}, gitTimeoutMs = 60_000): Git {
  return localAdapters({ root, env: { ...repository.env, ...more }, gitTimeoutMs }).git;
}

/** A program by the name of git in front of the real one, which it can call as `real`. */
function shadowed(script: string): NodeJS.ProcessEnv {
  const bin = join(repository.folder, 'bin');
  mkdirSync(bin);
  const real = `real() { PATH="\${PATH#*:}" command git "$@"; }`;
  writeFileSync(join(bin, 'git'), `#!/bin/sh\n${real}\n${script}\n`, { mode: 0o755 });
  return { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
}

/** A branch in a worktree of its own, one commit ahead. */
function work(): string {
  repository.git('branch', 'work');
  const path = repository.addWorktree('work', 'work');
  repository.commit('work', path);
  return path;
}

function conflict(path: string): void {
  for (const [cwd, text] of [
    [repository.root, 'theirs'],
    [path, 'ours'],
  ] as const) {
    repository.write('README', text, cwd);
    repository.gitIn(cwd, 'commit', '-q', '-a', '-m', text);
  }
}

const fifo = (...path: readonly string[]): void => void execFileSync('mkfifo', [join(...path)]);

describe('a detached worktree', () => {
  it('is looked at if it is at the tip of the branch, and not if it is elsewhere', async () => {
    const path = work();
    repository.gitIn(path, 'checkout', '-q', '--detach');
    repository.write('dirt', 'x', path);
    expect(await git.worktrees('work')).toEqual([{ path, clean: false }]);
    expect(await git.worktrees('main')).toEqual([{ path: repository.root, clean: true }]);
    rmSync(join(path, 'dirt'));
    expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
    repository.gitIn(path, 'checkout', '-q', '--detach', 'HEAD~1');
    expect(await git.worktrees('work')).toEqual([]);
  });

  it('also at that of a remote-tracking branch, or of an alias', async () => {
    const path = work();
    repository.git('update-ref', 'refs/remotes/origin/work', 'work');
    repository.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/work');
    expect(await git.worktrees('origin/work')).toEqual([]);
    expect(await git.worktrees('alias')).toEqual([{ path, clean: true }]);
    repository.gitIn(path, 'checkout', '-q', '--detach');
    expect(await git.worktrees('origin/work')).toEqual([{ path, clean: true }]);
  });
});

describe('what was begun and not finished', () => {
  it.each([
    ['cherry-pick', (path: string) => repository.gitIn(path, 'cherry-pick', 'main')],
    ['revert', (path: string) => repository.gitIn(path, 'revert', '--no-edit', 'HEAD~2')],
    [
      'am',
      (path: string) => {
        const patch = join(repository.folder, 'patch');
        writeFileSync(patch, repository.git('format-patch', '-1', '--stdout', 'main'));
        repository.gitIn(path, 'am', patch);
      },
    ],
    ['merge', (path: string) => repository.gitIn(path, 'merge', 'main')],
  ])('keeps a worktree from being clean: %s', async (doing, begin) => {
    const path = work();
    conflict(path);
    expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
    // It stops at a conflict.
    expect(() => begin(path)).toThrow();
    expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing }]);
    expect(await git.worktree(path)).toEqual({ path, clean: false, doing });
  });

  it('keeps a worktree from being clean: a bisection, wherever it has got to', async () => {
    const path = work();
    for (const file of ['a', 'b', 'c']) repository.commit(file, path);
    repository.gitIn(path, 'bisect', 'start');
    expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing: 'bisect' }]);
    repository.gitIn(path, 'bisect', 'bad');
    repository.gitIn(path, 'bisect', 'good', 'main');
    expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing: 'bisect' }]);
    repository.gitIn(path, 'bisect', 'reset');
    expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
  });
});

describe('a directory', () => {
  it('that another repository, or another worktree, took the place of is not judged by that one', async () => {
    const path = work();
    renameSync(path, `${path}-away`);
    repository.git('init', '-q', '-b', 'work', path);
    await expect(git.worktrees('work')).rejects.toThrow(
      `the worktree ${path} cannot be looked at: it belongs to another`,
    );
    rmSync(path, { recursive: true });
    repository.git('branch', 'other');
    const other = repository.addWorktree('other', 'other');
    renameSync(other, path);
    await expect(git.worktrees('work')).rejects.toThrow('it belongs to another repository now');
  });

  it('has its git directory wherever it likes, and the worktree is found from inside', async () => {
    const [path, apart] = [join(repository.folder, 'sep'), join(repository.folder, 'apart.git')];
    repository.git('init', '-q', '-b', 'main', `--separate-git-dir=${apart}`, path);
    repository.commit('f', path);
    mkdirSync(join(path, 'deep'));
    const inside = gitAt(join(path, 'deep'));
    expect(await inside.worktrees('main')).toEqual([{ path, clean: true }]);
    repository.write('f', 'changed', path);
    expect(await inside.worktrees('main')).toEqual([{ path, clean: false }]);
    expect(await inside.worktree('.')).toEqual({ path, clean: false });
    const side = join(repository.folder, 'side');
    repository.gitIn(path, 'worktree', 'add', '-q', '-b', 'side', side);
    expect(await gitAt(side).worktrees('side')).toEqual([{ path: side, clean: true }]);
    await expect(gitAt(side).worktrees('main')).rejects.toThrow('git does not say where the main worktree');
  });

  it('may be the worktree of a repository that lies elsewhere', async () => {
    const elsewhere = join(repository.folder, 'elsewhere');
    repository.write('README', 'README\n', elsewhere);
    repository.git('config', 'core.worktree', elsewhere);
    expect(await git.worktree('.')).toEqual({ path: elsewhere, clean: true });
    repository.write('README', 'changed', elsewhere);
    expect(await git.worktree('.')).toEqual({ path: elsewhere, clean: false });
    expect(await git.worktrees('main')).toEqual([{ path: repository.root, clean: false }]);
  });

  it('that is in no repository, or no directory, cannot be told', async () => {
    await expect(git.worktree('..')).rejects.toThrow('not a git repository');
    await expect(git.worktree('README')).rejects.toThrow('is not a directory');
    await expect(git.worktree('.git')).rejects.toThrow('must be run in a work tree');
    expect(await git.worktree('README/x')).toBeNull();
  });
});

describe('history that cannot be read', () => {
  it('does not say that something was not merged', async () => {
    for (const file of ['a', 'b', 'c']) repository.commit(file);
    repository.git('branch', 'old', 'main~3');
    expect(await git.merged('old', 'main')).toEqual({ merged: true });
    const lost = repository.git('rev-parse', 'main~2').trim();
    rmSync(join(repository.root, '.git', 'objects', lost.slice(0, 2), lost.slice(2)));
    await expect(git.merged('old', 'main')).rejects.toThrow(`error: Could not read ${lost}`);
  });

  it('is no history of a branch that was never there', async () => {
    // Git leaves out what it cannot open, and ends as if nothing were the matter.
    symlinkSync('deep', join(repository.root, '.git', 'refs', 'heads', 'deep'));
    await expect(git.branch('deep/er')).rejects.toThrow('refs/heads/deep/er cannot be looked at');
    await expect(git.worktrees('deep/er')).rejects.toThrow('refs/heads/deep/er cannot be looked at');
    repository.git('symbolic-ref', 'refs/heads/nowhere', 'refs/heads/gone');
    await expect(git.branch('nowhere')).rejects.toMatchObject({ name: 'Failure' });
  });
});

describe('one time limit', () => {
  it('covers every call of git that a look takes', async () => {
    const slow = gitAt(repository.root, shadowed('sleep 0.2; real "$@"'), 500);
    await expect(slow.worktrees('main')).rejects.toThrow('git took longer than 500 ms');
  });

  it('ends a git that hangs on a FIFO, and what it started with it', async () => {
    const pids = join(repository.folder, 'pids');
    const env = shadowed(`sleep 1000 & echo $! >> '${pids}'; wait`);
    await expect(gitAt(repository.root, env, 3000).branch('main')).rejects.toThrow('git took longer than 3000 ms');
    const sleeper = `/proc/${execFileSync('cat', [pids], { encoding: 'utf8' }).trim()}/stat`;
    // Killed, it may be a zombie for as long as nobody has waited for it.
    await expect
      .poll(() => !existsSync(sleeper) || / Z /.test(execFileSync('cat', [sleeper], { encoding: 'utf8' })))
      .toBe(true);
    rmSync(join(repository.root, '.git', 'HEAD'));
    fifo(repository.root, '.git', 'HEAD');
    await expect(gitAt(repository.root, {}, 300).branch('main')).rejects.toThrow('git took longer than 300 ms');
  });

  it('is not needed for FIFOs among the files that are read here', async () => {
    const path = work();
    const own = join(repository.root, '.git', 'worktrees', 'work');
    repository.gitIn(path, 'checkout', '-q', '--detach');
    mkdirSync(join(own, 'rebase-merge'));
    fifo(own, 'rebase-merge', 'head-name');
    await expect(git.worktrees('work')).rejects.toThrow('is no regular file');
    rmSync(join(own, 'rebase-merge'), { recursive: true });
    writeFileSync(join(own, 'BISECT_LOG'), '');
    writeFileSync(join(own, 'BISECT_START'), 'x'.repeat(100_000));
    await expect(git.worktrees('work')).rejects.toThrow('is larger than');
    rmSync(join(own, 'BISECT_LOG'));
    rmSync(join(path, '.git'));
    fifo(path, '.git');
    await expect(git.worktrees('work')).rejects.toThrow('is no regular file');
  });
});

it('a worktree with more changes than anybody wants to read is not clean', async () => {
  const env = shadowed(`case "$*" in *" status "*) exec yes '?? another file';; *) real "$@";; esac`);
  expect(await gitAt(repository.root, env).worktrees('main')).toEqual([{ path: repository.root, clean: false }]);
});

describe('a filter', () => {
  const touch = (file: string): void => utimesSync(join(repository.root, file), 1_000_000_000, 1_000_000_000);
  let marker: string;

  /** In a repository whose file `secret` goes through it. */
  function filtered(): string {
    marker = join(repository.folder, 'was-run');
    const script = join(repository.folder, 'filter');
    writeFileSync(script, `#!/bin/sh\ntouch '${marker}'\nexec tr a-z A-Z\n`);
    chmodSync(script, 0o755);
    repository.write('.gitattributes', 'secret filter=upper\n');
    repository.git('config', 'filter.upper.clean', script);
    repository.write('secret', 'secret\n');
    repository.git('add', '.');
    repository.git('commit', '-q', '-m', 'filtered');
    // What was written in the same moment as the index would be compared.
    utimesSync(join(repository.root, 'secret'), 900_000_000, 900_000_000);
    repository.git('status');
    rmSync(marker);
    return script;
  }

  it('that the repository itself names is not run; a file that only it could judge cannot be told', async () => {
    const script = filtered();
    expect(await git.worktrees('main')).toEqual([{ path: repository.root, clean: true }]);
    touch('secret');
    await expect(git.worktrees('main')).rejects.toThrow('the filter "upper" that would tell whether it changed');
    // Nor where another file of the repository's configuration names it.
    const included = join(repository.folder, 'included');
    writeFileSync(included, `[filter "upper"]\n\tclean = ${script}\n\trequired = true\n`);
    repository.git('config', '--unset', 'filter.upper.clean');
    repository.git('config', 'include.path', included);
    await expect(git.worktree('.')).rejects.toThrow('if you trust it, run git status there');
    repository.write('README', 'changed');
    expect(await git.worktrees('main')).toEqual([{ path: repository.root, clean: false }]);
    expect(existsSync(marker)).toBe(false);
  });

  it('that the user has set up is run, and tells', async () => {
    const script = filtered();
    repository.git('config', '--unset', 'filter.upper.clean');
    touch('secret');
    const own = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'filter.upper.clean', GIT_CONFIG_VALUE_0: script };
    expect(await gitAt(repository.root, own).worktrees('main')).toEqual([{ path: repository.root, clean: true }]);
    expect(existsSync(marker)).toBe(true);
  });

  it('of a submodule is not run either, and its changes count', async () => {
    const outer = new Repository();
    try {
      filtered();
      outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', repository.root, 'sub');
      outer.git('commit', '-q', '-m', 'sub');
      const inner = join(outer.root, 'sub');
      const there = localAdapters({ root: outer.root, env: outer.env }).git;
      expect(await there.worktrees('main')).toEqual([{ path: outer.root, clean: true }]);
      outer.gitIn(inner, 'config', 'filter.upper.clean', join(repository.folder, 'filter'));
      utimesSync(join(inner, 'secret'), 1_000_000_000, 1_000_000_000);
      // Without the filter the file is as it was committed.
      expect(await there.worktrees('main')).toEqual([{ path: outer.root, clean: true }]);
      expect(existsSync(marker)).toBe(false);
      outer.write('dirt', 'x', inner);
      expect(await there.worktrees('main')).toEqual([{ path: outer.root, clean: false }]);
      expect(await localAdapters({ root: inner, env: outer.env }).git.worktrees('main')).toEqual([
        { path: inner, clean: false },
      ]);
    } finally {
      outer.remove();
    }
  });
});

describe('a partial clone', () => {
  /** In which a blob is missing, and everything that git would run to fetch it leaves a mark. */
  function partial(): { readonly path: string; readonly marker: string } {
    const [path, marker] = [join(repository.folder, 'partial'), join(repository.folder, 'was-run')];
    repository.git('config', 'uploadpack.allowFilter', 'true');
    repository.git('clone', '-q', '--filter=blob:none', '--no-checkout', `file://${repository.root}`, path);
    appendFileSync(
      join(path, '.git', 'config'),
      `[remote "origin"]\n\tuploadpack = touch '${marker}'; git-upload-pack\n[protocol "file"]\n\tallow = always\n`,
    );
    return { path, marker };
  }

  it('is looked at without fetching anything', async () => {
    const { path, marker } = partial();
    expect(await gitAt(path).worktrees('main')).toEqual([{ path, clean: false }]);
    expect(await gitAt(path).merged('origin/main', 'main')).toEqual({ merged: true });
    expect(readdirSync(path)).toEqual(['.git']);
    expect(existsSync(marker)).toBe(false);
  });

  it('is not looked into by a git that might fetch', async () => {
    const { path, marker } = partial();
    const old = gitAt(path, shadowed('case "$*" in *" version") echo git version 2.38.1;; *) real "$@";; esac'));
    await expect(old.worktrees('main')).rejects.toThrow('git version 2.38.1 would fetch missing objects');
    await expect(old.worktree('.')).rejects.toThrow('git 2.45 is needed');
    await expect(old.merged('origin/main', 'main')).rejects.toThrow('git 2.45 is needed');
    // Refs are no objects.
    expect(await old.branch('main')).toEqual({ exists: true });
    expect(existsSync(marker)).toBe(false);
  });
});
