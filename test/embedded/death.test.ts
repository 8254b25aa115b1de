import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, type ReadResult, type Store, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { identify, isProvenGone, type ProcessIdentity, thisProcess } from '../../src/host/index.ts';

const ours = thisProcess() as ProcessIdentity;

function sleeper(options: { readonly detached?: boolean } = {}): ChildProcess {
  return spawn('sleep', ['60'], { stdio: 'ignore', ...options });
}

describe('whether a process is gone', () => {
  it('is not believed of one that lives', () => {
    expect(isProvenGone(ours)).toBe(false);
  });

  it('is proven by its end', async () => {
    const child = sleeper();
    await once(child, 'spawn');
    const identity = identify(child.pid as number) as ProcessIdentity;
    expect(isProvenGone(identity)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isProvenGone(identity)).toBe(true);
  });

  it('is proven although its pid is used again: by the start time', () => {
    expect(isProvenGone({ ...ours, start: String(Number(ours.start) - 1) })).toBe(true);
  });

  it('is proven by another boot', () => {
    expect(isProvenGone({ ...ours, boot: '00000000-0000-0000-0000-000000000000' })).toBe(true);
  });

  it('cannot be told of a process in another pid namespace, whatever its number', () => {
    expect(isProvenGone({ ...ours, space: 'pid:[1]' })).toBe(false);
    expect(isProvenGone({ ...ours, space: 'pid:[1]', pid: 2 ** 22 })).toBe(false);
  });

  it('is not believed of a group as long as one of its members lives', async () => {
    // The leader leaves a member of its group behind, and tells its pid.
    const leader = spawn('sh', ['-c', 'sleep 60 >/dev/null & echo $!'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const group: ProcessIdentity = { ...(identify(leader.pid as number) as ProcessIdentity), group: true };
    const [output] = (await once(leader.stdout, 'data')) as [Buffer];
    await once(leader, 'exit');
    expect(isProvenGone({ ...group, group: undefined } as unknown as ProcessIdentity)).toBe(true);
    expect(isProvenGone(group)).toBe(false);
    const member = Number(output.toString());
    process.kill(member, 'SIGKILL');
    await expect.poll(() => isProvenGone(group)).toBe(true);
  });
});

describe('a lease that ends with a process', () => {
  const clock = new TestClock();
  let directory: string;
  let store: Store;
  let watcher: Store;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-death-'));
    store = await openEmbedded(directory, { clock });
    watcher = await openEmbedded(directory, { clock });
  });

  afterEach(async () => {
    await store.close();
    await watcher.close();
    rmSync(directory, { recursive: true });
  });

  async function leaseOf(processes: readonly ProcessIdentity[]): Promise<string> {
    const { id } = await store.grantLease(60_000);
    await store.endLeaseWith?.(id, processes);
    const put = { do: 'put', key: `of/${id}`, value: Value.text(''), lease: id } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
    return id;
  }

  async function keys(): Promise<string[]> {
    const read = { do: 'read', key: 'of/', end: 'of0' } as const;
    const { results } = await watcher.transaction({ compare: [], success: [read], failure: [] });
    return (results[0] as ReadResult).pairs.map(({ key }) => key);
  }

  it('ends within 250 ms for whoever watches, when all of its processes are gone', async () => {
    await watcher.watch({ key: 'x' }, 'now', new AbortController().signal);
    const living = await leaseOf([ours]);
    const child = sleeper();
    await once(child, 'spawn');
    await leaseOf([identify(child.pid as number) as ProcessIdentity]);
    const mixed = await leaseOf([identify(child.pid as number) as ProcessIdentity, ours]);
    await clock.advance(1000);
    expect(await keys()).toHaveLength(3);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await clock.advance(250);
    expect(await keys()).toEqual([`of/${living}`, `of/${mixed}`]);
  });

  it('is not kept alive by a process that lives', async () => {
    await leaseOf([ours]);
    await clock.advance(60_000);
    expect(await keys()).toEqual([]);
  });

  it('is left to its time where nothing can be proven', async () => {
    await watcher.watch({ key: 'x' }, 'now', new AbortController().signal);
    const elsewhere = await leaseOf([{ ...ours, space: 'pid:[1]', pid: 1 }]);
    await clock.advance(59_000);
    expect(await keys()).toEqual([`of/${elsewhere}`]);
    await clock.advance(1500);
    expect(await keys()).toEqual([]);
  });

  it('is refused for a lease that has ended', async () => {
    await expect(store.endLeaseWith?.('4711', [ours])).rejects.toMatchObject({ code: 'not-found' });
  });

  it('of an earlier boot is over for whoever opens the store', async () => {
    const { id } = await store.grantLease(60_000);
    const put = { do: 'put', key: `of/${id}`, value: Value.text(''), lease: id } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
    const { default: Database } = await import('better-sqlite3');
    const database = new Database(join(directory, 'store.db'));
    database.exec(`UPDATE lease SET boot = 'an earlier one'`);
    database.close();
    await (await openEmbedded(directory, { clock })).close();
    expect(await keys()).toEqual([]);
  });
});
