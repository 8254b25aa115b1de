import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'signalbox';
import { openEmbedded, type ReadResult, storeFile } from 'signalbox/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { otherNode } from '../../scripts/nodes.mjs';
import { bundled, keepCode, startBundled } from '../support/bundled.ts';
import { openDatabase } from '../support/sqlite.ts';

const HAMMER = fileURLToPath(new URL('programs/hammer.mjs', import.meta.url));
const KILLS = Number(process.env['KILLS'] ?? 500);
/** Both drivers of SQLite on one file, where the other Node is named: see scripts/test.mjs. */
const NODES = [process.execPath, ...(process.env['OTHER_NODE'] === undefined ? [] : [otherNode()])];
const AT_ONCE = 6;
/** Whatever happens, it stops by itself. */
const LONGEST_MS = 1_800_000;

function heard(child: ChildProcess, wanted: string): Promise<void> {
  return new Promise((resolve) => child.on('message', (message) => message === wanted && resolve()));
}

describe('processes that are killed at any moment, during heavy use', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-kill-'));
  const store = join(directory, 'store');
  const work = join(directory, 'work');
  const running = new Set<ChildProcess>();
  let kills = 0;

  beforeAll(async () => {
    spawnSync('mkdir', ['-p', work]);
    writeFileSync(join(work, 'inside'), '');
    const program = await bundled(HAMMER);
    for (const node of new Set(NODES)) {
      const child = startBundled(program, [store, work, `first-${node === process.execPath}`], node);
      running.add(child);
      await heard(child, 'entered');
      await keepCode(child);
      running.delete(child);
    }
    const end = Date.now() + LONGEST_MS;
    let started = 0;
    const victim = async (): Promise<void> => {
      while (kills < KILLS && Date.now() < end) {
        const execPath = NODES[started % NODES.length];
        const child = startBundled(program, [store, work, String(started++)], execPath);
        running.add(child);
        const exited = once(child, 'exit');
        // Some are killed while they open the store, most while they use it.
        const chance = Math.random();
        if (chance < 0.9) await Promise.race([heard(child, 'ready'), exited]);
        // Half of them have been inside at least once.
        if (chance < 0.5) await Promise.race([heard(child, 'entered'), pause(5000), exited]);
        await Promise.race([pause(Math.random() * 40), exited]);
        if (child.exitCode === null && child.kill('SIGKILL')) kills += 1;
        await exited;
        running.delete(child);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, victim));
  }, LONGEST_MS + 60_000);

  afterAll(() => {
    for (const child of running) child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  it(`were ${KILLS}`, () => {
    expect(kills).toBeGreaterThanOrEqual(KILLS);
  });

  it('had been let in some hundred times', () => {
    expect(readFileSync(join(work, 'entered'), 'utf8').length).toBeGreaterThan(KILLS / 4);
  });

  it('never met inside what a lock guards, and met no error but their end', () => {
    const violations = join(work, 'violations');
    expect(existsSync(violations) ? readFileSync(violations, 'utf8') : '').toBe('');
  });

  it('leave a file that is sound', () => {
    const database = openDatabase(storeFile(store));
    expect(database.pragma('integrity_check')).toBe('ok');
    database.close();
  });

  it('lose no change that was confirmed', async () => {
    const handle = await openEmbedded(store);
    let confirmed = 0;
    for (const file of readdirSync(work).filter((name) => name.startsWith('acked-'))) {
      const name = file.slice('acked-'.length);
      const last = Number(readFileSync(join(work, file), 'utf8').trim().split('\n').at(-1));
      const { results } = await handle.transaction({
        compare: [],
        success: [{ do: 'read', key: `counter/${name}` }],
        failure: [],
      });
      const stored = Number((results[0] as ReadResult).pairs[0]?.value.text);
      // The one after the last that was confirmed may have been written, and no more.
      expect([last, last + 1]).toContain(stored);
      confirmed += last;
    }
    expect(confirmed).toBeGreaterThan(KILLS / 4);
    await handle.close();
  });

  it('hold nothing any more', async () => {
    const box = await open(`file:${store}`);
    const hold = await box.lock('section').acquire({ waitMs: 60_000 });
    await hold.release();
    const slots = await box.semaphore('slots', { capacity: 3 }).acquire({ weight: 3, waitMs: 60_000 });
    await slots.release();
    await box.maintain();
    expect((await box.lock('section').inspect()).waiting).toEqual([]);
    expect((await box.semaphore('slots').inspect()).waiting).toEqual([]);
    await box.close();
  });
});

describe('the holder that is killed among 40 sessions that wait', () => {
  it('costs none of them its session: all are let in, one after the other', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-waiters-'));
    const program = fileURLToPath(new URL('programs/waiters.mjs', import.meta.url));
    const said: { readonly kind: string; readonly why?: string }[] = [];
    const start = (count: number): ChildProcess => {
      const child = fork(program, [`file:${join(directory, 'store')}`, String(count)], { execArgv: [] });
      child.on('message', (message) => said.push(message as { kind: string }));
      return child;
    };
    const told = (kind: string): number => said.filter((each) => each.kind === kind).length;
    const all = [start(1)];
    try {
      await expect.poll(() => told('let in')).toBe(1);
      for (let i = 0; i < 4; i++) all.push(start(10));
      await expect.poll(() => told('waiting')).toBe(40);
      all[0]?.kill('SIGKILL');
      await expect.poll(() => told('let in') + told('lost')).toBe(41);
      expect(said.filter(({ kind }) => kind === 'lost')).toEqual([]);
    } finally {
      for (const child of all.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      rmSync(directory, { recursive: true });
    }
  });
});
