import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { Failure, storeUrl } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let root: string;
const place = (...path: readonly string[]): string => join(root, ...path);
/** Nothing of whoever runs the tests. */
const NOBODY = { HOME: '/home/nobody', PATH: process.env['PATH'] };

function git(directory: string, ...args: readonly string[]): string {
  const environment = { ...NOBODY, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'protocol.file.allow=always'];
  return execFileSync('git', [...identity, ...args], { cwd: directory, env: environment, encoding: 'utf8' }).trim();
}

/** As git itself says. */
function commonDirectory(directory: string): string {
  return realpathSync(git(directory, 'rev-parse', '--path-format=absolute', '--git-common-dir'));
}

const urlAt = (directory: string, environment: Record<string, string | undefined> = NOBODY): string =>
  storeUrl(undefined, environment, directory);

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-location-')));
  mkdirSync(place('repository', 'deep', 'down'), { recursive: true });
  git(place('repository'), 'init', '--quiet', '.');
  writeFileSync(place('repository', 'file'), '');
  git(place('repository'), 'add', '.');
  git(place('repository'), 'commit', '--quiet', '-m', 'first');
  git(place('repository'), 'worktree', 'add', '--quiet', place('worktree'), '-b', 'other');
  git(root, 'clone', '--quiet', '--bare', place('repository'), 'bare');
  git(place('bare'), 'worktree', 'add', '--quiet', place('of-bare'), '-b', 'third');
  git(place('repository'), 'submodule', '--quiet', 'add', place('repository'), 'inner');
  symlinkSync(place('worktree'), place('link'));
  mkdirSync(place('plain', '.git'), { recursive: true });
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

describe('where nothing is named', () => {
  it.each(['repository', 'repository/deep/down', 'worktree', 'of-bare', 'repository/inner', 'link'])(
    'the store of %s is in the directory that git calls common',
    (directory) => {
      expect(urlAt(place(directory))).toBe(`file:${commonDirectory(place(directory))}/signalbox`);
    },
  );

  it('all worktrees of a repository share one store, and a submodule has its own', () => {
    expect(urlAt(place('worktree'))).toBe(urlAt(place('repository')));
    expect(urlAt(place('repository', 'inner'))).not.toBe(urlAt(place('repository')));
  });

  it('the directory that git is told to use is used', () => {
    const environment = { ...NOBODY, GIT_DIR: place('repository', '.git') };
    expect(urlAt('/', environment)).toBe(urlAt(place('repository')));
  });

  it('elsewhere it is in the user’s state directory', () => {
    expect(urlAt('/')).toBe('file:/home/nobody/.local/state/signalbox');
    expect(urlAt('/', { XDG_STATE_HOME: '/state' })).toBe('file:/state/signalbox');
  });

  it('a home or a state directory that is relative or empty gives no store that moves with the directory', () => {
    expect(urlAt('/', { ...NOBODY, XDG_STATE_HOME: 'state' })).toBe('file:/home/nobody/.local/state/signalbox');
    const own = urlAt('/', { PATH: NOBODY.PATH, HOME: userInfo().homedir });
    expect(urlAt('/', { ...NOBODY, HOME: '' })).toBe(own);
    expect(urlAt('/', { ...NOBODY, HOME: 'here' })).toBe(own);
  });

  it('a directory that only looks like a repository is none', () => {
    expect(urlAt(place('plain'))).toBe('file:/home/nobody/.local/state/signalbox');
  });

  it('a worktree whose repository cannot be seen from here has no private store of its own', () => {
    mkdirSync(place('lost'));
    writeFileSync(place('lost', '.git'), `gitdir: ${place('nowhere', '.git', 'worktrees', 'lost')}\n`);
    expect(() => urlAt(place('lost'))).toThrow(/cannot be seen from here/);
  });

  it.each([
    [{ IF_ETCD_HOST: 'etcd.example' }, 'etcd://etcd.example:2379'],
    [{ IF_ETCD_PORT: '12379' }, 'etcd://localhost:12379'],
    [{ IF_ETCD_HOST: '::1', IF_ETCD_PORT: '2380' }, 'etcd://[::1]:2380'],
    [{ IF_ETCD_HOST: '', IF_ETCD_PORT: '' }, 'file:/home/nobody/.local/state/signalbox'],
    [{ IF_ETCD_HOST: 'etcd.example', SIGNALBOX_URL: 'file:/here' }, 'file:/here'],
  ])('with %j it is %s', (environment, url) => {
    expect(urlAt('/', { ...NOBODY, ...environment })).toBe(url);
  });

  it.each([
    { IF_ETCD_HOST: 'a,b' },
    { IF_ETCD_HOST: 'http://a' },
    { IF_ETCD_HOST: '10.0.0.1:2379' },
    { IF_ETCD_PORT: 'many' },
    { IF_ETCD_PORT: '65536' },
  ])('an etcd that cannot be one is refused: %j', (environment) => {
    expect(() => urlAt('/', { ...NOBODY, ...environment })).toThrow(/IF_ETCD_(HOST|PORT) is .*; expected/);
  });
});

describe('a store that is named', () => {
  it('by way of a link is the one that the link leads to, whether it is there yet or not', () => {
    mkdirSync(place('real'), { recursive: true });
    symlinkSync(place('real'), place('by-link'));
    expect(storeUrl(`file:${place('by-link')}`)).toBe(`file:${place('real')}`);
    expect(storeUrl(`file:${place('by-link', 'not', 'yet')}`)).toBe(`file:${place('real', 'not', 'yet')}`);
    expect(storeUrl('file:not/yet?durability=full', {}, place('by-link'))).toBe(
      `file:${place('real', 'not', 'yet')}?durability=full`,
    );
  });

  it('in SIGNALBOX_URL is meant by everybody, wherever they are', () => {
    expect(urlAt('/', { ...NOBODY, SIGNALBOX_URL: 'memory:x' })).toBe('memory:x');
    expect(urlAt('/some/where', { ...NOBODY, SIGNALBOX_URL: 'file:here' })).toBe('file:/some/where/here');
  });

  it.each([
    ['file:relative/path', 'file:/from/relative/path'],
    ['file:/absolute', 'file:/absolute'],
    ['file:///absolute%20too', 'file:/absolute too'],
    ['file:/a?durability=full', 'file:/a?durability=full'],
    ['file:/a?durability=normal', 'file:/a'],
    ['etcd://a,b:23790/team', 'etcd://a,b:23790/team'],
    ['etcds://a?ca=ca.pem&cert=/c.pem&key=k.pem', 'etcds://a?ca=/from/ca.pem&cert=/c.pem&key=/from/k.pem'],
  ])('as %s means %s', (given, meant) => {
    expect(storeUrl(given, {}, '/from')).toBe(meant);
  });

  it.each(['file:', 'file://host/path', 'file:/a?sync=1', 'file:/a?durability=maybe', 'file:/a\0b'])(
    'as %s is refused with what is accepted',
    (given) => {
      const attempt = (): string => storeUrl(given, {}, '/from');
      expect(attempt).toThrow(Failure);
    },
  );
});
