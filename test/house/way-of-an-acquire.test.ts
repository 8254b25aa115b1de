import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LockHold, open, type Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';

/** The files of `src/runtime` of which something runs during `work`, by V8's own account. */
async function filesOf(work: () => Promise<void>): Promise<ReadonlySet<string>> {
  const inspector = new Session();
  inspector.connect();
  try {
    await inspector.post('Profiler.enable');
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    // Counts from here on.
    await inspector.post('Profiler.takePreciseCoverage');
    await work();
    const { result } = await inspector.post('Profiler.takePreciseCoverage');
    const ran = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0));
    const files = ran.map(({ url }) => /\/(?:src|source)\/runtime\/(.+)\.[jt]s$/.exec(url)?.[1]);
    return new Set(files.filter((file) => file !== undefined));
  } finally {
    inspector.disconnect();
  }
}

/** One of them holds the lock, and the other waits for it until it is released. */
async function filesOfContended(holding: Signalbox, waiting: Signalbox, name: string): Promise<ReadonlySet<string>> {
  const held = await holding.lock(name).acquire();
  const lock = waiting.lock(name);
  let asked: Promise<LockHold> | undefined;
  const files = await filesOf(async () => {
    await new Promise<void>((waits) => {
      asked = lock.acquire({ onWaiting: () => waits() });
    });
    await held.release();
    await asked;
  });
  await (await asked)?.release();
  return files;
}

describe('one contended acquire', () => {
  it('always passes these files of the runtime, in the process that waits and in the one that releases', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-way-'));
    const [holding, waiting] = await Promise.all([open(`file:${directory}`), open(`file:${directory}`)]);
    try {
      // Both have their sessions.
      for (const box of [holding, waiting]) await box.lock('before').run(() => undefined);
      // What something else does in this process by chance, it does not do each time.
      const times = [];
      for (const name of ['a', 'b', 'c']) times.push(await filesOfContended(holding, waiting, name));
      const [files = new Set(), ...others] = times;
      const always = [...files].filter((file) => others.every((other) => other.has(file)));

      // Those that "One acquire in ten steps" in ARCHITECTURE names.
      expect(always.sort()).toEqual([
        'holds/acquisition',
        'holds/hold',
        'holds/lock',
        'holds/resource',
        'layout',
        'observe/measures',
        'runtime',
        'session/session',
        'write/cached-state',
        'write/commit',
        'write/decision',
        'write/letters',
        'write/pending-command',
        'write/resource-writer',
        'write/snapshot',
      ]);
    } finally {
      await Promise.all([holding.close(), waiting.close()]);
      rmSync(directory, { recursive: true });
    }
  });
});
