// A repository that was cloned must not be able to do anything: a store that came with it is refused.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, storeUrl } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refuseCheckedOut } from '../../src/runtime/location/checked-out.ts';

let root: string;
let clone: string;
const at = (...path: readonly string[]): string => join(root, ...path);

function git(directory: string, ...args: readonly string[]): void {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org'];
  const env = { PATH: process.env['PATH'], HOME: root, GIT_CONFIG_NOSYSTEM: '1' };
  execFileSync('git', [...identity, ...args], { cwd: directory, env, stdio: 'pipe' });
}

async function opened(url: string): Promise<void> {
  const box = await open(url);
  await box.close();
}

beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-checkout-')));
  clone = at('clone');
  const evil = at('evil');
  for (const name of ['vendor/objects', 'vendor/refs', 'coordination', 'kept', 'other/deep'])
    mkdirSync(join(evil, name), { recursive: true });
  git(evil, 'init', '-q', '.');
  writeFileSync(join(evil, 'vendor/HEAD'), 'ref: refs/heads/main\n');
  for (const name of ['vendor/objects/.k', 'vendor/refs/.k', 'kept/.gitignore', 'other/deep/file'])
    writeFileSync(join(evil, name), '*\n');
  await opened(`file:${join(evil, 'coordination')}`);
  await opened(`file:${join(evil, 'vendor/signalbox')}`);
  await opened(`file:${evil}`);
  mkdirSync(join(evil, 'bells-only'));
  symlinkSync('../other', join(evil, 'bells-only/bells'));
  symlinkSync('other/deep', join(evil, 'by-link'));
  symlinkSync('..', join(evil, 'out'));
  git(evil, 'add', '-A', '-f');
  git(evil, 'commit', '-q', '-m', 'x');
  git(root, 'clone', '-q', evil, clone);
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

// Only root can give files to another user.
describe.skipIf(process.getuid?.() !== 0)('the repository of another user above a store', () => {
  const NOBODY = 65_534;

  it('is not asked anything: it could name programs to run, and refuse what it does not have', async () => {
    const theirs = at('theirs');
    mkdirSync(join(theirs, 'mine'), { recursive: true });
    git(theirs, 'init', '-q', '.');
    await opened(`file:${join(theirs, 'mine')}`);
    git(theirs, 'add', '-A', '-f');
    await expect(opened(`file:${join(theirs, 'mine')}`)).rejects.toThrow('git tracks');
    execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, join(theirs, '.git')]);
    await opened(`file:${join(theirs, 'mine')}`);
  });
});

describe('a repository above a store', () => {
  it('with a FIFO for an index makes nobody wait', async () => {
    const odd = at('odd');
    mkdirSync(join(odd, 'store'), { recursive: true });
    git(odd, 'init', '-q', '.');
    await opened(`file:${join(odd, 'store')}`);
    execFileSync('mkfifo', [join(odd, '.git/index')]);
    await expect(opened(`file:${join(odd, 'store')}`)).rejects.toThrow('git cannot say whether it came with');
  });
});

describe('a store that came with a checkout', () => {
  it.each(['coordination', 'vendor/signalbox', 'bells-only', ''])(
    'is refused where a URL names it: %s',
    async (name) => {
      await expect(opened(`file:${join(clone, name)}`)).rejects.toThrow(
        /is not used as a store: it came with the checkout in .*clone \(git tracks .*SIGNALBOX_URL/,
      );
    },
  );

  it('is refused where GIT_DIR names a directory that came with it', async () => {
    const url = storeUrl(undefined, { HOME: root, GIT_DIR: 'vendor' }, clone);
    expect(url).toBe(`file:${join(clone, 'vendor/signalbox')}`);
    await expect(opened(url)).rejects.toThrow(/it came with the checkout/);
  });

  it('is not found where nothing names it: the store is that of the clone', () => {
    expect(storeUrl(undefined, { HOME: root }, join(clone, 'vendor'))).toBe(`file:${clone}/.git/signalbox`);
  });

  it.each(['by-link', 'out', 'out/elsewhere'])('cannot be chosen by a link in the checkout: %s', (name) => {
    expect(() => storeUrl(`file:${join(clone, name)}`)).toThrow(/it came with the checkout/);
    expect(existsSync(at('elsewhere'))).toBe(false);
  });

  it('is refused in a linked worktree too', async () => {
    git(clone, 'worktree', 'add', '-q', at('linked'));
    await expect(opened(`file:${at('linked', 'coordination')}`)).rejects.toThrow(/came with the checkout in .*linked /);
  });

  it.each([
    ['compressed', ['update-index', '--index-version', '4']],
    ['split', ['update-index', '--split-index']],
  ])('is refused although the index of git is %s', async (_, args) => {
    git(root, 'clone', '-q', at('evil'), at(String(args[1])));
    git(at(String(args[1])), ...args);
    await expect(opened(`file:${at(String(args[1]), 'coordination')}`)).rejects.toThrow(/came with the checkout/);
  });

  it('is refused where git is not there to say', () => {
    expect(() => refuseCheckedOut(join(clone, 'coordination'), { PATH: '/nowhere' })).toThrow(/git cannot say whether/);
  });
});

describe('a store in a worktree that did not come with it', () => {
  it('is used, also beside a .gitignore that did', async () => {
    for (const name of ['new/one', 'kept']) {
      await opened(`file:${join(clone, name)}`);
      await opened(`file:${join(clone, name)}`);
    }
  });

  it('is used without starting git, so that it need not be there', () => {
    expect(() => refuseCheckedOut(join(clone, 'kept'), { PATH: '/nowhere' })).not.toThrow();
  });

  it('is used in a new repository, and by a link of the user’s own', async () => {
    mkdirSync(at('fresh'));
    git(at('fresh'), 'init', '-q', '.');
    symlinkSync(at('fresh'), join(clone, 'mine'));
    await opened(`file:${join(clone, 'mine')}`);
    await opened(`file:${join(clone, 'mine')}`);
  });
});
