// Verifying what another machine exported: without a store.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Checkpoint,
  checkpointAnchor,
  entryLine,
  nextEntry,
  type Signer,
  type WitnessEntry,
} from '../../src/core/index.ts';
import { sha256, signerWith } from '../../src/host/index.ts';
import { Scratch } from '../support/cli.ts';
import { exported, type History, record } from '../witness/history.ts';

const SHAPE = { entries: 60, resources: 6, every: 20 };

describe('the witness without a store', () => {
  let scratch: Scratch;
  let history: History;
  let lines: readonly string[];
  const write = (name: string, content: string | Uint8Array): string => {
    const path = scratch.path(name);
    writeFileSync(path, content);
    return path;
  };
  const joined = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

  beforeAll(async () => {
    // Opening this store would fail, so nothing here opens it.
    scratch = new Scratch(() => 'etcd://127.0.0.1:1');
    const key = scratch.path('witness.key');
    expect(await scratch.run('witness', 'key', 'create', key)).toMatchObject({ code: 0 });
    history = record({ ...SHAPE, sign: signerWith(readFileSync(key, 'utf8')) as Signer });
    lines = exported(history);
    write('good.jsonl', joined(lines));
    write('anchors.jsonl', history.checkpoints.map((one) => `${checkpointAnchor(one)}\n`).join(''));
    write('last-anchor.jsonl', `${checkpointAnchor(history.checkpoints.at(-1) as Checkpoint)}\n`);
  });
  afterAll(() => scratch.remove());

  it('a key is private, is shown by its id, and is not overwritten', async () => {
    const key = scratch.path('witness.key');
    expect(statSync(key).mode & 0o777).toBe(0o600);
    const before = readFileSync(key, 'utf8');
    expect(await scratch.run('witness', 'key', 'create', key)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('not overwritten'),
    });
    expect(readFileSync(key, 'utf8')).toBe(before);
    const { id } = await scratch.json<{ id: string }>('witness', 'key', 'show', `${key}.pub`);
    expect(id).toBe(history.checkpoints[0]?.signature?.key);
  });

  it('verify passes a whole record, packed or not, with its key and its anchors', async () => {
    const packed = write('good.jsonl.gz', gzipSync(joined(lines)));
    const trust = ['--key', scratch.path('witness.key.pub'), '--anchor', scratch.path('anchors.jsonl')];
    expect(await scratch.json('witness', 'verify', packed, ...trust)).toEqual({
      ok: true,
      ...{ entries: 60, chains: 6, checkpoints: 3, signed: 3, anchored: 3, covered: 60, vouched: 60, trimmed: 0 },
    });
    const plain = await scratch.run('witness', 'verify', scratch.path('good.jsonl'));
    expect(plain).toMatchObject({ code: 0, stdout: 'good: 60 entries in 6 chains\n3 checkpoints\n' });
  });

  it('verify names the first bad entry, and ends with 65', async () => {
    const at = 10;
    const { resource, seq } = JSON.parse(lines[at] as string) as { resource: string; seq: number };
    const changed = write('changed.jsonl', joined(lines.with(at, (lines[at] as string).replace('worker', 'wOrker'))));
    const { code, stdout, stderr } = await scratch.run('witness', 'verify', changed, '--json');
    expect({ code, stderr }).toEqual({ code: 65, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, finding: { kind: 'changed', resource, seq, line: at + 1 } });
    const missing = write('missing.jsonl', joined(lines.toSpliced(at, 1)));
    expect(await scratch.run('witness', 'verify', missing)).toMatchObject({
      code: 65,
      stderr: `signalbox: line ${at + 1}: entry ${seq} of ${resource}: missing: ${seq} is missing: ${seq + 1} comes after ${seq - 1}\n`,
    });
  });

  it.each(['inserted', 'reordered', 'truncated', 'forked', 'not-covered'] as const)(
    'verify calls it by its name: %s',
    async (kind) => {
      const at = 10;
      const { kind: _, hash: _hash, ...entry } = JSON.parse(lines[at] as string) as WitnessEntry & { kind: string };
      const after = { resource: entry.resource, seq: entry.seq - 1, hash: entry.previous };
      const twin = entryLine(nextEntry(after, { ...entry, time: entry.time + 1 }, sha256).entry);
      const changed = {
        inserted: lines.toSpliced(at, 0, lines[at] as string),
        reordered: lines.with(at, lines[at + 1] as string).with(at + 1, lines[at] as string),
        truncated: lines.slice(0, at),
        forked: lines.toSpliced(at + 1, 0, twin),
        // An anchor knows of a checkpoint after which this record was written anew.
        'not-covered': exported(record({ ...SHAPE, entries: 30 })),
      };
      const file = write(`${kind}.jsonl`, joined(changed[kind]));
      const anchor = kind === 'not-covered' ? ['--anchor', scratch.path('last-anchor.jsonl')] : [];
      const { code, stdout } = await scratch.run('witness', 'verify', file, '--json', ...anchor);
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({ code: 65, ok: false, finding: { kind } });
    },
  );

  it('verify says that a packed record was cut off, and that a damaged one is damaged', async () => {
    const packed = gzipSync(joined(lines));
    const cut = write('cut.gz', packed.subarray(0, packed.length / 2));
    expect(await scratch.run('witness', 'verify', cut)).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('truncated'),
    });
    const damaged = write('damaged.gz', Buffer.from(packed).fill(0xff, 30, 60));
    expect(await scratch.run('witness', 'verify', damaged)).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('is damaged'),
    });
  });

  it('verify finds a history that was written anew, by key and by anchor', async () => {
    const forged = write('forged.jsonl', joined(exported(record({ ...SHAPE, actor: 'mallory' }))));
    const verify = (...trust: string[]) => scratch.run('witness', 'verify', forged, ...trust);
    expect(await verify('--anchor', scratch.path('anchors.jsonl'))).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('checkpoint 1: changed: another one was anchored'),
    });
    expect(await verify('--key', scratch.path('witness.key.pub'))).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('bad-signature'),
    });
  });

  it('verify says what is wrong with a file, a key or an anchor that it cannot read', async () => {
    const none = scratch.path('none');
    const good = scratch.path('good.jsonl');
    for (const args of [[none], [good, '--key', none], [good, '--key', good]]) {
      expect(await scratch.run('witness', 'verify', ...args)).toMatchObject({ code: 64, stdout: '' });
    }
    expect(await scratch.run('witness', 'verify', good, '--anchor', good)).toMatchObject({ code: 65 });
  });

  it('a proof shows one entry to a reader who has only the key', async () => {
    const from = scratch.path('good.jsonl');
    const created = await scratch.run('witness', 'proof', 'create', 'lock/0', '3', '--from', from);
    expect(created).toMatchObject({ code: 0, stderr: '' });
    const proof = write('proof.json', created.stdout);
    const key = ['--key', scratch.path('witness.key.pub')];
    const checked = await scratch.run('witness', 'proof', 'check', proof, ...key);
    expect(checked).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('good: entry 3 of lock/0 is in checkpoint 1'),
    });
    const forged = write('forged.json', created.stdout.replace('worker', 'wOrker'));
    expect(await scratch.run('witness', 'proof', 'check', forged, ...key)).toMatchObject({ code: 65 });
    expect(await scratch.run('witness', 'proof', 'create', 'lock/0', '300', '--from', from)).toMatchObject({ code: 1 });
  });
});
