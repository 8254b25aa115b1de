// The record in a store, as the command line shows it.

import { existsSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { Scratch } from '../support/cli.ts';

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
