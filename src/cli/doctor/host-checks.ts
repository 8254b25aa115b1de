/** Checks this machine, without a store. */
import { readdirSync, readFileSync, readlinkSync, statfsSync } from 'node:fs';
import { release } from 'node:os';
import type { Clock } from '../../clock.ts';
import { VERSION } from '../version.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

export function versions(sqlite: string | undefined): Finding {
  const parts = [`signalbox ${VERSION}`, `node ${process.version}`, `${process.platform} ${release()}`];
  return ok('versions', [...parts, ...(sqlite === undefined ? [] : [`sqlite ${sqlite}`])].join(', '));
}

export interface Reading {
  readonly wall: number;
  readonly monotonic: number;
  readonly uptime?: number | undefined;
}

export function readClocks(clock: Clock): Reading {
  return { wall: clock.now(), monotonic: clock.monotonic(), uptime: clock.uptime?.() };
}

const YEAR_2025 = Date.UTC(2025, 0, 1);
/** Systems correct their clocks in small steps all the time; a larger step is a jump. */
const JUMP_MS = 250;

/** Compares two readings: both clocks must have advanced by the same amount. */
export function clocks(before: Reading, after: Reading): Finding {
  const passed = after.monotonic - before.monotonic;
  const apart = after.wall - before.wall - passed;
  if (passed < 0) {
    return fail(
      'clock',
      `the monotonic clock went back by ${ms(-passed)}`,
      'leases cannot be trusted on this machine: restart it',
    );
  }
  if (after.uptime !== undefined && after.uptime < after.monotonic - JUMP_MS) {
    const advice = 'a file store stays safe, but waits a full lease for a dead holder that does not share this clock';
    return warn('clock', "the monotonic clock is not the machine's own (faketime, or a time namespace)", advice);
  }
  if (Math.abs(apart) > JUMP_MS) {
    const advice =
      'on etcd, holds end too early when the clock jumps forward: let it be corrected slowly (ntpd, chrony); ' +
      'on a file store this changes nothing';
    return warn('clock', `the wall clock jumped by ${ms(apart)} within ${ms(passed)}`, advice);
  }
  if (after.wall < YEAR_2025) {
    const shown = new Date(after.wall).toISOString();
    return warn('clock', `the wall clock says ${shown}`, 'set the clock: the times that signalbox shows will be wrong');
  }
  return ok('clock', `wall and monotonic clock go together (${ms(Math.abs(apart))} apart over ${ms(passed)})`);
}

export interface Inotify {
  readonly most: number;
  /** Counted over the processes of this user that can be seen. */
  readonly used: number;
}

export function inotify({ most, used }: Inotify): Finding {
  const message = `${used} of ${most} inotify instances of this user are in use`;
  const advice = `raise the limit: sysctl fs.inotify.max_user_instances=${Math.max(1024, most * 4)}`;
  if (used >= most) {
    return fail('inotify', `${message}; changes by other processes are noticed late, by polling`, advice);
  }
  return used > most * 0.8 ? warn('inotify', message, advice) : ok('inotify', message);
}

/** Undefined where the machine does not report it. */
export function readInotify(): Inotify | undefined {
  try {
    const most = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'latin1'));
    return { most, used: countInotify() };
  } catch {
    return undefined;
  }
}

function countInotify(): number {
  let used = 0;
  const own = process.getuid?.();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // The limit is per user, so other users' processes do not count.
      const status = readFileSync(`/proc/${pid}/status`, 'latin1');
      if (Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) !== own) continue;
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        if (readlinkSync(`/proc/${pid}/fd/${fd}`) === 'anon_inode:inotify') used += 1;
      }
    } catch {
      // The process has ended, or hides its open files.
    }
  }
  return used;
}

const LITTLE_BYTES = 100 * 2 ** 20;
const TOO_LITTLE_BYTES = 5 * 2 ** 20;

export function disk(directory: string): Finding {
  const { bavail, bsize } = statfsSync(directory);
  return diskFree(directory, bavail * bsize);
}

export function diskFree(directory: string, bytes: number): Finding {
  const message = `${(bytes / 2 ** 20).toFixed(0)} MiB free for ${directory}`;
  const advice = 'free some space: on a full disk no lock can be acquired or released';
  if (bytes < TOO_LITTLE_BYTES) return fail('disk', message, advice);
  return bytes < LITTLE_BYTES ? warn('disk', message, advice) : ok('disk', message);
}

function ms(amount: number): string {
  return `${amount.toFixed(Math.abs(amount) < 10 ? 1 : 0)} ms`;
}
