/** A password is in no message, however its URL was mistyped; and it need not be on a command line. */
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Failure } from '../../src/failure.ts';
import { openEtcdUrl } from '../../src/store/index.ts';
import { signalbox, start } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';

beforeAll(built);

describe('a password', () => {
  const secret = 'PSECRETP';
  const url = `etcd://me:${secret}@127.0.0.1:1`;
  const mistyped = [
    `etcd//me:${secret}@h`,
    `//me:${secret}@h`,
    `me:${secret}@h`,
    `etcd:me:${secret}@h`,
    `ectd://me:${secret}@h`,
  ];

  it.each<[string, readonly string[], Readonly<Record<string, string>>?]>([
    ['as the store', ['who', '--store', mistyped[0] as string]],
    ['as the store, for programs', ['who', '--json', '--store', mistyped[1] as string]],
    ['in SIGNALBOX_URL', ['doctor'], { SIGNALBOX_URL: mistyped[2] as string }],
    ['with an unknown setting', ['who', '--store', `etcd://me@h?password=${secret}`]],
    ['without its host', ['who', '--store', `etcd://me:${secret}`]],
    ['in IF_ETCD_HOST', ['who'], { IF_ETCD_HOST: `me:${secret}@h` }],
    ['of an option that does not exist', ['who', `--stroe=${url}`]],
    ['of an option that does not exist, with no URL', ['who', `--pasword=${secret}`]],
    ['as a command', [mistyped[3] as string]],
    ['as a command of a command', ['lock', mistyped[4] as string]],
    ['as a name too many', ['list', url]],
    ['where an option is missing its value', ['run', '--lock', `--store=${url}`, '--', 'true']],
    ['of a store that does not answer', ['doctor', '--store', url]],
  ])('that was given %s is not printed', async (_, args, env = {}) => {
    const { stdout, stderr, code } = await signalbox(args, {
      cwd: tmpdir(),
      env: { XDG_STATE_HOME: '/nowhere', ...env },
    });
    expect(code).not.toBe(0);
    expect(stdout + stderr).not.toBe('');
    expect(stdout + stderr).not.toContain(secret);
  });
});

it('a password that was typed after all is hidden in ps while the command line runs', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const { child, ended } = start(['who', '--store', `etcd://me:PSECRETP@127.0.0.1:${port}`]);
  const [connection] = (await once(silent, 'connection')) as [Socket];
  const shown = readFileSync(`/proc/${child.pid}/cmdline`, 'latin1');
  connection.destroy();
  silent.close();
  child.kill('SIGKILL');
  await ended;
  expect(shown).toContain(`etcd://me@127.0.0.1:${port}`);
  expect(shown).not.toContain('PSECRETP');
});

describe('the file of a password', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-password-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const opened = async (text: string, spoil: (file: string) => void = () => undefined): Promise<string> => {
    const file = join(directory, 'password');
    rmSync(file, { recursive: true, force: true });
    writeFileSync(file, text, { mode: 0o600 });
    spoil(file);
    try {
      const store = await openEtcdUrl(`etcd://me@127.0.0.1:1?password-file=${file}`);
      await store.close();
      return 'opened';
    } catch (error) {
      return Failure.is(error, 'invalid') ? error.message : String(error);
    }
  };

  it('is accepted from its owner, alone or with a group', async () => {
    expect(await opened('secret\n')).toBe('opened');
    expect(await opened('secret', (file) => chmodSync(file, 0o640))).toBe('opened');
  });

  it.each<[string, string, RegExp, ((file: string) => void)?]>([
    [
      'others may read it',
      'secret',
      /other users may read or write \(mode 644\): chmod 600/,
      (file) => chmodSync(file, 0o644),
    ],
    ['a group may write it', 'secret', /other users/, (file) => chmodSync(file, 0o660)],
    ['it is empty', '\n', /empty/],
    ['it has two lines', 'secret\nsecret\n', /more than one line/],
    ['it is not there', '', /cannot be read: ENOENT/, (file) => rmSync(file)],
    ['it is a directory', '', /no file/, (file) => (rmSync(file), mkdirSync(file, { mode: 0o700 }))],
  ])('is refused if %s, and not shown', async (_, text, why, spoil) => {
    const told = await opened(text, spoil);
    expect(told).toMatch(why);
    expect(told).not.toContain('secret');
  });

  // Only root can give a file away.
  it.skipIf(process.getuid?.() !== 0)('is refused if another user owns it', async () => {
    expect(await opened('secret', (file) => chownSync(file, 65_534, 65_534))).toMatch(/belongs to another user/);
  });
});
