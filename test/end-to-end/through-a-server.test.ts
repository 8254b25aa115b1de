// The command line of somebody who cannot open the store: `--store http://…`, or SIGNALBOX_URL, and a token.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type Ended, Scratch, signalbox, start, type Started } from '../support/cli.ts';

let scratch: Scratch;
let server: Started;
let url: string;
let token: string;
let worker: string;

beforeAll(async () => {
  scratch = new Scratch();
  server = scratch.start('serve', '--port', '0', '--json', '--allow-commands');
  let text = '';
  server.child.stdout?.on('data', (data: string) => (text += data));
  await server.printed('"url"');
  ({ url } = JSON.parse(text) as { url: string });
  token = (await scratch.run('token', 'local')).stdout.trim();
  worker = (await scratch.run('token', 'create', 'agents', '--role', 'worker', '--holder', 'agent:*')).stdout.trim();
});
afterAll(async () => {
  server.child.kill('SIGKILL');
  await server.ended;
  scratch.remove();
});

const environment = (secret = token): Record<string, string> => ({
  SIGNALBOX_URL: url,
  SIGNALBOX_SERVER_TOKEN: secret,
});

function through(...args: readonly string[]): Promise<Ended> {
  return signalbox(args, { env: environment(), cwd: scratch.dir });
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await through(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
}

/** What differs from one look to the next, or says which process looked. */
const CHANGES = ['at', 'heldMs', 'waitedMs', 'renewedMs', 'remainingMs', 'revision'];

describe('through a server', () => {
  it('run excludes others who use the store, tells who holds it, re-enters, and passes its exit code on', async () => {
    const held = start(
      ['run', '--lock', 'main', '--reason', 'a release', '--', 'sh', '-c', 'echo in; exec sleep 600'],
      {
        env: environment(),
        cwd: scratch.dir,
      },
    );
    await held.printed('in');
    const refused = await scratch.run('run', '--lock', 'main', '--no-wait', '--', 'true');
    expect(refused.code).toBe(75);
    expect(refused.stderr).toContain('(a release)');
    held.child.kill('SIGTERM');
    expect((await held.ended).code).toBe(143);
    expect((await scratch.json<{ isFree: boolean }>('lock', 'show', 'main')).isFree).toBe(true);
    const inner =
      'echo "$SIGNALBOX_TOKEN_MAIN"; "$0" "$1" run --lock main -- sh -c \'echo "$SIGNALBOX_TOKEN"; exit 3\'';
    const nested = await through(
      'run',
      '--lock',
      'main',
      '--sem',
      'builds=2/3',
      '--',
      'sh',
      '-c',
      inner,
      process.execPath,
      CLI,
    );
    expect(nested.code).toBe(3);
    const [outer, within] = nested.stdout.trim().split('\n');
    expect(within).toBe(outer);
    expect((await scratch.json<{ isFree: boolean }>('lock', 'show', 'main')).isFree).toBe(true);
    expect((await scratch.json<{ usedSlots: number }>('sem', 'show', 'builds')).usedSlots).toBe(0);
  });

  it('a wait is told, is granted in its turn, and says who held it when its time is over', async () => {
    const { token: held } = await scratch.json<{ token: number }>('lock', 'acquire', 'staging', '--holder', 'ann');
    const late = await through('lock', 'acquire', 'staging', '--holder', 'bob', '--wait', '100ms');
    expect(late.code).toBe(75);
    expect(late.stderr).toContain('held by ann');
    const waiting = start(['lock', 'acquire', 'staging', '--holder', 'bob'], { env: environment(), cwd: scratch.dir });
    const queue = async (): Promise<number> =>
      (await scratch.json<{ waiting: unknown[] }>('lock', 'show', 'staging')).waiting.length;
    await expect.poll(queue).toBe(1);
    await scratch.run('lock', 'release', 'staging', '--holder', 'ann', '--token', String(held));
    const { code, stdout } = await waiting.ended;
    expect([code, Number(stdout) > held]).toEqual([0, true]);
    expect((await through('lock', 'renew', 'staging', '--holder', 'bob', '--token', stdout.trim())).stdout).toContain(
      'renewed',
    );
    expect((await through('lock', 'release', 'staging', '--holder', 'eve')).code).toBe(77);
    expect((await through('lock', 'break', 'staging', '--reason', 'over')).stdout).toContain('ended 1 hold');
    expect((await through('lock', 'configure', 'staging', '--max-hold', '10m')).stdout).toContain('at most 10 min');
    expect((await through('lock', 'list', '--names')).stdout.split('\n')).toContain('staging');
    expect((await through('sem', 'configure', 'api', '--capacity', '2')).code).toBe(0);
    expect((await through('sem', 'resize', 'api', '--capacity', '3')).stdout).toContain('3 slots');
    expect((await json<{ capacity: number }>('sem', 'show', 'api')).capacity).toBe(3);
  });

  it('tasks are published, run and listed, and events are tailed', async () => {
    expect((await through('task', 'publish', 'build-7', '--data', '{"n":1}')).code).toBe(0);
    expect((await through('task', 'publish', 'build-7')).code).not.toBe(0);
    const ran = await through('task', 'run', 'build-7', '--', 'sh', '-c', 'cat "$SIGNALBOX_TASK_FILE"');
    expect(ran.code).toBe(0);
    expect(await scratch.json('task', 'show', 'build-7')).toMatchObject({ status: 'complete', result: { n: 1 } });
    await scratch.run('task', 'publish', 'build-8');
    const claimed = await json<{ token: number; task: string }>('task', 'claim', '--holder', 'agent:7', '--ttl', '60s');
    expect(claimed.task).toBe('build-8');
    const worked = await through('task', 'complete', 'build-8', '--token', String(claimed.token));
    expect(worked.stdout).toContain('complete');
    expect((await through('task', 'claim', '--holder', 'agent:7')).code).toBe(1);
    expect((await json<{ tasks: { task: string }[] }>('task', 'list')).tasks.map(({ task }) => task)).toEqual([
      'build-7',
      'build-8',
    ]);
    const past = await through('events', 'tail', 'task:completed', '--since', '1h', '--no-follow', '--json');
    expect(past.stdout.trim().split('\n')).toHaveLength(2);
    const tail = start(['events', 'tail', 'bell:*', '--json'], { env: environment(), cwd: scratch.dir });
    expect((await tail.ended).code).toBe(64);
  });

  it('looks and guards answer what the store answers', async () => {
    await scratch.run('lock', 'acquire', 'looked', '--holder', 'ann', '--reason', 'why');
    for (const what of [['status'], ['lock', 'show', 'looked']]) {
      const [theirs, ours] = [await scratch.json<object>(...what), await json<object>(...what)];
      const plain = (value: object): unknown =>
        JSON.parse(JSON.stringify(value, (key, one) => (CHANGES.includes(key) ? undefined : one)));
      expect(plain(ours), what.join(' ')).toEqual(plain(theirs));
    }
    expect((await through('who')).stdout).toMatch(/looked +ann/);
    expect((await through('guard', 'check', '-e', 'lockFree: looked')).code).toBe(1);
    expect((await through('guard', 'check', '-e', 'lockFree: other')).code).toBe(0);
    const guarded = await through(
      'run',
      '--lock',
      'other',
      '--guard',
      '{"lockFree":"looked"}',
      '--no-wait',
      '--',
      'true',
    );
    expect(guarded.code).toBe(75);
    expect((await through('run', '--lock', 'other', '--guard', '{"lockFree":"other"}', '--', 'true')).code).toBe(0);
    expect((await through('bus', 'put', 'config/colour', 'red')).code).toBe(0);
    expect((await through('bus', 'get', 'config/colour')).stdout.trim()).toBe('red');
  });

  it('pipelines are shown, resumed by the server, and cancelled', async () => {
    const book = scratch.path('book.yaml');
    writeFileSync(book, 'name: book\nphases:\n  - name: one\n    run: "true"\n  - name: two\n    run: echo two\n');
    const failing = 'name: book\nphases:\n  - name: one\n    run: "false"\n';
    expect((await scratch.run('pipeline', 'run', book, '--id', 'p-1')).code).toBe(0);
    expect((await through('pipeline', 'status', 'p-1')).stdout).toContain('two');
    expect((await through('pipeline', 'status', 'p-1', '--log', 'two')).stdout).toContain('two');
    writeFileSync(book, failing);
    expect((await scratch.run('pipeline', 'run', book, '--id', 'p-2')).code).toBe(1);
    const again = await through('pipeline', 'resume', 'p-2', '--from', 'one');
    expect(again.code).toBe(1);
    expect((await json<{ phases: { runs: number }[] }>('pipeline', 'status', 'p-2')).phases[0]?.runs).toBe(2);
    expect((await through('pipeline', 'cancel', 'p-1')).code).toBe(1);
    expect((await through('pipeline', 'cancel', 'p-9')).code).toBe(1);
  });

  it('what needs the store itself says so by its name', async () => {
    for (const what of [
      ['export', 'there'],
      ['bus', 'list'],
      ['members', 'join', 'm', '--', 'true'],
      ['task', 'configure'],
      ['token', 'list'],
      ['maintain'],
    ]) {
      const { code, stderr } = await through(...what);
      expect(code, what.join(' ')).toBe(64);
      expect(stderr).toContain(`signalbox ${what[0]}`);
      expect(stderr).toContain('does not work through a server');
    }
  });

  it('a token comes from a file too, and says what it does not allow', async () => {
    const file = scratch.path('token');
    writeFileSync(file, `${worker}\n`);
    chmodSync(file, 0o600);
    const env = { SIGNALBOX_URL: url, SIGNALBOX_TOKEN_FILE: file };
    const own = await signalbox(['lock', 'acquire', 'bound', '--holder', 'agent:1'], { env, cwd: scratch.dir });
    expect(own.code).toBe(0);
    const foreign = await signalbox(['lock', 'acquire', 'bound-2', '--holder', 'ann'], { env, cwd: scratch.dir });
    expect([foreign.code, foreign.stderr]).toEqual([69, expect.stringContaining('acts only for agent:*')]);
    const none = await signalbox(['who', '--store', url], { cwd: scratch.dir, env: { XDG_STATE_HOME: scratch.dir } });
    expect([none.code, none.stderr]).toEqual([64, expect.stringContaining('SIGNALBOX_TOKEN_FILE')]);
    const gone = await signalbox(['who', '--store', 'http://127.0.0.1:1'], { env: environment(), cwd: scratch.dir });
    expect([gone.code, gone.stderr]).toEqual([69, expect.stringContaining('cannot be reached')]);
    expect(readFileSync(file, 'utf8')).toContain(worker);
  });
});
