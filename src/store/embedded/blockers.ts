/**
 * Finds the processes that keep the file busy, where the system can tell. A writer that is stopped in the middle of a
 * write (it takes a SIGSTOP at an unlucky moment) keeps all others waiting until it goes on or ends; so does any
 * process that may read the files and takes a read lock in the wrong place. Then only the pid of that process helps.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readStat, userShown } from '../../host/index.ts';

export interface Blocker {
  /** Undefined if the system does not tell whose lock it is. */
  readonly pid: number | undefined;
  /** `perl, user nobody (uid 65534)`, as far as the system tells. */
  readonly about: string;
  readonly isStopped: boolean;
  /** The process does not write, and yet its lock keeps all others from writing. */
  readonly isReader: boolean;
}

interface LockLine {
  readonly text: string;
  readonly isShared: boolean;
  readonly pid: number;
  readonly device: string;
  readonly first: number;
  readonly last: number;
}

/** The bytes that SQLite locks in the shared memory file, in WAL mode: to write, to carry over, to recover, …, to open. */
const WRITE = 120;
const RECOVER = 122;
const OPEN = 128;
/** The bytes that it locks in the file itself: from the first to the last. */
const PENDING = 0x40000000;
const LAST_SHARED = PENDING + 511;

/** The processes whose locks explain best why nobody can write; none if nothing is found, or the system does not tell. */
export function blockersOf(file: string, locks: () => string = readLocks): Blocker[] {
  try {
    const memory = linesFor(`${file}-shm`, locks);
    const main = linesFor(file, locks);
    const overlaps = (first: number, last: number) => (line: LockLine) => line.first <= last && line.last >= first;
    const others = ({ pid }: LockLine): boolean => pid !== process.pid;
    const suspects = [
      memory.filter(overlaps(WRITE, WRITE)),
      [
        ...memory.filter(({ isShared }) => !isShared).filter(overlaps(WRITE, OPEN)),
        ...main.filter(({ isShared }) => !isShared).filter(overlaps(PENDING, LAST_SHARED)),
      ],
      memory.filter(others).filter(overlaps(WRITE, RECOVER)),
      // While there is no shared memory file yet, a reader of the main file keeps others from making it.
      memory.length === 0 ? main.filter(others).filter(overlaps(PENDING, LAST_SHARED)) : [],
    ];
    const found = suspects.find((lines) => lines.length > 0) ?? [];
    return [...new Map(found.flatMap(blockers).map((blocker) => [blocker.pid, blocker])).values()];
  } catch {
    // Only Linux tells.
    return [];
  }
}

function linesFor(path: string, locks: () => string): LockLine[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  const lines = locks()
    .split('\n')
    .flatMap((line) => parsed(line, String(stat.ino)));
  // An inode number is unique on its device. Where the kernel names the device differently (overlays), the number alone
  // has to do.
  const here = lines.filter(({ device }) => device === deviceOf(stat.dev));
  return here.length > 0 ? here : lines;
}

/** `1: POSIX  ADVISORY  WRITE 4711 08:01:12345 120 120`. The line of a process that only waits has an arrow after the colon. */
const LINE = /^\d+: +(?:POSIX|OFDLCK) +\S+ +(READ|WRITE) +(-?\d+) +([0-9a-f]+:[0-9a-f]+):(\d+) +(\d+) +(\d+|EOF)$/;

function parsed(line: string, inode: string): LockLine[] {
  const [, access, pid, device = '', ino, first, last] = LINE.exec(line.trim()) ?? [];
  if (ino !== inode) return [];
  return [
    {
      text: line.trim().replace(/^\d+: +/, ''),
      isShared: access === 'READ',
      pid: Number(pid),
      device,
      first: Number(first),
      last: last === 'EOF' ? Infinity : Number(last),
    },
  ];
}

function deviceOf(dev: number): string {
  const major = Math.floor(dev / 256) % 4096;
  const minor = (dev % 256) + Math.floor(dev / 2 ** 20) * 256;
  return [major, minor].map((part) => part.toString(16).padStart(2, '0')).join(':');
}

function blockers({ text, pid, isShared }: LockLine): Blocker[] {
  // A lock that belongs to an open file instead of a process has no pid: every process that has this file open has the lock.
  const pids = pid > 0 ? [pid] : havingOpen(text);
  if (pids.length === 0) return [{ pid: undefined, about: '', isStopped: false, isReader: isShared }];
  return pids.map((one) => ({
    pid: one,
    about: aboutProcess(one),
    isStopped: readStat(one)?.state === 'T',
    isReader: isShared,
  }));
}

function havingOpen(lock: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const open = readdirSync(`/proc/${name}/fdinfo`);
        return open.some((fd) => readFileSync(`/proc/${name}/fdinfo/${fd}`, 'latin1').includes(lock));
      } catch {
        // The process has ended, or belongs to another user.
        return false;
      }
    })
    .map(Number);
}

function aboutProcess(pid: number): string {
  try {
    // A program chooses its own name: only printable text of it may reach a terminal.
    const name = readFileSync(`/proc/${pid}/comm`, 'latin1')
      .trim()
      .replace(/[^ -~]/g, '?');
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return `${name}, user ${userShown(Number(/^Uid:\s+\d+\s+(\d+)/m.exec(status)?.[1]))}`;
  } catch {
    return '';
  }
}

function readLocks(): string {
  return readFileSync('/proc/locks', 'latin1');
}
