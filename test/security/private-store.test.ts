// The store of one user is worth nothing to another: it is closed by its modes, and one that belongs to somebody else is refused.

import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from 'signalbox';
import { openEmbedded, prefixed, storeFile } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, type Ended, start, startProgram } from '../support/cli.ts';
import { errorOf } from '../support/outcome.ts';
import { NOBODY, signalboxAs, startAs, whyNoOthers } from '../support/users.ts';

const why = whyNoOthers();
let top: string;
let directory: string;

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'signalbox-private-'));
  directory = join(top, 'store');
});

afterEach(() => {
  rmSync(top, { recursive: true });
});

function modeOf(path: string): string {
  return (lstatSync(path).mode & 0o7777).toString(8).padStart(4, '0');
}

/** Of everything in the store, and of its directory; bells by one name. */
function modes(): Record<string, string> {
  const found: Record<string, string> = { '.': modeOf(directory) };
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const called = name
      .replace(/[0-9a-f]{16}$/, 'BELL')
      .replace(/rounds-.*/, 'rounds')
      .replace(/duty-.*/, 'duty');
    found[called] = modeOf(join(directory, name));
  }
  return found;
}

const PRIVATE = {
  '.': '0700',
  bells: '0700',
  'bells/BELL': '0600',
  rounds: '0600',
  'store.db': '0600',
  'store.db-shm': '0600',
  'store.db-wal': '0600',
};

async function refusal(work: Promise<unknown>): Promise<Failure> {
  const error = await errorOf(work);
  expect(error).toBeInstanceOf(Failure);
  expect((error as Failure).code).toBe('forbidden');
  return error as Failure;
}

describe('a store is for its owner alone', () => {
  async function whileOpen(look: () => void): Promise<void> {
    const clock = new TestClock();
    const store = await openEmbedded(directory, { clock });
    await store.watch(prefixed('m/'), 'now', new AbortController().signal);
    await clock.advance(200);
    look();
    await store.close();
  }

  // A worker of the tests may not set its umask: a process does.
  it.each(['000', '0277'])('whatever the umask: %s', async (umask) => {
    const holds = [process.execPath, '--input-type=module', '-e', HOLDING, storeUrlOf(directory)];
    // One process alone has no socket.
    const both = ['x', 'y'].map((lock) =>
      startProgram('/bin/sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...holds, lock]),
    );
    try {
      for (const holder of both) await holder.printed('holding');
      await expect.poll(modes).toEqual({ ...PRIVATE, 'bells/duty': '0600' });
    } finally {
      for (const holder of both) {
        holder.child.kill('SIGKILL');
        await holder.ended;
      }
    }
  });

  it('in a directory whose group is inherited, too', async () => {
    chmodSync(top, 0o2775);
    await whileOpen(() => expect(modes()).toEqual(PRIVATE));
  });

  it('although it was open to others before: its owner closes it by opening it', async () => {
    await whileOpen(() => undefined);
    for (const name of ['store.db', readdirSync(directory).find((found) => found.startsWith('rounds')) as string]) {
      chmodSync(join(directory, name), 0o644);
    }
    chmodSync(directory, 0o755);
    chmodSync(join(directory, 'bells'), 0o755);
    await whileOpen(() => expect(modes()).toEqual(PRIVATE));
  });

  it('and a directory that was there, and is empty, is closed', async () => {
    mkdirSync(directory, 0o777);
    chmodSync(directory, 0o777);
    await whileOpen(() => expect(modes()).toEqual(PRIVATE));
  });

  it('but a directory that has other files in it keeps its mode, and only the files of the store are closed', async () => {
    mkdirSync(directory);
    chmodSync(directory, 0o755);
    writeFileSync(join(directory, 'README.md'), '');
    chmodSync(join(directory, 'README.md'), 0o644);
    await whileOpen(() => expect(modes()).toEqual({ ...PRIVATE, '.': '0755', 'README.md': '0644' }));
  });

  it.each([0o1777, 0o777, 0o775])('and one with other files that others may write is refused: %o', async (mode) => {
    mkdirSync(directory);
    writeFileSync(join(directory, 'README.md'), '');
    chmodSync(directory, mode);
    const { message } = await refusal(openEmbedded(directory));
    expect(message).toMatch(/has other files in it \(README.md\).*file:.*store\/signalbox.*chmod go-w/);
    expect(lstatSync(directory).mode & 0o7777).toBe(mode);
    expect(readdirSync(directory)).toEqual(['README.md']);
  });
});

const HOLDING = `
  import { open } from 'signalbox';
  const box = await open(process.argv[1]);
  await box.lock(process.argv[2] ?? 'x').acquire();
  console.log('holding');
  setInterval(() => undefined, 1000);
`;

function storeUrlOf(path: string): string {
  return `file:${path}`;
}

describe.skipIf(why !== undefined)(`between two users${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  beforeEach(() => {
    chmodSync(top, 0o1777);
  });

  function asNobody(...args: readonly string[]): Promise<Ended> {
    return signalboxAs(NOBODY, args, { cwd: top, env: { HOME: top } }).ended;
  }

  async function asRoot(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return start(args, { cwd: top, env: { SUDO_UID: undefined, ...env } }).ended;
  }

  it('the one cannot open a file of the other, so cannot lock it', async () => {
    const clock = new TestClock();
    const store = await openEmbedded(directory, { clock });
    const cat = ['-c', 'cd "$1" || for file in store.db store.db-shm; do cat "$1/$file"; done', 'sh', directory];
    const { stderr } = await startAs(NOBODY, '/bin/sh', cat).ended;
    expect(stderr.match(/Permission denied|can't cd/g)).toHaveLength(3);
    await store.close();
  });

  it('the user learns whose it is, and what to do', async () => {
    await (await openEmbedded(directory)).close();
    const { code, stderr } = await asNobody('who', '--store', `file:${directory}`);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/store belongs to root \(uid 0\), and you are .*65534/);
    expect(stderr).toContain('?share=group');
  });

  it('root is refused too, as git would, and nothing in the store is touched', async () => {
    expect((await asNobody('lock', 'acquire', 'x', '--holder', 'h', '--store', `file:${directory}`)).code).toBe(0);
    const old = new Date(2001, 1, 1);
    utimesSync(storeFile(directory), old, old);
    const { code, stderr } = await asRoot(['lock', 'acquire', 'y', '--holder', 'h', '--store', `file:${directory}`]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/belongs to .*65534.*you are root/);
    expect(lstatSync(storeFile(directory)).mtime).toEqual(old);
    expect(existsSync(`${storeFile(directory)}-wal`)).toBe(false);
  });

  it('root under sudo uses the store of the user who called it, and leaves nothing there that this user cannot use', async () => {
    const store = ['--store', `file:${directory}`];
    expect((await asNobody('lock', 'acquire', 'x', '--holder', 'h', ...store)).code).toBe(0);
    const sudo = { SUDO_UID: String(NOBODY.uid) };
    expect((await asRoot(['run', '--lock', 'y', ...store, '--', 'true'], sudo)).code).toBe(0);
    for (const name of readdirSync(directory)) expect(lstatSync(join(directory, name)).uid).toBe(NOBODY.uid);
    expect(await asNobody('run', '--lock', 'y', ...store, '--', 'true')).toMatchObject({ code: 0, stderr: '' });
  });

  it('root uses the store in a repository of another user that git is told to trust, also by the URL that children get', async () => {
    for (const part of ['objects', 'refs']) mkdirSync(join(top, '.git', part), { recursive: true });
    writeFileSync(join(top, '.git', 'HEAD'), 'ref: refs/heads/main\n');
    for (const path of ['', '.git', '.git/objects', '.git/refs', '.git/HEAD'])
      chownSync(join(top, path), NOBODY.uid, NOBODY.gid);
    expect(await asNobody('run', '--lock', 'x', '--', 'true')).toMatchObject({ code: 0 });
    expect(lstatSync(join(top, '.git/signalbox')).uid).toBe(NOBODY.uid);
    const trusting = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };
    const inner = [process.execPath, CLI, 'run', '--lock', 'y', '--', 'echo', 'inside'];
    expect(await asRoot(['run', '--lock', 'x', '--', ...inner], trusting)).toMatchObject({
      code: 0,
      stdout: 'inside\n',
    });
    expect(await asNobody('run', '--lock', 'x', '--', 'true')).toMatchObject({ code: 0, stderr: '' });
  });

  it('what root makes under sudo in a directory of that user belongs to that user', async () => {
    const home = join(top, 'home');
    mkdirSync(home);
    chownSync(home, NOBODY.uid, NOBODY.gid);
    const store = ['--store', `file:${home}/store`];
    const sudo = { SUDO_UID: String(NOBODY.uid) };
    expect((await asRoot(['run', '--lock', 'y', ...store, '--', 'true'], sudo)).code).toBe(0);
    expect(await asNobody('run', '--lock', 'y', ...store, '--', 'true')).toMatchObject({ code: 0, stderr: '' });
  });

  it('the default store that root makes under sudo belongs to that user, with all directories above it', async () => {
    const home = join(top, 'home');
    mkdirSync(home);
    chownSync(home, NOBODY.uid, NOBODY.gid);
    const env = { HOME: home, XDG_STATE_HOME: undefined, SIGNALBOX_URL: undefined };
    const sudo = { ...env, SUDO_UID: String(NOBODY.uid) };
    expect(await start(['run', '--lock', 'y', '--', 'true'], { cwd: top, env: sudo }).ended).toMatchObject({ code: 0 });
    const made = readdirSync(home, { recursive: true, encoding: 'utf8' });
    expect(made).toContain('.local/state/signalbox');
    expect(made.filter((path) => lstatSync(join(home, path)).uid !== NOBODY.uid)).toEqual([]);
    expect(await signalboxAs(NOBODY, ['run', '--lock', 'y', '--', 'true'], { cwd: top, env }).ended).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  it.each(['store.db', 'store.db-wal', 'bells'])(
    '%s of another user in a directory of one’s own is refused',
    async (name) => {
      mkdirSync(directory);
      if (name === 'bells') mkdirSync(join(directory, name));
      else writeFileSync(join(directory, name), '');
      chownSync(join(directory, name), NOBODY.uid, NOBODY.gid);
      const { message } = await refusal(openEmbedded(directory));
      expect(message).toMatch(new RegExp(`${name} belongs to .*65534.* runs as root`));
    },
  );
});
