// Processes that share a store and not a clock: real namespaces, a real bind mount, and the real faketime.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LockHold, open, type Signalbox } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../support/sqlite.ts';

const CLI = fileURLToPath(new URL('../../dist/bin/signalbox.cjs', import.meta.url));
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-clocks-'));
const store = join(directory, 'store');
const fakeBoot = join(directory, 'boot-id');
writeFileSync(fakeBoot, '11111111-2222-3333-4444-555555555555\n');
const youngUptime = join(directory, 'uptime');
writeFileSync(youngUptime, '1.00 1.00\n');

/** A way to start a command, and whether it can be done here: namespaces take root, faketime its package. */
interface Elsewhere {
  readonly where: string;
  readonly prefix: readonly string[];
}

const ALL: readonly Elsewhere[] = [
  {
    where: 'in a container with a boot id of its own',
    prefix: ['unshare', '-m', 'sh', '-c', `mount --bind ${fakeBoot} ${BOOT_ID} && exec "$@"`, 'sh'],
  },
  {
    where: 'in a container that lxcfs shows a boot of its own, a second ago',
    prefix: [
      'unshare',
      '-m',
      'sh',
      '-c',
      `mount --bind ${fakeBoot} ${BOOT_ID} && mount --bind ${youngUptime} /proc/uptime && exec "$@"`,
      'sh',
    ],
  },
  {
    where: 'in a time namespace that is ahead',
    prefix: ['unshare', '-T', '--monotonic', '1000000', '--boottime', '1000000', '--fork', '--kill-child'],
  },
  {
    where: 'in a time namespace with the same offsets',
    prefix: ['unshare', '-T', '--fork', '--kill-child'],
  },
  { where: 'under faketime, two days ahead', prefix: ['faketime', '+2 days'] },
  { where: 'under faketime, two days behind', prefix: ['faketime', '-2 days'] },
];
const canBe = ({ prefix: [command = '', ...args] }: Elsewhere): boolean =>
  spawnSync(command, [...args, 'true']).status === 0;

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function signalbox({ prefix: [command = '', ...prefix] }: Elsewhere, ...args: string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...prefix, process.execPath, CLI, ...args, '--store', `file:${store}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

describe('a holder that lives', () => {
  let box: Signalbox;
  let hold: LockHold;

  beforeAll(async () => {
    box = await open(`file:${store}`, { sessionTtlMs: 60_000 });
    hold = await box.lock('x').acquire({ holder: 'a' });
  });

  afterAll(async () => {
    await box.close();
    rmSync(directory, { recursive: true });
  });

  function leases(): number {
    return sql(join(store, 'store.db'), 'SELECT id FROM lease').length;
  }

  it('can be looked at from all these places on the machine where CI runs', () => {
    const mayLack = process.getuid?.() !== 0 || !existsSync('/usr/bin/faketime');
    if (mayLack && process.env['CI'] !== 'true') return;
    expect(ALL.filter((elsewhere) => !canBe(elsewhere))).toEqual([]);
  });

  // Skipped where this user may not make such a namespace, or where there is no faketime.
  describe.each(ALL.filter(canBe))('and is looked at $where', (elsewhere) => {
    it('is seen, and keeps its lease', async () => {
      const { code, output } = await signalbox(elsewhere, 'who');
      expect(output).toContain('lock/x');
      expect(code).toBe(0);
      expect(leases()).toBe(1);
      expect(hold.isValid).toBe(true);
    });

    it('keeps others out who come from there', async () => {
      const { code, output } = await signalbox(elsewhere, 'lock', 'acquire', 'x', '--holder', 'b', '--no-wait');
      expect([code, output]).toEqual([75, expect.stringContaining('held by a')]);
      expect(hold.isValid).toBe(true);
    });
  });

  describe.each(ALL.filter(canBe).slice(0, 3))('and stops renewing', (elsewhere) => {
    it(`is followed by one that waited its full lease ${elsewhere.where}`, async () => {
      const name = `y-${ALL.indexOf(elsewhere)}`;
      const before = await signalbox(
        { where: '', prefix: ['env'] },
        'lock',
        'acquire',
        name,
        '--holder',
        'a',
        '--ttl',
        '3s',
      );
      expect(before.code).toBe(0);
      const after = await signalbox(elsewhere, 'lock', 'acquire', name, '--holder', 'b', '--wait', '60s');
      expect([after.code, after.output]).toEqual([0, expect.anything()]);
    });
  });
});
