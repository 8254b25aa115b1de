// Bugs of others that must never be ours, where it takes processes to show them. Beside these:
//   14. wrappers that swallow exit codes and signals: test/end-to-end/run-exit-codes.test.ts, run-signals.test.ts, run-lost.test.ts
//   19. pid checks that lie: test/embedded/death.test.ts
//   38. a lock for each worktree: test/end-to-end/shells.test.ts, test/runtime/location.test.ts

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, ENTRY, exitCodeFor, Place } from '../support/run-processes.ts';

const program = (name: string): string => fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url));

let place: Place;
let children: ChildProcess[];

beforeAll(built);

beforeEach(() => {
  place = new Place();
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await place.leave();
});

function start(name: string, ...args: readonly string[]): ChildProcess {
  const child = fork(program(name), [place.url, ...args], { execArgv: [] });
  children.push(child);
  return child;
}

async function hears(child: ChildProcess, wanted: unknown): Promise<void> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [unknown];
    if (message === wanted) return;
  }
}

describe('12. a stale lock is taken over by two at once, and a blocked event loop is fatal', () => {
  it('of eight processes that find the holder dead one gets in at a time', async () => {
    const holder = place.run(['--lock', 'db', '--', 'sh', '-c', 'echo pid $$; exec sleep 60']);
    const child = await holder.pidOf();
    const entrants = Array.from({ length: 8 }, () => start('entrant', place.path('log')));
    const exits = entrants.map((child) => once(child, 'exit'));
    await Promise.all(entrants.map((child) => hears(child, 'waiting')));
    holder.kill('SIGKILL');
    process.kill(child, 'SIGKILL');
    for (const exit of exits) expect(await exit).toEqual([0, null]);
    const lines = place.read('log').trim().split('\n');
    expect(lines).toHaveLength(16);
    let last = 0;
    for (let i = 0; i < lines.length; i += 2) {
      const [, pid, token] = (lines[i] as string).split(' ');
      expect(lines.slice(i, i + 2)).toEqual([`in ${pid} ${token}`, `out ${pid} ${token}`]);
      expect(Number(token)).toBeGreaterThan(last);
      last = Number(token);
    }
  });

  it('a process that blocked its event loop past its lease is told, harms nobody, and lives', async () => {
    const sleeper = start('sleeper');
    await hears(sleeper, 'held');
    const box = await place.open();
    const told = once(sleeper, 'message');
    const hold = await box.lock('db').acquire();
    expect(await told).toEqual([{ isValid: false, released: 'already-lost', why: 'disconnected' }, undefined]);
    expect(hold.isValid).toBe(true);
    expect(await box.lock('db').isHeldBy(hold.holder)).toBe(true);
    if (sleeper.exitCode === null) await once(sleeper, 'exit');
    expect(sleeper.exitCode).toBe(0);
  });
});

describe('15. an abort that races a grant leaks the grant', () => {
  it('a run that is told to end at the moment of its grant leaves the lock free', async () => {
    const box = await place.open();
    const lock = box.lock('db');
    const codes = new Set<number | null>();
    for (let round = 0; round < 12; round++) {
      const hold = await lock.acquire();
      const queued = nextQueued(box);
      const run = place.run(['--lock', 'db', '--', 'true']);
      await queued;
      const released = hold.release();
      run.kill('SIGTERM');
      await released;
      const { code } = await run.ended;
      codes.add(code);
      const next = await lock.acquire({ waitMs: 10_000 });
      await next.release();
    }
    // It left the queue, or it was quicker; either way nothing stayed behind.
    for (const code of codes) expect([0, exitCodeFor('SIGTERM')]).toContain(code);
  });
});

describe('20. a slow worker is taken for a dead one', () => {
  it('who is late, who is silent and whose process is gone are told apart', async () => {
    const health = async (): Promise<Record<string, string>> => {
      const { stdout } = await place.start(process.execPath, [ENTRY, 'who', '--json'], { stdin: '' }).ended;
      const { locks } = JSON.parse(stdout) as { locks: { name: string; holds: { health: string }[] }[] };
      return Object.fromEntries(locks.map(({ name, holds }) => [name, holds[0]?.health ?? 'free']));
    };
    const box = await place.open({ maintains: false });
    for (const name of ['slow', 'silent']) await box.lock(name).configure({ onStale: 'alert' });
    await box.lock('slow').acquireDetached({ holder: 'agent:slow', ttlMs: 60_000, maxHoldMs: 300 });
    await box.lock('silent').acquireDetached({ holder: 'agent:silent', ttlMs: 300 });
    await box.lock('well').acquireDetached({ holder: 'agent:well', ttlMs: 60_000 });
    await expect.poll(health).toEqual({ slow: 'slow', silent: 'silent', well: 'renewed' });
  });
});

function nextQueued(box: Awaited<ReturnType<Place['open']>>): Promise<void> {
  return new Promise((resolve, reject) => {
    box
      .on('lock:queued', () => resolve())
      .then((subscription) => void setTimeout(() => subscription.unsubscribe(), 30_000).unref(), reject);
  });
}
