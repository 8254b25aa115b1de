import { describe, expect, it } from 'vitest';
import { pipelineTransition } from './pipeline.ts';
import { openQuestion } from './question.ts';
import { type PipelineRecord, readRecord, type StoredRecord } from './record.ts';
import type { Runbook } from './runbook.ts';

/** As signalbox wrote it before questions had numbers: the phase `pay` has failed, and a person is asked. */
const VERSION_1 =
  '{"version":1,"id":"p","name":"pay","state":"blocked","step":{"when":"before","phase":0,"attempt":1},' +
  '"phases":[{"name":"pay","state":"failed","runs":1,"startedAt":1763290000000,"endedAt":1763290001000,' +
  '"ended":"exit code 1"},{"name":"ship","state":"waiting","runs":0}],"lastToken":12,"outputs":{},' +
  '"startedBy":"ann","startedAt":1763290000000,"last":"c-1","driver":{"holder":"driver:h:1:aa","token":12,' +
  '"since":1763290000000},"lastDriven":"c-4","blocked":{"since":1763290001000,"on":"person",' +
  '"why":"phase pay: exit code 1. Look, then resume with rerun (run it again) or skip (take it as done)"}}';

const phase = { pre: [], post: [], holds: [], retries: 0, backoffMs: 1_000, idempotent: false, env: {} };
const runbook: Runbook = {
  name: 'pay',
  env: {},
  phases: ['pay', 'ship'].map((name) => ({ ...phase, name, run: { shell: 'true' }, onFailure: 'block' })),
};

function read(text: string): PipelineRecord {
  const found = readRecord(JSON.parse(text) as StoredRecord);
  if (!found.ok) throw new TypeError(`version ${String(found.version)} cannot be read`);
  return found.record;
}

describe('a record of version 1', () => {
  it('has a question that can be answered, with the same number for everybody who reads it', () => {
    const record = read(VERSION_1);
    expect(record).toMatchObject({ version: 2, lastQuestion: 1, blocked: { on: 'person', question: 1 } });
    expect(read(VERSION_1)).toEqual(record);
    const at = { now: 1, revision: 40, gone: () => false };
    const answer = { kind: 'decided', choice: 'skip', by: 'ann', token: 12, command: 'c-5' } as const;
    expect(pipelineTransition(runbook, record, { ...answer, question: 2 }, at).outcome.kind).toBe('another-question');
    const { state } = pipelineTransition(runbook, record, { ...answer, question: 1 }, at);
    expect(state).toMatchObject({ version: 2, state: 'running', phases: [{ state: 'skipped' }, {}] });
  });

  it('without a question is as it was', () => {
    const { blocked: _, ...rest } = JSON.parse(VERSION_1) as StoredRecord;
    const record = read(JSON.stringify({ ...rest, state: 'running' }));
    expect(record).toMatchObject({ ...rest, version: 2, state: 'running', lastQuestion: 0 });
    expect(openQuestion(record)).toBeUndefined();
  });
});

describe('a record of a version that is not known', () => {
  it.each([0, 3, undefined, '2'])('is not read: %s', (version) => {
    const stored = { ...(JSON.parse(VERSION_1) as object), version } as StoredRecord;
    expect(readRecord(stored)).toEqual({ ok: false, version });
  });
});
