import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ProcessIdentity, thisProcess } from '../../host/index.ts';
import { sqliteDriver } from '../../sqlite/index.ts';
import { TestClock } from '../../testing/index.ts';
import { Connection } from './connection.ts';
import type { Engine } from './engine.ts';
import { Listening } from './listening.ts';
import { SCHEMA } from './schema.ts';

const EIGHT = 8;
let directory: string;
let connection: Connection;
let listening: Listening;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-listening-'));
  connection = new Connection(sqliteDriver().open(join(directory, 'store.db')));
  connection.execute(SCHEMA);
  const engine = {
    connection,
    leases: { own: { enter: () => 1, id: 1 } },
    write: (work: (state: object) => unknown) => work({ revision: 1, compacted: 0 }),
  };
  const ignored = (): void => undefined;
  listening = new Listening(
    engine as unknown as Engine,
    new TestClock(),
    directory,
    { share: 'none', heir: undefined },
    ignored,
    ignored,
  );
  listening.enter({ key: 'a' });
});

afterEach(() => {
  listening.abandon();
  connection.close();
  rmSync(directory, { recursive: true });
});

/** Bells that are older than ours, of processes like this one. */
function older(count: number, process: ProcessIdentity): void {
  const rows = connection.sql('SELECT count(*) AS count FROM bell').get() as { count: number };
  for (let i = 0; i < count; i++) {
    const name = (rows.count + i).toString(16).padStart(16, '0');
    connection
      .sql('INSERT INTO bell (name, process, clock, heard) VALUES (?, ?, 1, 0)')
      .run(name, JSON.stringify(process));
  }
}

// Only Linux tells which process is which, and so only there do processes share the duty.
describe.skipIf(thisProcess() === undefined)('the eldest of those that listen', () => {
  const ours = thisProcess() as ProcessIdentity;
  const dead: ProcessIdentity = { ...ours, start: '1' };
  const elsewhere: ProcessIdentity = { ...ours, space: 'pid:[1]' };

  it('are the ones whose bells were hung first', () => {
    older(EIGHT - 1, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    older(1, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });

  it('are of our own pid namespace: another one has its own process on duty, and deputies', () => {
    older(EIGHT, elsewhere);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    expect(listening.count()).toBe(1);
  });

  it('are not looked for behind many that have died: that would hold up hundreds of processes', () => {
    older(EIGHT + 32, dead);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });

  it('are alive, although the bells of the dead are still listed', () => {
    older(EIGHT, dead);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    older(EIGHT, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });
});
