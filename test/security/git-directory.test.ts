// Which repository is trusted with the store. git itself is the judge: several dozen layouts, and what git says of each.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
} from 'node:fs';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gitCommonDirectory } from '../../src/runtime/location/git-directory.ts';
import { built, ENTRY } from '../support/run-processes.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Only root can give a directory to another user. */
const isRoot = process.geteuid?.() === 0;
const NOBODY = 65_534;

let root: string;
const at = (...path: readonly string[]): string => join(root, ...path);
/** Nothing of the user who runs the tests. */
const clean = (): Environment => ({
  PATH: process.env['PATH'],
  HOME: at('home'),
  GIT_CONFIG_NOSYSTEM: '1',
});

function git(directory: string, ...args: readonly string[]): void {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'protocol.file.allow=always'];
  execFileSync('git', [...identity, ...args], { cwd: directory, env: clean() as NodeJS.ProcessEnv, stdio: 'pipe' });
}

function ours(directory: string, environment: Environment): string | undefined {
  try {
    return gitCommonDirectory(directory, environment);
  } catch {
    return undefined;
  }
}

/** What git calls the common directory; undefined where it refuses, or finds none. */
function judged(directory: string, environment: Environment): string | undefined {
  const options = { cwd: directory, env: environment as NodeJS.ProcessEnv, encoding: 'utf8' as const };
  const { status, stdout } = spawnSync('git', ['rev-parse', '--git-common-dir'], options);
  if (status !== 0) return undefined;
  const told = stdout.trim();
  return realpathSync(told.startsWith('/') ? told : join(realpathSync(directory), told));
}

/** Gives all that is in there to another user. */
function give(path: string, uid = NOBODY): void {
  lchownSync(path, uid, uid);
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) lchownSync(join(path, name), uid, uid);
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-trust-')));
  chmodSync(root, 0o755);
  mkdirSync(at('home'));
  mkdirSync(at('plain', 'deep'), { recursive: true });
  mkdirSync(at('repository', 'deep', 'down'), { recursive: true });
  git(at('repository'), 'init', '-q', '.');
  writeFileSync(at('repository', 'file'), '');
  git(at('repository'), 'add', '.');
  git(at('repository'), 'commit', '-q', '-m', 'first');
  git(at('repository'), 'worktree', 'add', '-q', at('worktree'), '-b', 'other');
  git(at('repository'), 'submodule', '--quiet', 'add', at('repository'), 'inner');
  git(root, 'clone', '-q', '--bare', at('repository'), 'bare');
  git(at('bare'), 'worktree', 'add', '-q', at('of-bare'), '-b', 'third');
  mkdirSync(at('separate'));
  git(at('separate'), 'init', '-q', '--separate-git-dir', at('elsewhere'));
  // A bare repository inside of a worktree: as a checkout could bring it along.
  cpSync(at('bare'), at('repository', 'vendor'), { recursive: true });
  rmSync(at('repository', 'vendor', 'worktrees'), { recursive: true });
  symlinkSync(at('worktree'), at('link'));
  symlinkSync(at('repository', 'deep'), at('deep-link'));

  const copy = (name: string): void => cpSync(at('repository', '.git'), at(name, '.git'), { recursive: true });
  const file = (name: string, text: string): void => {
    mkdirSync(at(name), { recursive: true });
    writeFileSync(at(name, '.git'), text);
  };
  mkdirSync(at('repository', 'has-plain', '.git'), { recursive: true });
  file('repository/no-format', 'nothing\n');
  file('repository/no-path', 'gitdir: \n');
  file('repository/empty', '');
  file('repository/lost', `gitdir: ${at('nowhere')}\n`);
  file('repository/relative', 'gitdir: ../.git\n\r\n');
  file('repository/spaced', `gitdir: ${at('elsewhere')} \n`);
  for (const name of ['bad-head', 'no-refs', 'no-objects', 'link-head', 'detached', 'bad-common', 'link-git']) {
    mkdirSync(at('repository', name));
    copy(`repository/${name}`);
  }
  writeFileSync(at('repository/bad-head/.git/HEAD'), 'main\n');
  rmSync(at('repository/no-refs/.git/refs'), { recursive: true });
  rmSync(at('repository/no-objects/.git/objects'), { recursive: true });
  rmSync(at('repository/link-head/.git/HEAD'));
  symlinkSync('refs/heads/main', at('repository/link-head/.git/HEAD'));
  writeFileSync(at('repository/detached/.git/HEAD'), `${'a'.repeat(40)}\n`);
  writeFileSync(at('repository/bad-common/.git/commondir'), '/nowhere\n');
  rmSync(at('repository/link-git/.git'), { recursive: true });
  symlinkSync(at('repository', '.git'), at('repository/link-git/.git'));
  symlinkSync(at('repository'), at('repository-link'));

  if (!isRoot) return;
  for (const name of ['theirs', 'their-git', 'their-tree', 'their-file', 'their-head', 'their-link']) {
    mkdirSync(at(name, 'mine'), { recursive: true });
    if (name !== 'their-file') copy(name);
  }
  give(at('theirs'));
  chownSync(at('theirs', 'mine'), 0, 0);
  give(at('their-git', '.git'));
  chownSync(at('their-tree'), NOBODY, NOBODY);
  writeFileSync(at('their-file', '.git'), `gitdir: ${at('elsewhere')}\n`);
  chownSync(at('their-file', '.git'), NOBODY, NOBODY);
  // git asks of the directory, and not of what is in it.
  chownSync(at('their-head', '.git', 'HEAD'), NOBODY, NOBODY);
  rmSync(at('their-link', '.git'), { recursive: true });
  symlinkSync(at('theirs', '.git'), at('their-link', '.git'));
  mkdirSync(at('their-worktree'));
  git(at('repository'), 'worktree', 'add', '-q', at('their-worktree', 'tree'), '-b', 'fourth');
  give(at('repository', '.git', 'worktrees', 'tree'));
  git(root, 'clone', '-q', '--bare', at('repository'), 'their-bare');
  git(at('their-bare'), 'worktree', 'add', '-q', at('of-their-bare'), '-b', 'fifth');
  give(at('their-bare'));
  chownSync(at('their-bare', 'worktrees', 'of-their-bare'), 0, 0);
});

afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

/** A name, where one is, and what is added to the environment; `HERE` stands for the directory of all layouts. */
interface Case {
  readonly told: string;
  readonly directory: string;
  readonly added: Environment;
}

const layout = (told: string, directory: string, added: Environment = {}): Case => ({ told, directory, added });

const HERE = (text: string): string => text.replaceAll('HERE', root);

function environmentOf(added: Environment = {}): Environment {
  const resolved = Object.entries(added).map(([name, value]) => [name, value === undefined ? value : HERE(value)]);
  return { ...clean(), ...(Object.fromEntries(resolved) as Environment) };
}

const ANYBODY: readonly Case[] = [
  layout('at its root', 'repository'),
  layout('below its root', 'repository/deep/down'),
  layout('outside of any', 'plain/deep'),
  layout('in a worktree', 'worktree'),
  layout('in a worktree, by a link', 'link'),
  layout('below the root, by a link', 'deep-link/down'),
  layout('in a submodule', 'repository/inner'),
  layout('where the git directory is elsewhere', 'separate'),
  layout('in the worktree of a bare repository', 'of-bare'),
  layout('in .git', 'repository/.git'),
  layout('below .git', 'repository/.git/refs/heads'),
  layout('in the git directory of a worktree', 'repository/.git/worktrees/worktree'),
  layout('in the git directory of a submodule', 'repository/.git/modules/inner'),
  layout('where .git is an empty directory, below one', 'repository/has-plain'),
  layout('where .git is a link', 'repository/link-git'),
  layout('where .git is a file without gitdir:', 'repository/no-format'),
  layout('where .git is a file without a path', 'repository/no-path'),
  layout('where .git is an empty file', 'repository/empty'),
  layout('where .git leads nowhere', 'repository/lost'),
  layout('where .git leads to a relative place', 'repository/relative'),
  layout('where the path in .git ends in a space', 'repository/spaced'),
  layout('where HEAD is no reference', 'repository/bad-head'),
  layout('where refs is missing', 'repository/no-refs'),
  layout('where objects is missing', 'repository/no-objects'),
  layout('where HEAD is a link', 'repository/link-head'),
  layout('where HEAD is detached', 'repository/detached'),
  layout('where commondir leads nowhere', 'repository/bad-common'),
  layout('with a ceiling at the root', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE/repository' }),
  layout('with a ceiling at the parent', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE/repository/deep' }),
  layout('with a ceiling here', 'repository', { GIT_CEILING_DIRECTORIES: 'HERE/repository' }),
  layout('with a ceiling above', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE' }),
  layout('with a ceiling here, below', 'repository/deep', { GIT_CEILING_DIRECTORIES: 'HERE/repository/deep' }),
  layout('with a ceiling that ends in a slash', 'repository/deep/down', {
    GIT_CEILING_DIRECTORIES: 'HERE/repository/',
  }),
  layout('with a ceiling by a link', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE/repository-link' }),
  layout('with a link not to be followed', 'repository/deep/down', {
    GIT_CEILING_DIRECTORIES: ':HERE/repository-link',
  }),
  layout('with an empty entry', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: ':HERE/repository' }),
  layout('with several ceilings', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: '/x:HERE/repository:HERE' }),
  layout('with a relative ceiling', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'repository' }),
  layout('with a ceiling that is not there', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE/none' }),
  layout('with a ceiling of a like name', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: 'HERE/repository/de' }),
  layout('with the root as ceiling', 'repository/deep/down', { GIT_CEILING_DIRECTORIES: '/' }),
  layout('with GIT_DIR', 'plain', { GIT_DIR: 'HERE/repository/.git' }),
  layout('with a relative GIT_DIR', 'plain', { GIT_DIR: '../repository/.git' }),
  layout('with a bare GIT_DIR', 'plain', { GIT_DIR: 'HERE/bare' }),
  layout('with GIT_DIR as hooks have it', 'bare', { GIT_DIR: '.' }),
  layout('with GIT_DIR of a worktree', 'plain', { GIT_DIR: 'HERE/repository/.git/worktrees/worktree' }),
  layout('with a file as GIT_DIR', 'plain', { GIT_DIR: 'HERE/worktree/.git' }),
  layout('with GIT_DIR that is not there', 'repository', { GIT_DIR: 'HERE/nowhere' }),
  layout('with GIT_DIR that is no repository', 'repository', { GIT_DIR: 'HERE/plain' }),
  layout('with an empty GIT_DIR', 'repository', { GIT_DIR: '' }),
  layout('with GIT_COMMON_DIR', 'worktree', { GIT_COMMON_DIR: 'HERE/bare' }),
  layout('with the objects elsewhere', 'repository/no-objects', { GIT_OBJECT_DIRECTORY: 'HERE/bare/objects' }),
  layout('with objects that are nowhere', 'repository', { GIT_OBJECT_DIRECTORY: 'HERE/none' }),
];

const safe = (...values: readonly string[]): Environment => ({
  GIT_CONFIG_COUNT: String(values.length),
  ...Object.fromEntries(
    values.flatMap((value, place) => [
      [`GIT_CONFIG_KEY_${place}`, 'safe.directory'],
      [`GIT_CONFIG_VALUE_${place}`, value],
    ]),
  ),
});

const OWNERS: readonly Case[] = [
  layout('that is theirs', 'theirs'),
  layout('that is theirs, in a directory of our own', 'theirs/mine'),
  layout('whose git directory is theirs', 'their-git'),
  layout('whose worktree is theirs', 'their-tree'),
  layout('whose .git file is theirs', 'their-file'),
  layout('of which something in the git directory is theirs', 'their-head'),
  layout('that a link of ours leads to', 'their-link'),
  layout('whose git directory of this worktree is theirs', 'their-worktree/tree'),
  layout('whose common directory is theirs', 'of-their-bare'),
  layout('that is theirs, named by GIT_DIR', 'plain', { GIT_DIR: 'HERE/theirs/.git' }),
  layout('that is theirs, under sudo of that user', 'theirs', { SUDO_UID: String(NOBODY) }),
  layout('that is ours, under sudo', 'repository', { SUDO_UID: '1000' }),
  layout('that is theirs, under sudo of a third', 'theirs', { SUDO_UID: '1000' }),
  layout('that is theirs, under sudo of no number', 'theirs', { SUDO_UID: `${NOBODY}x` }),
  layout('that is listed as safe', 'theirs', safe('HERE/theirs')),
  layout('that is listed as safe, below it', 'theirs/mine', safe('HERE/theirs')),
  layout('whose git directory is listed', 'theirs', safe('HERE/theirs/.git')),
  layout('whose parent is listed', 'theirs', safe('HERE')),
  layout('where all are safe', 'theirs', safe('*')),
  layout('where all are safe, and then none', 'theirs', safe('*', '')),
  layout('where none is safe, and then all', 'theirs', safe('', '*')),
  layout('that is listed by a relative path', 'theirs', safe('theirs')),
  layout('that is listed as ~', 'theirs', { ...safe('~/theirs'), HOME: 'HERE' }),
  layout('that is listed by -c', 'theirs', { GIT_CONFIG_PARAMETERS: "'safe.directory'='HERE/theirs'" }),
];

describe('the repository is the one that git finds', () => {
  it.each(ANYBODY)('$told', ({ directory, added }) => {
    const environment = environmentOf(added);
    expect(ours(at(directory), environment)).toBe(judged(at(directory), environment));
  });

  describe('a FIFO in a repository', () => {
    it('is not waited for', () => {
      mkdirSync(at('piped/.git/objects'), { recursive: true });
      mkdirSync(at('piped/.git/refs'));
      writeFileSync(at('piped/.git/HEAD'), 'ref: refs/heads/main\n');
      execFileSync('mkfifo', [at('piped/.git/commondir')]);
      expect(() => gitCommonDirectory(at('piped'), clean())).toThrow('does not say where the repository is');
    });
  });

  // Only root can give files to another user.
  it.skipIf(!isRoot).each(OWNERS)('and trusts: one $told', ({ directory, added }) => {
    const environment = environmentOf(added);
    expect(ours(at(directory), environment)).toBe(judged(at(directory), environment));
  });
});

describe('a bare repository', () => {
  it('that nobody named is refused with how to name it, since a checkout can contain one', () => {
    expect(() => gitCommonDirectory(at('bare', 'refs'), clean())).toThrow(
      new RegExp(`${at('bare')} is a bare git repository.*GIT_DIR=${at('bare')}.*SIGNALBOX_URL`),
    );
  });

  it('inside of a worktree does not hide the repository of that worktree', () => {
    expect(gitCommonDirectory(at('repository', 'vendor', 'refs'), clean())).toBe(at('repository', '.git'));
  });
});

// Only root can give files to another user.
describe.skipIf(!isRoot)('a repository of another user', () => {
  it('is refused with its owner and with how to allow it', () => {
    expect(() => gitCommonDirectory(at('theirs', 'mine'), clean())).toThrow(
      new RegExp(
        `${at('theirs')} belongs to nobody \\(uid ${NOBODY}\\), and you are root \\(uid 0\\).*` +
          `git config --global --add safe.directory ${at('theirs')}\\. .*SIGNALBOX_URL=file:DIRECTORY`,
      ),
    );
  });

  it('is used once the command that the error names was typed, and not before', () => {
    const environment = { ...clean(), HOME: at('new-home') };
    mkdirSync(at('new-home'));
    expect(() => gitCommonDirectory(at('theirs'), environment)).toThrow(/dubious|belongs to/);
    execFileSync('git', ['config', '--global', '--add', 'safe.directory', at('theirs')], {
      env: environment as NodeJS.ProcessEnv,
    });
    expect(gitCommonDirectory(at('theirs'), environment)).toBe(at('theirs', '.git'));
  });

  it('cannot call itself safe', () => {
    appendFileSync(at('theirs', '.git', 'config'), '[safe]\n\tdirectory = *\n');
    expect(() => gitCommonDirectory(at('theirs'), clean())).toThrow(/belongs to/);
  });

  it('may be one of many below a directory that is listed as safe', () => {
    const environment = environmentOf(safe('HERE/*'));
    expect(gitCommonDirectory(at('theirs'), environment)).toBe(at('theirs', '.git'));
    expect(() => gitCommonDirectory(at('theirs'), environmentOf(safe('HERE/the*')))).toThrow(/belongs to/);
  });

  it('is refused where git is not installed', () => {
    const environment = { ...environmentOf(safe('*')), PATH: '/nowhere' };
    expect(() => gitCommonDirectory(at('theirs'), environment)).toThrow(/belongs to/);
  });
});

/** A mount of its own needs a mount namespace, which only root can make. */
describe.skipIf(!isRoot)('a mount point', () => {
  beforeAll(built);

  it('ends the search as it ends git’s, unless GIT_DISCOVERY_ACROSS_FILESYSTEM says otherwise', () => {
    mkdirSync(at('repository', 'mounted'));
    const look =
      `git rev-parse --git-dir 2>/dev/null || echo none; ` +
      `${process.execPath} ${ENTRY} run --lock a -- sh -c 'echo $SIGNALBOX_URL'`;
    const script = `mount -t tmpfs none . && cd . && cd "$PWD" && ${look}; export GIT_DISCOVERY_ACROSS_FILESYSTEM=1; ${look}`;
    const stdout = execFileSync('unshare', ['-m', 'sh', '-c', script], {
      cwd: at('repository', 'mounted'),
      env: clean() as NodeJS.ProcessEnv,
      encoding: 'utf8',
    });
    expect(stdout.trim().split('\n')).toEqual([
      'none',
      `file:${at('home')}/.local/state/signalbox`,
      at('repository', '.git'),
      `file:${at('repository', '.git')}/signalbox`,
    ]);
  });
});
