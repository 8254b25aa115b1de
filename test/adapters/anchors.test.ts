import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anchorAt } from '../../src/adapters/index.ts';
import type { Checkpoint } from '../../src/core/index.ts';
import { record } from '../witness/history.ts';

describe('an anchor', () => {
  let cwd: string;
  beforeAll(() => {
    cwd = mkdtempSync(join(tmpdir(), 'anchors-'));
    execFileSync('git', ['init', '-q', cwd]);
  });
  afterAll(() => rmSync(cwd, { recursive: true }));

  const { checkpoints } = record({ entries: 60, resources: 6, every: 20 });
  const kept = checkpoints.map(({ heads: _heads, ...checkpoint }): Checkpoint => checkpoint);
  const at = (place: string) => anchorAt(place, { cwd, env: process.env });

  it.each(['file', 'git'])('keeps checkpoints in a %s, in order, and reads them again', async (kind) => {
    const place = kind === 'file' ? `file:${join(cwd, 'anchors.jsonl')}` : 'git:witness';
    for (const checkpoint of checkpoints) await at(place).keep(checkpoint);
    expect(await at(place).kept()).toEqual(kept);
  });

  it('gives a checkpoint to a command, and says so if the command fails', async () => {
    const file = join(cwd, 'told');
    const told = at(`command:printf '%s\\n' "$SIGNALBOX_CHECKPOINT" >> '${file}'`);
    for (const checkpoint of checkpoints) await told.keep(checkpoint);
    expect(await at(file).kept()).toEqual(kept);
    const failing = at('command:echo no network >&2; exit 3').keep(checkpoints[0] as Checkpoint);
    await expect(failing).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('no network'),
    });
  });

  it('reads checkpoints among other words, and refuses one that is damaged', async () => {
    const file = join(cwd, 'comments');
    appendFileSync(file, `A checkpoint:\n${readFileSync(join(cwd, 'told'), 'utf8')}`);
    expect(await at(file).kept()).toEqual(kept);
    appendFileSync(file, '{"v":1,"number":4}\n');
    await expect(at(file).kept()).rejects.toMatchObject({ code: 'corrupt' });
  });

  it.each(['', 'git:../main', 'git:a b', 'file:'])('is not made of %j', (place) => {
    expect(() => at(place)).toThrow(/expected file:PATH|is no name of a ref/);
  });
});
