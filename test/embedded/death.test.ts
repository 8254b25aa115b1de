import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, type ReadResult, type Store, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, sql as sqlOf } from '../support/sqlite.ts';
import { FIRST_TIME_SPACE, identify, isProvenGone, type ProcessIdentity, thisProcess } from '../../src/host/index.ts';

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

  it('is not believed because its boot id is another one: containers of one machine may each have their own', () => {
    expect(isProvenGone({ ...ours, boot: '00000000-0000-0000-0000-000000000000' })).toBe(false);
  });

  it('cannot be told of a process in another time namespace, which shows other start times', () => {
    const { timeSpace: _, ...unknown } = ours;
    for (const other of [{ ...ours, timeSpace: 'time:[1]' }, unknown]) {
      expect(isProvenGone({ ...other, start: '1' })).toBe(false);
    }
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

  it('ends within 250 ms for every watcher, when all of its processes are gone', async () => {
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

  function sql(text: string): void {
    const database = openDatabase(join(directory, 'store.db'));
    database.exec(text);
    database.close();
  }

  async function write(): Promise<void> {
    const put = { do: 'put', key: 'anything', value: Value.text('') } as const;
    await watcher.transaction({ compare: [], success: [put], failure: [] });
  }

  it('of an earlier boot is over, as the clock that it counts on was ahead of ours', async () => {
    const before = await leaseOf([]);
    sql(`UPDATE clock SET boot = 'an earlier one', time_space = '${FIRST_TIME_SPACE}'`);
    sql(`UPDATE lease SET deadline = deadline + 3600000`);
    const next = await openEmbedded(directory, { clock });
    const { results } = await next.transaction({
      compare: [],
      success: [{ do: 'read', key: `of/${before}` }],
      failure: [],
    });
    expect((results[0] as ReadResult).pairs).toEqual([]);
    await next.close();
  });

  it('on a clock with another boot id that may be running still has its full time, as we count it', async () => {
    const other = await leaseOf([]);
    sql(`UPDATE clock SET boot = 'of another container'`);
    await clock.advance(1_000_000);
    await write();
    await clock.advance(59_000);
    await write();
    expect(await keys()).toEqual([`of/${other}`]);
    await clock.advance(1500);
    await write();
    expect(await keys()).toEqual([]);
  });

  it('on another clock is over in its time although this process never rests', async () => {
    const other = await leaseOf([]);
    sql(`UPDATE clock SET boot = 'of another container'`);
    for (let i = 0; i < 320; i++) {
      await clock.advance(200);
      await write();
    }
    expect(await keys()).not.toContain(`of/${other}`);
  });

  it('on another clock is not over as long as it is renewed', async () => {
    const other = await leaseOf([]);
    sql(`UPDATE clock SET boot = 'of another container'`);
    for (let i = 0; i < 4; i++) {
      await write();
      await clock.advance(40_000);
      // As the other process renews it.
      sql(`UPDATE lease SET deadline = deadline + 40000; DELETE FROM notice`);
    }
    await write();
    expect(await keys()).toEqual([`of/${other}`]);
  });

  it('has its full time once more after the machine was suspended, whichever process looks first', async () => {
    const lease = await leaseOf([]);
    await clock.advance(50_000);
    clock.suspend(3_600_000);
    await clock.advance(50_000);
    await write();
    expect(await keys()).toEqual([`of/${lease}`]);
    await clock.advance(60_500);
    await write();
    expect(await keys()).toEqual([]);
  });

  it('lasts as long as it is renewed, again and again, and a moment longer', async () => {
    const lease = await leaseOf([]);
    for (let i = 0; i < 5; i++) {
      await clock.advance(40_000);
      // At once, from the second time on.
      if (i === 0) expect(await store.keepLeaseAlive(lease)).toEqual({ id: lease, ttlMs: 60_000 });
      else expect(store.keepLeaseAliveNow?.(lease)).toBe(true);
      await write();
      expect(await keys()).toEqual([`of/${lease}`]);
    }
    await clock.advance(59_000);
    await write();
    expect(await keys()).toEqual([`of/${lease}`]);
    await clock.advance(1500);
    await write();
    expect(store.keepLeaseAliveNow?.(lease)).toBe(false);
    expect(await store.keepLeaseAlive(lease)).toBeNull();
  });

  it('cannot be renewed once it is over, although no process has ended it', async () => {
    const lease = await leaseOf([]);
    await store.keepLeaseAlive(lease);
    expect(store.keepLeaseAliveNow?.(lease)).toBe(true);
    await clock.advance(60_500);
    expect(await keys()).toEqual([]);
    expect(sqlOf(join(directory, 'store.db'), 'SELECT id FROM lease')).toHaveLength(1);
    expect(store.keepLeaseAliveNow?.(lease)).toBe(false);
    expect(await keys()).toEqual([]);
    expect(await store.keepLeaseAlive(lease)).toBeNull();
    expect(await keys()).toEqual([]);
  });

  it('is counted anew by a renewal that finds its time counted on another clock', async () => {
    const lease = await leaseOf([]);
    await store.keepLeaseAlive(lease);
    sql(`INSERT INTO notice (lease, clock, deadline) VALUES (${lease}, 4711, 0)`);
    expect(store.keepLeaseAliveNow?.(lease)).toBe(false);
    await store.keepLeaseAlive(lease);
    expect(sqlOf(join(directory, 'store.db'), 'SELECT lease FROM notice')).toEqual([]);
    expect(store.keepLeaseAliveNow?.(lease)).toBe(true);
    clock.suspend(3_600_000);
    expect(store.keepLeaseAliveNow?.(lease)).toBe(false);
    await store.keepLeaseAlive(lease);
    await clock.advance(59_000);
    await write();
    expect(await keys()).toEqual([`of/${lease}`]);
  });

  it('is not shown when its time is over, and not ended by looking', async () => {
    const lease = await leaseOf([]);
    await clock.advance(60_500);
    expect(await keys()).toEqual([]);
    expect(sqlOf(join(directory, 'store.db'), 'SELECT id FROM lease')).toEqual([{ id: Number(lease) }]);
    await write();
    expect(await keys()).toEqual([]);
  });
});
