import { describe, expect, it } from 'vitest';
import { etcdServer } from './etcd-checks.ts';
import { database, fileSystem } from './file-checks.ts';
import { clocks, diskFree, inotify } from './host-checks.ts';
import { history, wakes, witness, writable } from './store-checks.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('the doctor', () => {
  it('finds a wall clock that jumps, one that is in the past, and a monotonic clock that goes back', () => {
    const before = { wall: NOW, monotonic: 5000 };
    const verdict = (wall: number, monotonic: number): string => clocks(before, { wall, monotonic }).verdict;
    expect(verdict(NOW + 100, 5100)).toBe('ok');
    expect(verdict(NOW + 140, 5100)).toBe('ok');
    expect(verdict(NOW + 60_000, 5100)).toBe('warn');
    expect(verdict(NOW - 60_000, 5100)).toBe('warn');
    expect(verdict(NOW + 100, 4000)).toBe('fail');
    const behind = { wall: NOW + 100, monotonic: 5100, uptime: 4000 };
    expect(clocks(before, behind)).toMatchObject({ verdict: 'warn', message: expect.stringContaining('faketime') });
    expect(clocks(before, { ...behind, uptime: 5100 + 3_600_000 }).verdict).toBe('ok');
    expect(clocks({ wall: 0, monotonic: 0 }, { wall: 100, monotonic: 100 }).verdict).toBe('warn');
  });

  it('warns before inotify instances run out, and says what to raise', () => {
    expect(inotify({ most: 128, used: 5 }).verdict).toBe('ok');
    expect(inotify({ most: 128, used: 110 })).toMatchObject({
      verdict: 'warn',
      advice: expect.stringContaining('sysctl'),
    });
    expect(inotify({ most: 128, used: 128 }).verdict).toBe('fail');
  });

  it('says that the record of the witness can be neither archived nor trimmed, and why', () => {
    expect(witness({ entries: 10, bytes: 4000, filled: 0.1, failing: 'archive: the disk is full' })).toMatchObject({
      verdict: 'warn',
      message: expect.stringContaining('archive: the disk is full') as unknown,
      advice: expect.stringContaining('--witness-archive') as unknown,
    });
  });

  it('warns before the record of the witness is full, and says how to keep what goes', () => {
    expect(witness({ entries: 10, bytes: 4000, filled: 0.5 }).verdict).toBe('ok');
    expect(witness({ entries: 10, bytes: 4000, filled: 0.8 })).toMatchObject({
      verdict: 'warn',
      message: expect.stringContaining('80 % full'),
      advice: expect.stringContaining('witness trim --to'),
    });
  });

  it('warns of a disk that is nearly full', () => {
    expect(diskFree('/srv', 2 ** 33).verdict).toBe('ok');
    expect(diskFree('/srv', 50 * 2 ** 20).verdict).toBe('warn');
    expect(diskFree('/srv', 2 ** 20).verdict).toBe('fail');
  });

  it('fails on a network file system', () => {
    expect(fileSystem('/srv', 'nfs')).toMatchObject({ verdict: 'fail', message: expect.stringContaining('nfs') });
    expect(fileSystem('/srv', undefined).verdict).toBe('ok');
  });

  it('fails on a database that is damaged or of another format', () => {
    const facts = { sqlite: '3', format: 3, integrity: 'ok', bytes: 4096 };
    expect(database(facts).verdict).toBe('ok');
    expect(database({ ...facts, integrity: 'row 3 missing' }).verdict).toBe('fail');
    expect(database({ ...facts, format: 99 }).verdict).toBe('fail');
  });

  it('warns of a store that is slow, that is not heard of, and that nobody maintains', () => {
    const probe = { readMs: 1, writeMs: 1, wakeMs: 1 };
    expect([writable(probe), wakes(probe)].map(({ verdict }) => verdict)).toEqual(['ok', 'ok']);
    expect(writable({ ...probe, writeMs: 900 }).verdict).toBe('warn');
    expect(wakes({ ...probe, wakeMs: 900 }).verdict).toBe('warn');
    expect(wakes({ ...probe, wakeMs: undefined }).verdict).toBe('fail');
    expect(history({ revision: 60_000, compacted: 0 }).verdict).toBe('warn');
  });

  it('tells of an etcd that has no leader, is full or too large, is too old, or keeps all its history', () => {
    const well = { version: '3.5.9', databaseBytes: 2 ** 24, hasLeader: true, errors: [] };
    expect(etcdServer(well)).toMatchObject({ verdict: 'ok', message: 'etcd 3.5.9, its database is 16.0 MiB' });
    expect(etcdServer({ ...well, hasLeader: false }).verdict).toBe('fail');
    expect(etcdServer({ ...well, errors: ['memberID:1 alarm:NOSPACE'] })).toMatchObject({
      verdict: 'fail',
      message: expect.stringContaining('NOSPACE'),
    });
    expect(etcdServer({ ...well, databaseBytes: 2 ** 31 }).verdict).toBe('warn');
    expect(etcdServer({ ...well, version: '3.3.27' }).verdict).toBe('warn');
    expect(etcdServer({ ...well, version: '4.0.0' }).verdict).toBe('ok');
    expect(history({ revision: 100_000, compacted: 0 }, true).advice).toContain('--auto-compaction');
    expect(history({ revision: 100_000, compacted: 0 }).advice).toContain('signalbox maintain');
  });
});
