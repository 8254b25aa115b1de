// Sixteen processes write the same locks, slots and tasks, and some of them are killed in the middle of it.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, type Signalbox } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/host/index.ts';
import { Verifier } from '../../src/core/index.ts';
import { built } from '../support/run-processes.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const PROCESSES = 16;
const KILLED = 5;
const WRITER = fileURLToPath(new URL('writer.mjs', import.meta.url));

/** What the processes write together, as entries; one that is killed makes less than its share. */
const engines = [
  { engine: 'the embedded engine', share: 240, least: 5000, isOut: false },
  { engine: 'etcd', share: 240, least: 5000, isOut: isMissing('etcd') },
] as const;

describe.each(engines)('on $engine', ({ engine, share, least, isOut }) => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-witness-'));
  let server: EtcdServer | undefined;
  let url = `file:${join(directory, 'store')}`;
  let box: Signalbox;

  beforeAll(async () => {
    if (isOut) return;
    built();
    if (engine === 'etcd') {
      server = await startEtcd();
      url = `etcd://127.0.0.1:${server.port}`;
    }
    box = await open(url, { requestTimeoutMs: 20_000, maintains: false, witness: true });
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
        children.push(
          fork(WRITER, [url, String(name), String(share)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
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

      const verification = await box.witness.verify();
      expect(verification.finding).toBeUndefined();
      expect(verification.entries).toBeGreaterThan(least);

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

      // The export verifies without the store, and does not once a line of it is gone.
      const lines: string[] = [];
      for await (const line of box.witness.export()) lines.push(line);
      expect(verified(lines)).toBeUndefined();
      expect(verified(lines.filter((_, place) => place !== 20))).toBeDefined();
      writeFileSync(join(directory, 'record.jsonl'), `${lines.join('\n')}\n`);
    },
  );
});

function verified(lines: readonly string[]): string | undefined {
  const verifier = new Verifier({ digest: sha256 });
  for (const line of lines) verifier.line(line);
  return verifier.finish().finding?.kind;
}
