// Sixteen processes write the same locks, slots and tasks, and some of them are killed in the middle of it.

import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, type Signalbox } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/host/index.ts';
import { Verifier } from '../../src/core/index.ts';
import { RECORDS, resourceOfRecord } from '../../src/runtime/layout.ts';
import { ALL_TASKS, partOf, taskResource } from '../../src/runtime/tasks/keys.ts';
import { openEmbedded, openEtcdUrl, prefixed, readPages, type Store } from '../../src/store/index.ts';
import { built } from '../support/run-processes.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const PROCESSES = 16;
const KILLED = 5;
const WRITER = fileURLToPath(new URL('writer.mjs', import.meta.url));
const PYTHON = fileURLToPath(new URL('../../examples/verify-witness.py', import.meta.url));

/** What the processes that are not killed write together, as entries. */
const engines = [
  { engine: 'the embedded engine', share: 240, least: 5000, isOut: false },
  { engine: 'etcd', share: 240, least: 5000, isOut: isMissing('etcd') },
] as const;

describe.each(engines)('on $engine', ({ engine, share, least, isOut }) => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-witness-'));
  let server: EtcdServer | undefined;
  let url = `file:${join(directory, 'store')}`;
  let store: Store;
  let box: Signalbox;

  beforeAll(async () => {
    if (isOut) return;
    built();
    if (engine === 'etcd') {
      server = await startEtcd();
      url = `etcd://127.0.0.1:${server.port}`;
    }
    store = await (engine === 'etcd'
      ? openEtcdUrl(url, { requestTimeoutMs: 20_000 })
      : openEmbedded(join(directory, 'store')));
    box = await open(store, { requestTimeoutMs: 20_000, maintains: false, witness: true });
  });

  afterAll(async () => {
    await box?.close();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it.skipIf(isOut)(
    'sixteen processes that write and are killed leave one chain per resource, without a gap',
    async () => {
      const children: ChildProcess[] = [];
      for (let name = 0; name < PROCESSES; name++) {
        // Those that are to be killed would write for ever, so none of them can end before.
        const until = name < KILLED ? 'Infinity' : String(share);
        children.push(
          fork(WRITER, [url, String(name), until], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] }),
        );
      }
      const ended = children.map((child) => once(child, 'exit'));
      await Promise.all(children.map((child) => once(child, 'message')));
      // Each is killed when the record has grown since, wherever in a write that finds it.
      const watch = box.witness.watch({ resource: 'lock/*' })[Symbol.asyncIterator]();
      for (const child of children) child.send('begin');
      for (const victim of children.slice(0, KILLED)) {
        for (let heard = 0; heard < 40; heard++) await watch.next();
        victim.kill('SIGKILL');
      }
      await watch.return?.();
      const exits = await Promise.all(ended);
      expect(exits.slice(KILLED).map(([code]) => code as number)).toEqual(Array(PROCESSES - KILLED).fill(0));
      expect(exits.slice(0, KILLED).map(([, signal]) => signal as string)).toEqual(Array(KILLED).fill('SIGKILL'));

      const progress: number[] = [];
      const verification = await box.witness.verify({ onProgress: (entries) => void progress.push(entries) });
      expect(verification.finding).toBeUndefined();
      expect(verification.entries).toBeGreaterThan(least);
      expect(progress.slice(0, 3)).toEqual([1000, 2000, 3000]);

      // Every write of a record or of a task has its entry: each record names the last one of its chain.
      const last = new Map<string, { seq: number; outcome: string }>();
      for await (const { resource, seq, commands } of box.witness.entries())
        last.set(resource, { seq, outcome: commands.at(-1)?.outcome ?? '' });
      for (const { id, status } of await box.tasks.list()) {
        const entered = last.get(`task/${id}`);
        // A claim of a killed process ends with its lease, which is no command: its entry is the last one.
        const isOfKilled = Number(id.split('-')[0]) < KILLED;
        const outcomes = {
          pending: isOfKilled ? ['published', 'released', 'claimed'] : ['published', 'released'],
          running: ['claimed'],
          complete: ['completed'],
          failed: [],
        };
        expect(outcomes[status], `task/${id}, which is ${status}`).toContain(entered?.outcome);
      }

      expect(await writesWithoutEntry(store, last)).toEqual([]);

      // The export verifies without the store, and does not once a line of it is gone.
      const lines: string[] = [];
      for await (const line of box.witness.export()) lines.push(line);
      expect(verified(lines)).toBeUndefined();
      expect(verified(lines.filter((_, place) => place !== 20))).toBeDefined();
      const file = join(directory, 'record.jsonl');
      writeFileSync(file, `${lines.join('\n')}\n`);
      const { status, stdout } = spawnSync('python3', [PYTHON, file], { encoding: 'utf8' });
      expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('good: ') as unknown });
    },
  );
});

/**
 * Every write of a record, and of a task, puts one key, whose version counts the puts. Nobody has deleted one, so there are as
 * many entries as puts: no change lacks its entry, and no entry its change.
 */
async function writesWithoutEntry(
  store: Store,
  last: ReadonlyMap<string, { seq: number }>,
): Promise<readonly string[]> {
  const odd: string[] = [];
  const compare = (resource: string, version: number): void => {
    const seq = last.get(resource)?.seq ?? 0;
    if (seq !== version) odd.push(`${resource} was written ${version} times, and has ${seq} entries`);
  };
  for await (const { pairs } of readPages(store, prefixed(RECORDS), 500))
    for (const { key, version } of pairs) compare(resourceOfRecord(key), version);
  for await (const { pairs } of readPages(store, ALL_TASKS, 500))
    for (const { key, version } of pairs) {
      const part = partOf(key);
      if (part?.part === 'signalbox') compare(taskResource(part.id), version);
    }
  return odd;
}

function verified(lines: readonly string[]): string | undefined {
  const verifier = new Verifier({ digest: sha256 });
  for (const line of lines) verifier.line(line);
  return verifier.finish().finding?.kind;
}
