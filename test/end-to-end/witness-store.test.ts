// The record in a store, as the command line shows it.

import { existsSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
    expect(stderr).toContain('?witness=on');
  });

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

  it('configure says how much is kept, and doctor how full it is', async () => {
    const kept = await on.json('witness', 'configure', '--most-entries', '5', '--checkpoint-every', '15m');
    expect(kept).toMatchObject({ mostEntries: 5, checkpointMs: 900_000 });
    const { findings } = await on.json<{ findings: { check: string }[] }>('doctor');
    expect(findings).toContainEqual(expect.objectContaining({ check: 'witness', verdict: 'ok' }));
  });
});

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

  it('prints every entry once, also those that are written while it begins, from the store and through a server', async () => {
    await using box = await open(`${scratch.store}?witness=on`, { maintains: false });
    const server = ending(scratch.start('serve', '--port', '0', '--json'));
    let said = '';
    server.child.stdout?.on('data', (data: string) => (said += data));
    await server.printed('"url"');
    const { secret } = await box.tokens.create({ name: 'reader', role: 'viewer' });
    const { url } = JSON.parse(said) as { url: string };
    // The chains are read one after the other, so both are written while one of them is read.
    const write = (what: string): Promise<unknown> =>
      Promise.all(
        ['early', 'late'].map((component) => box.witness.record({ component, event: `${component}:${what}` })),
      );
    for (let n = 0; n < 20; n++) await write('before');
    const args = ['witness', 'tail', '-n', '100000', '--json', '--resource', 'component/*'];
    const tails = [
      ending(scratch.start(...args)),
      ending(start(args, { env: { SIGNALBOX_URL: url, SIGNALBOX_SERVER_TOKEN: secret }, cwd: scratch.dir })),
    ];
    let haveBegun = false;
    const begun = Promise.all(tails.map((tail) => tail.printed('"seq"'))).finally(() => (haveBegun = true));
    while (!haveBegun) await write('meanwhile');
    await begun;
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
