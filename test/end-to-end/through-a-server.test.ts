// The command line of somebody who cannot open the store: `--store http://…`, or SIGNALBOX_URL, and a token.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openEmbedded, Value } from 'signalbox/store';
import { makeCertificates } from '../server/certificates.ts';
import { CLI, type Ended, inResident, Scratch, signalbox, start, type Started } from '../support/cli.ts';
import { Proxy } from '../support/etcd/proxy.ts';
import { inFile } from '../support/stores.ts';
import { until } from '../support/until.ts';

let scratch: Scratch;
let server: Started;
let url: string;
let token: string;
let worker: string;

beforeAll(async () => {
  scratch = new Scratch((directory) => `${inFile(directory)}?witness=on`);
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

/** Whether a process has run its handlers of the signals that were sent to it, and waits for what comes next. */
function hasHandled(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return /^State:\s+S/m.test(status) && !/^(?:Sig|Shd)Pnd:\s+0*[1-9a-f]/m.test(status);
}

function through(...args: readonly string[]): Promise<Ended> {
  return inResident(args, { env: environment(), cwd: scratch.dir });
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await through(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
}

describe('a server that refuses', () => {
  it('a token leads to the variables and commands that give another, and not to a header of HTTP', async () => {
    const options = { env: environment('sbx_wrong'), cwd: scratch.dir };
    const { code, stderr } = await inResident(['who'], options);
    expect({ code, lines: stderr.trimEnd().split('\n') }).toEqual({
      code: 77,
      lines: [
        'signalbox: this token is unknown, expired or revoked (from SIGNALBOX_SERVER_TOKEN)',
        '  set SIGNALBOX_TOKEN_FILE to the file that has a valid one, or SIGNALBOX_SERVER_TOKEN to the token itself',
        '  where the store is, signalbox token local prints one for that machine, and signalbox token create makes one',
      ],
    });
    const told = JSON.parse((await inResident(['who', '--json'], options)).stderr) as object;
    expect(told).toMatchObject({ error: { code: 'forbidden' } });
  });

  it('a holder for which a token does not act leads to --holder, and to the names that it may have', async () => {
    const options = { env: environment(worker), cwd: scratch.dir };
    const { code, stderr } = await inResident(['run', '--lock', 'main', '--', 'true'], options);
    expect({ code, lines: stderr.trimEnd().split('\n') }).toEqual({
      code: 77,
      lines: [
        expect.stringMatching(/^signalbox: this token acts only for agent:\*, and not for run:/),
        '  say who you are: --holder NAME, where NAME fits agent:*',
      ],
    });
  });

  it('to show a record that it does not keep says how to switch it on at the server', async () => {
    const without = new Scratch();
    const serving = without.start('serve', '--port', '0', '--json');
    onTestFinished(async () => {
      serving.child.kill('SIGKILL');
      await serving.ended;
      without.remove();
    });
    let text = '';
    serving.child.stdout?.on('data', (data: string) => (text += data));
    await serving.printed('"url"');
    const at = (JSON.parse(text) as { url: string }).url;
    const secret = (await without.run('token', 'local')).stdout.trim();
    const env = { SIGNALBOX_URL: at, SIGNALBOX_SERVER_TOKEN: secret };
    for (const args of [['tail', '--no-follow'], ['export'], ['record', 'a', 'b']]) {
      const { code, stderr } = await inResident(['witness', ...args], { env, cwd: without.dir });
      expect({ args, code }).toEqual({ args, code: 64 });
      expect(stderr).toContain('\n  to switch it on, on the machine of the server:\n');
    }
  });
});

describe('through a server with TLS', () => {
  it('works once its authority is known, and says what to do before', async () => {
    const { cert, key } = makeCertificates(scratch.dir, 'tls');
    const secure = scratch.start('serve', '--port', '0', '--json', '--cert', cert, '--key', key);
    let text = '';
    secure.child.stdout?.on('data', (data: string) => (text += data));
    await secure.printed('"url"');
    const { url: at } = JSON.parse(text) as { url: string };
    expect(at).toMatch(/^https:/);
    const env = { SIGNALBOX_URL: at, SIGNALBOX_SERVER_TOKEN: token };
    const unknown = await signalbox(['who'], { env: { ...env, NODE_EXTRA_CA_CERTS: undefined }, cwd: scratch.dir });
    expect([unknown.code, unknown.stderr]).toEqual([69, expect.stringContaining('NODE_EXTRA_CA_CERTS')]);
    const known = { env: { ...env, NODE_EXTRA_CA_CERTS: cert }, cwd: scratch.dir };
    const ran = await signalbox(['run', '--lock', 'secure', '--', 'sh', '-c', 'echo "$SIGNALBOX_TOKEN"'], known);
    expect([ran.code, ran.stderr, Number(ran.stdout) > 0]).toEqual([0, '', true]);
    secure.child.kill('SIGTERM');
    await secure.ended;
  });
});

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

  it('a run inside a run that only reads may write, and the outer run still has the lock then', async () => {
    const inner = '"$0" "$1" run --lock docs -- echo writes; "$0" "$1" --json lock show docs; exit 3';
    const nested = await through('run', '--lock', 'docs:shared', '--', 'sh', '-c', inner, process.execPath, CLI);
    expect([nested.code, nested.stderr]).toEqual([3, '']);
    const [writes, shown = ''] = nested.stdout.trim().split('\n');
    expect([writes, (JSON.parse(shown) as { isFree: boolean }).isFree]).toEqual(['writes', false]);
    expect((await scratch.json<{ isFree: boolean }>('lock', 'show', 'docs')).isFree).toBe(true);
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

  it('a hold by hand may last long, keeps its place by a ticket, and is tied to no process of this machine', async () => {
    const long = await json<{ ttlMs: number; token: number }>(
      ...['lock', 'acquire', 'long', '--holder', 'ann', '--ttl', '5m'],
    );
    expect(long.ttlMs).toBe(300_000);
    const bob = ['lock', 'acquire', 'long', '--holder', 'bob', '--ttl', '10m', '--wait', '50ms'];
    const late = await through(...bob, '--ticket', '--');
    expect([late.code, late.stderr]).toEqual([75, expect.stringContaining('go on with the same command')]);
    const ticket = late.stdout.trim();
    await through('lock', 'release', 'long', '--holder', 'ann', '--token', String(long.token));
    const collected = await json<{ holder: string; ttlMs: number }>(...bob, '--ticket', ticket);
    expect(collected).toMatchObject({ holder: 'bob', ttlMs: 600_000 });
    const slots = ['sem', 'acquire', 'gpu', '--capacity', '2', '--holder', 'ann', '--ttl', '5m', '--ticket', '--json'];
    expect(JSON.parse((await through(...slots)).stdout)).toMatchObject({ ttlMs: 300_000, slots: [0] });
    const tied = await through('lock', 'acquire', 'tied', '--holder', 'ann', '--pid', String(process.pid));
    expect([tied.code, tied.stderr]).toEqual([64, expect.stringContaining('use a short --ttl')]);
    const run = await through('run', '--lock', 'long', '--ticket', '--', 'true');
    expect([run.code, run.stderr]).toEqual([64, expect.stringContaining('signalbox lock acquire --ticket')]);
  });

  it('where no server is, every wait ends and says so', async () => {
    const nowhere = { ...environment(), SIGNALBOX_URL: 'http://127.0.0.1:2' };
    const all = await Promise.all(
      [
        ['guard', 'wait', '-e', 'lockFree: main', '--timeout', '10m'],
        ['pipeline', 'cancel', 'p-1'],
        ['events', 'tail'],
        ['events', 'tail', '--since', '1h', '--no-follow'],
        ['task', 'work', '--', 'true'],
      ].map(async (args) => [args, await signalbox(args, { env: nowhere, cwd: scratch.dir })] as const),
    );
    for (const [args, { code, stderr }] of all) {
      expect([code, stderr], args.join(' ')).toEqual([69, expect.stringContaining('cannot be reached')]);
    }
  });

  it('what follows says on stderr that the server is away, and that it is back, and goes on', async () => {
    const way = await Proxy.start(Number(new URL(url).port));
    const env = { ...environment(), SIGNALBOX_URL: `http://127.0.0.1:${way.port}` };
    const following = [
      ['events', 'tail', 'lock:acquired', '--since', '1h', '--json'],
      ['witness', 'tail', '-n', '1', '--json'],
      ['members', 'watch', '--json'],
    ].map((args) => start(args, { env, cwd: scratch.dir }));
    await scratch.run('lock', 'acquire', 'before', '--holder', 'ann');
    await Promise.all(following.map((one) => one.printed('}\n')));
    way.cut();
    await Promise.all(following.map((one) => one.complained('; trying again\n')));
    way.goOn();
    await Promise.all(following.map((one) => one.complained('signalbox: the server is back\n')));
    await scratch.run('lock', 'acquire', 'after', '--holder', 'ann');
    await Promise.all(following.slice(0, 2).map((one) => one.printed('lock/after')));
    for (const one of following) {
      one.child.kill('SIGINT');
      const { code, stdout, stderr } = await one.ended;
      expect(code).toBe(130);
      for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toBeTypeOf('object');
      expect(stderr).toMatch(
        /^signalbox: http:\S+ cannot be reached: .*; trying again\nsignalbox: the server is back\n$/,
      );
    }
    await way.stop();
  });

  it('waits say so too, unless they are quiet, and who shows their processes instead of that of the server', async () => {
    const way = await Proxy.start(Number(new URL(url).port));
    const options = { env: { ...environment(), SIGNALBOX_URL: `http://127.0.0.1:${way.port}` }, cwd: scratch.dir };
    await scratch.run('lock', 'acquire', 'far', '--holder', 'ann', '--ttl', '1h');
    const loud = ['run', '--lock', 'far', '--holder', 'agent:1', '--', 'true'];
    const byHand = ['lock', 'acquire', 'far', '--holder', 'agent:2'];
    const quiet = ['run', '--quiet', '--lock', 'far', '--holder', 'agent:3', '--', 'true'];
    const waits = [loud, byHand, quiet].map((args) => start(args, options));
    interface Far {
      readonly waiting: readonly { readonly holder: string; readonly session: { readonly pid: number } | null }[];
    }
    const waiting = async (): Promise<Far['waiting']> => (await scratch.json<Far>('lock', 'show', 'far')).waiting;
    await until(async () => (await waiting()).length === 3);
    const pids = [waits[0]?.child.pid, undefined, waits[2]?.child.pid];
    const shown = Object.fromEntries((await waiting()).map(({ holder, session }) => [holder, session?.pid]));
    expect(shown).toEqual({ 'agent:1': pids[0], 'agent:2': pids[1], 'agent:3': pids[2] });
    for (const { stdout } of [await scratch.run('who', 'far'), await through('who', 'far')]) {
      expect(stdout).toContain(`pid ${pids[0]} on `);
      expect(stdout).not.toContain(`pid ${server.child.pid} `);
    }
    way.cut();
    await Promise.all(waits.slice(0, 2).map((one) => one.complained('; trying again\n')));
    way.goOn();
    await Promise.all(waits.slice(0, 2).map((one) => one.complained('signalbox: the server is back\n')));
    for (const one of waits) one.child.kill('SIGINT');
    const ended = await Promise.all(waits.map((one) => one.ended));
    for (const { stderr } of ended.slice(0, 2)) expect(stderr.match(/trying again/g)).toHaveLength(1);
    expect(ended[2]).toMatchObject({ code: 130, stderr: '' });
    await way.stop();
  });

  it('a standing worker does the tasks, and of two that want to lead one does', async () => {
    for (const id of ['w-1', 'w-2']) await scratch.run('task', 'publish', id, '--capability', 'through');
    const done = await through('task', 'work', '--exit-when-idle', '--capability', 'through', '--', 'true');
    expect(done.code).toBe(0);
    for (const id of ['w-1', 'w-2'])
      expect(await scratch.json('task', 'show', id)).toMatchObject({ status: 'complete' });
    const options = { env: environment(), cwd: scratch.dir };
    const lead = ['lead', '--name', 'cron', '--verbose', '--'];
    const first = start([...lead, 'sh', '-c', 'echo leads; exec sleep 600'], options);
    await first.printed('leads');
    const second = start([...lead, 'sh', '-c', 'echo "$SIGNALBOX_TOKEN"'], options);
    await second.complained('waiting');
    first.child.kill('SIGTERM');
    const { code, stdout } = await second.ended;
    expect([code, Number(stdout) > 0]).toEqual([0, true]);
    await first.ended;
  });

  it('members join begins nothing if it was to end before it heard that it is a member', async () => {
    const way = await Proxy.start(Number(new URL(url).port));
    way.stall('answers');
    const env = { ...environment(), SIGNALBOX_URL: `http://127.0.0.1:${way.port}` };
    const join = start(['members', 'join', 'hasty', '--', 'echo', 'begun'], { env, cwd: scratch.dir });
    const names = async (): Promise<string> => (await scratch.run('members', 'list', '--names')).stdout;
    await until(async () => (await names()).includes('hasty'));
    join.child.kill('SIGTERM');
    // The answer must not overtake the signal.
    await until(() => hasHandled(join.child.pid ?? 0));
    way.goOn();
    expect(await join.ended).toEqual({ code: 143, stdout: '', stderr: '' });
    expect(await names()).not.toContain('hasty');
    await way.stop();
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
    const store = await openEmbedded(scratch.path('store'));
    const broken = { do: 'put', key: 's/pipeline/odd', value: Value.text('{') } as const;
    await store.transaction({ compare: [], success: [broken], failure: [] });
    await store.close();
    const [theirs, ours] = [await scratch.run('pipeline', 'list'), await through('pipeline', 'list')];
    expect([ours.stdout, ours.stderr]).toEqual([theirs.stdout, expect.stringContaining('skipped')]);
    expect(ours.stderr).toBe(theirs.stderr);
    expect((await through('pipeline', 'forget', 'p-1')).stdout).toBe('pipeline/p-1: deleted\n');
    expect((await through('pipeline', 'forget', 'p-1')).code).toBe(1);
  });

  it('a member joins for as long as its command runs, others see it, and its id is its own', async () => {
    const watching = start(['members', 'watch', '--json', '-n', '2'], { env: environment(), cwd: scratch.dir });
    await watching.printed('"joined":[]');
    const join = ['members', 'join', 'agent:7', '--asset', 'gpu', '--exclusive', '--metadata', '{"host":"a"}', '--'];
    const joined = start([...join, 'sh', '-c', 'echo "$SIGNALBOX_MEMBER"; exec sleep 600'], {
      ...{ env: environment(worker), cwd: scratch.dir },
    });
    await joined.printed('agent:7');
    const { members } = await scratch.json<{ members: object[] }>('members', 'list');
    expect(members).toMatchObject([{ id: 'agent:7', metadata: { host: 'a' }, assets: [{ id: 'gpu' }] }]);
    const again = await through(...join, 'true');
    expect([again.code, again.stderr]).toEqual([75, expect.stringContaining('a member with this id is alive')]);
    joined.child.kill('SIGTERM');
    expect((await joined.ended).code).toBe(143);
    const { code, stdout } = await watching.ended;
    const views = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect([code, views]).toEqual([
      0,
      [
        expect.objectContaining({ joined: [], coordinator: null }),
        expect.objectContaining({ joined: ['agent:7'], coordinator: 'agent:7' }),
        expect.objectContaining({ left: ['agent:7'], coordinator: null }),
      ],
    ]);
    expect((await through('members', 'list', '--names')).stdout).toBe('');
  });

  it('a guard is waited for at the server', async () => {
    const { token: held } = await scratch.json<{ token: number }>('lock', 'acquire', 'gate', '--holder', 'ann');
    const waiting = start(['guard', 'wait', '-e', 'lockFree: gate'], { env: environment(), cwd: scratch.dir });
    await waiting.complained('waiting');
    await scratch.run('lock', 'release', 'gate', '--holder', 'ann', '--token', String(held));
    expect((await waiting.ended).code).toBe(0);
  });

  it('the record is verified on this side, exported, and tokens are managed', async () => {
    expect((await through('witness', 'verify')).stdout).toMatch(/^good: [\d,]+ entries in /);
    const file = scratch.path('record.jsonl');
    expect((await through('witness', 'export', '-o', file)).code).toBe(0);
    expect((await signalbox(['witness', 'verify', file], { cwd: scratch.dir })).stdout).toMatch(/^good: /);
    // Not everything, where a part was asked for.
    const part = await through('witness', 'export', '--resource', 'lock/gate', '--resource', 'lock/none');
    const entries = part.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; resource: string });
    const named = entries.filter(({ kind }) => kind === 'entry').map(({ resource }) => resource);
    expect([...new Set(named)]).toEqual(['lock/gate']);
    const made = await json<{ secret: string; id: string }>('token', 'create', 'visitor', '--role', 'viewer');
    expect((await through('token', 'list')).stdout).toMatch(/visitor +viewer/);
    const looks = { env: environment(made.secret), cwd: scratch.dir };
    const refused = await signalbox(['token', 'list'], looks);
    expect([refused.code, refused.stderr]).toEqual([77, expect.stringContaining('administrator')]);
    expect((await through('token', 'revoke', made.id)).stdout).toContain('revoked');
    expect((await through('token', 'revoke', made.id)).code).toBe(1);
  });

  it('what needs the store itself says so by its name', async () => {
    for (const what of [
      ['export', 'there'],
      ['bus', 'list'],
      ['task', 'configure'],
      ['token', 'local'],
      ['maintain'],
    ]) {
      const { code, stderr } = await through(...what);
      expect(code, what.join(' ')).toBe(64);
      expect(stderr).toContain(`signalbox ${what[0]}`);
      expect(stderr).toContain('does not work through a server');
      if (what[0] === 'token') expect(stderr).toContain('signalbox token create');
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
    expect([foreign.code, foreign.stderr]).toEqual([77, expect.stringContaining('acts only for agent:*')]);
    const none = await signalbox(['who', '--store', url], { cwd: scratch.dir, env: { XDG_STATE_HOME: scratch.dir } });
    expect([none.code, none.stderr]).toEqual([64, expect.stringContaining('SIGNALBOX_TOKEN_FILE')]);
    const gone = await signalbox(['who', '--store', 'http://127.0.0.1:1'], { env: environment(), cwd: scratch.dir });
    expect([gone.code, gone.stderr]).toEqual([69, expect.stringContaining('cannot be reached')]);
    expect(readFileSync(file, 'utf8')).toContain(worker);
  });
});
