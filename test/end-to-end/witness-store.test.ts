// The record in a store, as the command line shows it.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { open } from 'signalbox';
import type { WitnessEntry } from '../../src/core/index.ts';
import { Scratch, start, type Started } from '../support/cli.ts';

describe('the witness on the command line', () => {
  let on: Scratch;
  let off: Scratch;

  beforeAll(async () => {
    off = new Scratch();
    on = new Scratch();
    await using box = await open(`${on.store}?witness=on`, { maintains: false });
    for (let i = 0; i < 3; i++) await (await box.lock('main').acquire({ holder: 'ann' })).release();
  });
  afterAll(() => {
    on.remove();
    off.remove();
  });

  it.each([
    ['tail', '--no-follow'],
    ['show', 'lock/main'],
    ['verify'],
    ['checkpoint'],
    ['configure'],
    ['export'],
    ['trim', '--without-export'],
    ['record', 'a', 'b'],
  ])('%s says that the witness of a store is off, and how to switch it on', async (...args) => {
    const { code, stdout, stderr } = await off.run('witness', ...args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toContain('the witness of this store is off');
    expect(stderr).toContain(`\n  signalbox witness tail --no-follow --store '${off.store}?witness=on'\n`);
  });

  it('the command that switches it on is for the store in use, with its settings', async () => {
    const { stderr } = await off.run('--store', `${off.store}?durability=full&witness=off`, 'witness', 'verify');
    expect(stderr).toContain(`--store '${off.store}?durability=full&witness=on'\n`);
  });

  it.each(['record.jsonl', 'record.jsonl.gz'])(
    'an export to %s that fails leaves no file that is in the way of the next',
    async (name) => {
      const file = off.path(name);
      expect(await off.run('witness', 'export', '-o', file)).toMatchObject({ code: 64 });
      expect(existsSync(file)).toBe(false);
      writeFileSync(file, 'of somebody else');
      expect(await on.run('witness', 'export', '-o', file)).toMatchObject({
        code: 64,
        stderr: `signalbox: ${file} is there already, and is not overwritten\n`,
      });
      expect(readFileSync(file, 'utf8')).toBe('of somebody else');
    },
  );

  it('verify without a file reads the store, also after a checkpoint that nobody signed', async () => {
    const key = on.path('witness.key');
    await on.run('witness', 'key', 'create', key);
    const counts = { ok: true, entries: 6, chains: 1 };
    expect(await on.json('witness', 'verify')).toMatchObject(counts);
    expect(await on.run('witness', 'checkpoint', '--sign', key)).toMatchObject({ code: 0 });
    expect(await on.run('witness', 'checkpoint')).toMatchObject({ code: 0 });
    const trusted = await on.json('witness', 'verify', '--key', `${key}.pub`);
    expect(trusted).toMatchObject({ ...counts, checkpoints: 2, signed: 1 });
  });

  it('trim signs its checkpoint, and leaves an export that verifies', async () => {
    const key = on.path('witness.key');
    const file = on.path('segment.jsonl.gz');
    const trimmed = await on.json('witness', 'trim', '--to', file, '--sign', key);
    expect(trimmed).toMatchObject({ trimmed: 6, file });
    expect(await on.json('witness', 'verify', file, '--key', `${key}.pub`)).toMatchObject({ ok: true, entries: 6 });
    expect(await on.json('witness', 'verify', '--key', `${key}.pub`)).toMatchObject({ ok: true, trimmed: 6 });
    // A file that is there is not overwritten, and nothing is trimmed then.
    expect(await on.run('witness', 'trim', '--to', file)).toMatchObject({ code: 64 });
    expect(existsSync(file)).toBe(true);
    expect(readdirSync(on.path('.')).filter((name) => name.startsWith('segment'))).toEqual(['segment.jsonl.gz']);
  });

  it('configure says how much is kept, and doctor warns that the record is nearly full', async () => {
    const kept = await on.json('witness', 'configure', '--most-entries', '1', '--checkpoint-every', '15m');
    expect(kept).toMatchObject({ mostEntries: 1, checkpointMs: 900_000, entries: 1, filled: 1 });
    const { findings } = await on.json<{ findings: { check: string }[] }>('doctor');
    expect(findings).toContainEqual(expect.objectContaining({ check: 'witness', verdict: 'warn' }));
  });
});

describe('what the witness tells', () => {
  let scratch: Scratch;

  beforeAll(async () => {
    scratch = new Scratch();
    const url = `${scratch.store}?witness=on`;
    await using box = await open(url, { maintains: false });
    await using traced = await open(url, { maintains: false, traceId: 'build-12' });
    const hold = await box.lock('main').acquire({ holder: 'ann', reason: 'deploys 1.2', metadata: { pr: 41 } });
    await hold.release();
    await (await traced.lock('main').acquire({ holder: 'bob', mode: 'shared' })).release();
    await (await box.lock('other').acquire({ holder: 'bob' })).release();
    await box.tasks.publish('sum', { numbers: [1, 2] });
  });
  afterAll(() => scratch.remove());

  /** Without what differs from run to run. */
  const told = (text: string): readonly string[] =>
    text
      .trimEnd()
      .replace(/\d{4}-\d\d-\d\d/g, 'DAY')
      .replace(/\d\d:\d\d:\d\d\.\d{3}/g, 'TIME')
      .replace(/, after \d+ \w+ of waiting/g, '')
      .replace(/token \d+/g, 'token N')
      .split('\n');

  it('show tells the story of one resource, and says so if there is none', async () => {
    const { code, stdout, stderr } = await scratch.run('witness', 'show', 'lock/main');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // Midnight may come in between.
    expect(told(stdout).filter((line) => line !== 'DAY, in UTC')).toEqual([
      '    #1  TIME  ann         acquired, token N, "deploys 1.2", metadata {"pr":41}',
      '    #2  TIME  ann         released, token N',
      '    #3  TIME  bob         acquired, token N, shared, trace build-12',
      '    #4  TIME  bob         released, token N, shared, trace build-12',
    ]);
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\d, in UTC\n/);
    expect(await scratch.run('witness', 'show', 'lock/*')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining("signalbox witness tail --resource 'lock/*'"),
    });
  });

  it.each([
    [
      ['--actor', 'bob', '--resource', 'lock/m*'],
      ['lock/main 3', 'lock/main 4'],
    ],
    [['--event', 'lock:rel*', '--trace', 'build-12'], ['lock/main 4']],
    [['--component', 'task', '--since', '1h', '--until', '0s'], ['task/sum 1']],
    [['--since', '0s'], []],
  ])('tail %s prints these and no others', async (filters, found) => {
    const { code, stdout } = await scratch.run('witness', 'tail', '--no-follow', '--json', ...filters);
    const entries = stdout.split('\n').filter((line) => line !== '');
    const names = entries
      .map((line) => JSON.parse(line) as WitnessEntry)
      .map(({ resource, seq }) => `${resource} ${seq}`);
    expect({ code, names: names.sort() }).toEqual({ code: 0, names: found });
  });

  it('show takes the same filters', async () => {
    const bob = await scratch.run(
      'witness',
      'show',
      'lock/main',
      '--actor',
      'bob',
      '--event',
      'lock:a*',
      '--since',
      '1h',
    );
    expect(told(bob.stdout).slice(1)).toEqual(['    #3  TIME  bob         acquired, token N, shared, trace build-12']);
    const old = await scratch.run('witness', 'show', 'lock/main', '--until', '1h');
    expect(old).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no such entry of lock/main') });
  });

  it('record enters something of the user, and of what is sensitive only a salted hash', async () => {
    const said = ['--actor', 'ann', '--trace', 'build-12', '--payload', '{"version":"1.2"}'];
    expect(await scratch.run('witness', 'record', 'deploy', 'deploy:started', ...said)).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: 'entered as component/deploy #1\n',
    });
    const hidden = ['--payload', '"password"', '--sensitive'];
    const entry = await scratch.json<WitnessEntry>('witness', 'record', 'deploy', 'deploy:done', ...hidden);
    const data = { bytes: 10, salt: expect.stringMatching(/^[0-9a-f]{32}$/), sha256: expect.any(String) };
    expect(entry).toMatchObject({ resource: 'component/deploy', seq: 2, commands: [{ detail: { data } }] });
    expect(JSON.stringify(entry)).not.toContain('password');
    const { stdout } = await scratch.run('witness', 'show', 'component/deploy');
    expect(told(stdout).slice(1)[0]).toBe(
      '    #1  TIME  ann         deploy:started, data {"version":"1.2"}, trace build-12',
    );
    expect(stdout).toContain('deploy:done, data of 10 bytes, hidden');
  });

  it('export writes the entries of some resources, which verify without the others', async () => {
    const some = ['--resource', 'lock/main', '--resource', 'task/sum'];
    const file = scratch.path('part.jsonl');
    // The header, four entries of the lock, one of the task, and the end.
    expect(await scratch.json('witness', 'export', ...some, '-o', file)).toEqual({ file, lines: 7 });
    expect(await scratch.json('witness', 'verify', file)).toMatchObject({ ok: true, entries: 5, chains: 2 });
  });

  it('checkpoint keeps what it makes in a file, a git ref and what a command does, and verify compares all with the record', async () => {
    execFileSync('git', ['init', '-q', scratch.dir]);
    const [file, copy] = [scratch.path('anchors.jsonl'), scratch.path('copy.jsonl')];
    const places = [file, 'git:witness', `command:printf '%s\\n' "$SIGNALBOX_CHECKPOINT" >> '${copy}'`];
    const made: { readonly number: number }[] = [];
    for (const place of places) made.push(await scratch.json('witness', 'checkpoint', '--anchor', place));
    expect(made.map(({ number }) => number)).toEqual([1, 2, 3]);
    const anchors = [file, 'git:witness', copy].flatMap((place) => ['--anchor', place]);
    expect(await scratch.json('witness', 'verify', ...anchors)).toMatchObject({
      ok: true,
      checkpoints: 3,
      anchored: 3,
    });
    expect(await scratch.run('witness', 'checkpoint', '--anchor', 'command:echo no network >&2; exit 3')).toMatchObject(
      {
        code: 69,
        stderr: expect.stringContaining('no network'),
      },
    );
  });
});

/** Leads to a server. What it carries can be cut off, as a broken network does. */
class Wire {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(port: number) {
    this.#server = createServer((near) => {
      const far = connect(port, '127.0.0.1');
      for (const socket of [near, far]) this.#sockets.add(socket.on('error', () => undefined));
      near.pipe(far).pipe(near);
    });
  }

  async open(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

describe('witness tail', () => {
  let scratch: Scratch;
  const started: Started[] = [];
  const ending = (one: Started): Started => {
    started.push(one);
    return one;
  };

  beforeAll(() => {
    scratch = new Scratch();
  });
  afterAll(async () => {
    for (const { child, ended } of started) {
      child.kill('SIGKILL');
      await ended;
    }
    scratch.remove();
  });

  it('prints every entry once, also those that are written while it begins, from the store and through a server to which the connection breaks', async () => {
    await using box = await open(`${scratch.store}?witness=on`, { maintains: false });
    const server = ending(scratch.start('serve', '--port', '0', '--json'));
    let said = '';
    server.child.stdout?.on('data', (data: string) => (said += data));
    await server.printed('"url"');
    const { secret } = await box.tokens.create({ name: 'reader', role: 'viewer' });
    const { url } = JSON.parse(said) as { url: string };
    const wire = new Wire(Number(new URL(url).port));
    onTestFinished(() => wire.close());
    const far = await wire.open();
    // The chains are read one after the other, so both are written while one of them is read.
    const write = (what: string): Promise<unknown> =>
      Promise.all(
        ['early', 'late'].map((component) => box.witness.record({ component, event: `${component}:${what}` })),
      );
    for (let n = 0; n < 20; n++) await write('before');
    const args = ['witness', 'tail', '-n', '100000', '--json', '--resource', 'component/*'];
    const tails = [
      ending(scratch.start(...args)),
      ending(start(args, { env: { SIGNALBOX_URL: far, SIGNALBOX_SERVER_TOKEN: secret }, cwd: scratch.dir })),
    ];
    let haveBegun = false;
    const begun = Promise.all(tails.map((tail) => tail.printed('"seq"'))).finally(() => (haveBegun = true));
    while (!haveBegun) await write('meanwhile');
    await begun;
    // What is written while there is no connection comes with the next one.
    wire.cut();
    await write('away');
    await write('over');
    for (const tail of tails) {
      await tail.printed('early:over');
      await tail.printed('late:over');
      tail.child.kill('SIGINT');
      const { stdout } = await tail.ended;
      const entries = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as WitnessEntry);
      for (const resource of ['component/early', 'component/late']) {
        const seqs = entries.filter((entry) => entry.resource === resource).map(({ seq }) => seq);
        expect(seqs).toEqual(seqs.map((_, at) => at + 1));
      }
    }
  });
});
