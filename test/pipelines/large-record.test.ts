// A pipeline that is warned more often than a store has room for.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineRunbook, lockFree, open } from 'signalbox';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isMissing } from '../support/programs.ts';
import { newStoreOf } from '../support/stores.ts';

const PHASES = 135;
const WARNINGS_EACH = 20;

describe.skipIf(isMissing('etcd'))('on etcd, which takes the smallest records', () => {
  const newStore = newStoreOf('etcd');

  it(`a pipeline whose ${PHASES} phases are each warned ${WARNINGS_EACH} times, at length, comes to its end`, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-large-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    await using box = await open(newStore(directory), { requestTimeoutMs: 60_000 });
    for (let nth = 0; nth < 4; nth += 1) {
      await box.lock('busy').acquire({ mode: 'shared', holder: `${nth}${'→'.repeat(150)}` });
    }
    const warned = (phase: number, nth: number) =>
      ({ id: `g${phase}-${nth}`, condition: lockFree('busy'), onFailure: 'warn' }) as const;
    const phases = Array.from({ length: PHASES }, (_, phase) => ({
      name: `p${phase}`,
      pre: Array.from({ length: WARNINGS_EACH }, (_each, nth) => warned(phase, nth)),
      run: () => undefined,
    }));
    await box.pipelines.run(defineRunbook({ name: 'warned', phases }), { id: 'p' });
    const record = await box.pipelines.show('p');
    expect(record).toMatchObject({ state: 'done' });
    expect(record?.phases.every(({ state, runs }) => state === 'done' && runs === 1)).toBe(true);
    const kept = record?.phases.flatMap(({ warnings = [] }) => warnings) ?? [];
    const dropped = record?.phases.reduce((sum, { warningsDropped = 0 }) => sum + warningsDropped, 0) ?? 0;
    expect(dropped).toBeGreaterThan(0);
    expect(kept.length + dropped).toBe(PHASES * WARNINGS_EACH);
    expect(record?.phases.at(-1)?.warnings).toHaveLength(WARNINGS_EACH);
  });
});
