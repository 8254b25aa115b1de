/**
 * Identifies a process for certain. A pid alone is not enough: the system reuses it, and it means another process in
 * another namespace. So it is stored together with the start time, the boot, and the namespaces of pids and of time
 * (which shifts start times). It only ever serves to find sooner that a process is dead: nothing is kept alive because
 * a pid exists.
 *
 * Only Linux tells all of this. Elsewhere a process has no identity, and leases alone decide.
 */
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statfsSync } from 'node:fs';

export interface ProcessIdentity {
  readonly boot: string;
  /** The pid namespace. */
  readonly space: string;
  /** The time namespace; older versions did not write it. */
  readonly timeSpace?: string;
  readonly pid: number;
  /** The start time in the kernel's own units, since boot, as the time namespace shows it. */
  readonly start: string;
  /** Means the whole session that this process leads, in whatever groups, instead of the process alone. */
  readonly group?: true;
}

export interface Host {
  /** The kernel's id of this boot; with `FAKED` before it where a container shows an id of its own. */
  readonly boot: string;
  readonly space: string;
  readonly timeSpace: string;
}

/** systemd-nspawn and others mount a file over the kernel's boot id, so that it differs between containers of one boot. */
const FAKED = 'faked:';
/** The type that `statfs` reports for files that the kernel itself shows in /proc. */
const PROC = 0x9fa0;
const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const LOADAVG = '/proc/loadavg';
/** For kernels without time namespaces, where all processes share one clock. */
const NO_TIME_SPACES = 'none';
/** The time namespace that every machine begins with: in it, the kernel shows its clock as it is. */
export const FIRST_TIME_SPACE = 'time:[4026531834]';

const KTHREADD = 2;
/** The flag of the kernel's own threads in the flags of a process. */
const PF_KTHREAD = 0x200000;
const NO_NAMES: ReadonlySet<string> = new Set();

let known: Host | null | undefined;
/** Neither the pid nor the start time of a process ever changes. */
let self: ProcessIdentity | undefined;

/** The machine that this process runs on, as far as processes can see each other; undefined where the system does not tell. */
export function thisHost(): Host | undefined {
  if (known === undefined) known = readHost();
  return known ?? undefined;
}

function readHost(): Host | null {
  if (process.platform !== 'linux') return null;
  try {
    // In a new namespace that still sees the old /proc, the pid would be looked up as that of another process.
    if (readlinkSync('/proc/self') !== String(process.pid)) return null;
    const isFaked = statfsSync(BOOT_ID).type !== PROC;
    const boot = `${isFaked ? FAKED : ''}${readFromKernel(BOOT_ID).trim()}`;
    return { boot, space: readlinkSync('/proc/self/ns/pid'), timeSpace: readTimeSpace() };
  } catch {
    return null;
  }
}

/** The time namespace of this process itself; `time_for_children` shifts nothing here. */
function readTimeSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/time');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NO_TIME_SPACES;
    throw error;
  }
}

/** Whether both ids are the kernel's own and differ: then nothing of the earlier boot runs on this machine. */
export function areOfTwoBoots(one: string, other: string): boolean {
  return one !== other && !one.startsWith(FAKED) && !other.startsWith(FAKED);
}

/** Whether the process can be seen from here: its pid and start time mean the same to us as to the process that wrote them. */
export function isInSight({ boot, space, timeSpace }: ProcessIdentity): boolean {
  const host = thisHost();
  return host !== undefined && boot === host.boot && space === host.space && timeSpace === host.timeSpace;
}

/**
 * Like `isInSight`, but also for notes of older versions, which have no time namespace: hardly any process is in
 * another one than the first. That is enough to find a process by its start time, but not to declare it dead.
 */
export function isLikelyInSight(identity: ProcessIdentity): boolean {
  if (identity.timeSpace !== undefined) return isInSight(identity);
  const timeSpace = thisHost()?.timeSpace;
  return (timeSpace === FIRST_TIME_SPACE || timeSpace === NO_TIME_SPACES) && isInSight({ ...identity, timeSpace });
}

export function thisProcess(): ProcessIdentity | undefined {
  self ??= identify(process.pid);
  return self;
}

export function identify(pid: number): ProcessIdentity | undefined {
  const host = thisHost();
  const stat = host === undefined ? undefined : readStat(pid);
  if (host === undefined || stat === undefined) return undefined;
  return { ...host, pid, start: stat.start };
}

/** Compares the whole identity: a pid alone is reused, and means another process in another namespace. */
export function isSameProcess(one: ProcessIdentity | undefined, other: ProcessIdentity): boolean {
  const fields = ['boot', 'space', 'timeSpace', 'pid', 'start', 'group'] as const;
  return one !== undefined && fields.every((field) => one[field] === other[field]);
}

/**
 * Whether the process has certainly ended. `false` proves nothing: it may live, or it cannot be seen from here. Another
 * boot id is no proof of its end, since containers of one machine may each show their own.
 */
export function isProvenGone(identity: ProcessIdentity): boolean {
  if (!isInSight(identity)) return false;
  if (!hasLeaderGone(identity)) return false;
  return identity.group !== true || isSessionGone(identity.pid);
}

function hasLeaderGone({ pid, start }: ProcessIdentity): boolean {
  const stat = readStat(pid);
  // Where /proc hides the processes of other users, a missing entry proves nothing; a signal would still find them.
  if (stat === undefined) return !canBeSignalled(pid);
  return stat.start !== start || hasEnded(stat);
}

/**
 * Whether no process is left of the session that this process led, except those that wait for their parents to collect
 * them.
 */
export function isSessionGone(leader: number, members = membersOf(leader)): boolean {
  if (members.length > 0) return false;
  // Where other processes are hidden, a signal finds at least those that have stayed in the first group.
  return canSeeAll() || !canBeSignalled(-leader);
}

/**
 * Proves that nothing is left of the session that this process led, from the last pid that the kernel gave out. The kernel gives
 * pids out in turn, and none again while a session or a group has it. So if the leader's pid is the last one, either the leader
 * started nothing, or nothing of its session is left. (Only a program that may restore checkpoints can choose a pid.) `false`
 * proves nothing: then only a look at every process of the machine does.
 */
export function hasLeftNothing(leader: number, last = lastPid()): boolean {
  // While the process itself lives it is in this group, also where /proc hides it.
  return last === leader && !canBeSignalled(-leader);
}

/** The last pid that was given out, to a process or a thread; undefined if the kernel does not say. */
export function lastPid(): number | undefined {
  try {
    // Programs such as lxcfs put a file of their own over it, with the last pid of their own counting.
    if (statfsSync(LOADAVG).type !== PROC) return undefined;
    return Number(readFromKernel(LOADAVG).trim().split(' ').at(-1));
  } catch {
    return undefined;
  }
}

/**
 * The living processes of the session that this process led, as far as they can be seen. The session counts instead of
 * its first group: a job of a shell or a `timeout` has a group of its own, but still belongs to it.
 */
export function membersOf(leader: number): number[] {
  return living(({ session, group }) => session === leader || group === leader);
}

/** The living processes that pass this test, as far as they can be seen, without the threads of the kernel. */
export function living(isSo: (stat: Stat, pid: number) => boolean): number[] {
  const ofKernel = kernelThreads();
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && !ofKernel.has(name))
    .map(Number)
    .filter((pid) => {
      const stat = readStat(pid);
      return stat !== undefined && !hasEnded(stat) && isSo(stat, pid);
    });
}

/**
 * On an idle machine most processes are threads of the kernel, the children of kthreadd, and one file lists them. No process
 * that a program starts gets this parent. In a container, pid 2 is a program like others.
 */
function kernelThreads(): ReadonlySet<string> {
  try {
    if (readStat(KTHREADD)?.isOfKernel !== true) return NO_NAMES;
    return new Set(readFileSync(`/proc/${KTHREADD}/task/${KTHREADD}/children`, 'latin1').trim().split(' '));
  } catch {
    // Kernels may be built without this file.
    return NO_NAMES;
  }
}

function canSeeAll(): boolean {
  // Pid 1 belongs to root and is always there; if it cannot be seen, others may be hidden too.
  return readStat(1) !== undefined;
}

export function canBeSignalled(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

export interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The controlling terminal; 0 without one. */
  readonly terminal: number;
  /** The process group that this terminal sends its keys to. */
  readonly foreground: number;
  /** A thread of the kernel, which no program started. */
  readonly isOfKernel: boolean;
  readonly threads: number;
  readonly start: string;
}

/** Longer than any line of the kernel about a process. */
const line = Buffer.alloc(4096);

/**
 * Reads a short file of /proc. `readFileSync` makes twice as many system calls, and a look for leftovers of a command reads every
 * process of the machine.
 */
export function readFromKernel(path: string): string {
  const file = openSync(path, 'r');
  try {
    return line.toString('latin1', 0, readSync(file, line));
  } finally {
    closeSync(file);
  }
}

/** What the kernel tells about a process; undefined if there is none, or if it is hidden. */
export function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFromKernel(`/proc/${pid}/stat`);
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses, which may itself contain anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', parent = '', group = '', session = '', terminal = '', foreground = ''] = fields;
  return {
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    terminal: Number(terminal),
    foreground: Number(foreground),
    isOfKernel: (Number(fields[6]) & PF_KTHREAD) !== 0,
    threads: Number(fields[17]),
    start: fields[19] ?? '',
  };
}

/** A process whose main thread has ended may go on in its other threads. */
export function hasEnded({ state, threads }: Stat): boolean {
  return (state === 'Z' || state === 'X') && threads <= 1;
}
