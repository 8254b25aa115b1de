/**
 * Finds what is left of a child process and of everything it started, and signals those processes and no others.
 *
 *     with a session of its own    the members of that session, in whatever groups
 *     sharing the terminal's       the child and its descendants, and those in the same session that bear its mark
 *
 * The mark is in the environment of everything that the child starts. It tells these processes from strangers once the
 * child itself, whose start time is known, has gone. Processes that have moved to another session are not looked for:
 * that is how a program says that it means to stay.
 */
import { bearsMark } from './mark.ts';
import { barTo, type Sight } from './permission.ts';
import {
  canBeSignalled,
  hasLeftNothing,
  identify,
  isLikelyInSight,
  isSessionGone,
  living,
  membersOf,
  type ProcessIdentity,
  readStat,
  thisHost,
} from './process.ts';

export interface Offspring {
  readonly pid: number;
  /** Whether the child leads a session of its own, and the first group in it. */
  readonly leads: boolean;
  readonly mark: string;
  /** Undefined where the platform does not tell. */
  readonly process?: ProcessIdentity;
  /** The session that the child was started in, if it shares one. */
  readonly session?: number;
}

export type Remains =
  | { readonly kind: 'none' }
  /** `isCertain`: these are the processes of the child, and not others that later got the same pids. */
  | { readonly kind: 'some'; readonly pids: readonly number[]; readonly isCertain: boolean }
  /** The child is on another machine, or in another namespace. */
  | { readonly kind: 'out-of-sight' };

const NONE: Remains = { kind: 'none' };

/** Describes a child that this process has just started. */
export function offspringOf(pid: number, leads: boolean, mark: string): Offspring {
  const process = identify(pid);
  if (process === undefined) return { pid, leads, mark };
  if (leads) return { pid, leads, mark, process: { ...process, group: true } };
  const session = readStat(pid)?.session;
  return { pid, leads, mark, process, ...(session !== undefined && { session }) };
}

/** `isOwn`: the child is one of this process, which has supervised it all the time. */
export function remainsOf(offspring: Offspring, isOwn = false): Remains {
  const { process, leads, pid } = offspring;
  if (process === undefined || thisHost() === undefined) {
    return isOwn ? unidentified(offspring) : { kind: 'out-of-sight' };
  }
  if (!isLikelyInSight(process)) return { kind: 'out-of-sight' };
  const stat = readStat(pid);
  const isItself = stat?.start === process.start;
  if (!leads) return isItself || stat === undefined ? treeRemains(offspring, isItself) : withMarkOnly(offspring);
  // The system does not reuse a pid while a group or a session has it, so nothing of the child is left. Without a time
  // namespace in the note, it may also be the same process with another start time.
  if (stat !== undefined && !isItself) return process.timeSpace === undefined ? { kind: 'out-of-sight' } : NONE;
  if (stat === undefined && hasLeftNothing(pid)) return NONE;
  const pids = membersOf(pid);
  if (isSessionGone(pid, pids)) return NONE;
  return {
    kind: 'some',
    pids,
    isCertain: isOwn || isItself || pids.some((member) => bearsMark(member, offspring.mark)),
  };
}

/** Where the platform tells nothing about processes, a signal still shows whether there are any. */
function unidentified({ pid, leads }: Offspring): Remains {
  return canBeSignalled(leads ? -pid : pid) ? { kind: 'some', pids: [pid], isCertain: true } : NONE;
}

function treeRemains(offspring: Offspring, isItself: boolean): Remains {
  const children = new Map<number, number[]>();
  const everyone = living(({ parent }, pid) => {
    children.set(parent, [...(children.get(parent) ?? []), pid]);
    return true;
  });
  const tree = new Set<number>();
  const add = (pid: number): void => {
    if (tree.has(pid)) return;
    tree.add(pid);
    for (const child of children.get(pid) ?? []) add(child);
  };
  if (isItself && everyone.includes(offspring.pid)) add(offspring.pid);
  for (const pid of everyone) if (isOfSession(pid, offspring) && bearsMark(pid, offspring.mark)) add(pid);
  return tree.size === 0 ? NONE : { kind: 'some', pids: [...tree], isCertain: true };
}

function withMarkOnly(offspring: Offspring): Remains {
  const pids = living((_, pid) => isOfSession(pid, offspring) && bearsMark(pid, offspring.mark));
  return pids.length === 0 ? NONE : { kind: 'some', pids, isCertain: true };
}

function isOfSession(pid: number, { session }: Offspring): boolean {
  return session === undefined || readStat(pid)?.session === session;
}

/** Returns false if this process must not or may not signal one of them. Processes that have ended meanwhile do not matter. */
export function signalRemains(child: Offspring, remains: Remains, signal: NodeJS.Signals, sight: Sight = {}): boolean {
  if (remains.kind !== 'some' || !remains.isCertain) return remains.kind === 'none';
  if (barTo(child, remains.pids, sight) !== undefined) return false;
  // Signals all of them, even if one may not be signalled.
  return targetsOf(child, remains.pids, sight)
    .map((target) => signalled(target, signal))
    .every((wasTold) => wasTold);
}

function targetsOf(child: Offspring, pids: readonly number[], { isShared }: Sight): readonly number[] {
  if (!child.leads) return pids;
  // If other users may have named the session and its leader is gone, only the marks in it tell which processes are meant.
  if (isShared === true && !pids.includes(child.pid)) return pids.filter((pid) => bearsMark(pid, child.mark));
  return groupsOf(child.pid, pids).map((group) => -group);
}

/** All groups of the session, with the first. Signalling whole groups also reaches a process that has just been started. */
function groupsOf(leader: number, pids: readonly number[]): readonly number[] {
  const stats = pids.map(readStat).filter((stat) => stat?.session === leader);
  return [...new Set([leader, ...stats.map((stat) => stat?.group ?? leader)])];
}

function signalled(target: number, signal: NodeJS.Signals): boolean {
  // 0 is our own group, -1 every process, and 1 the process with which all others end.
  if (!Number.isSafeInteger(target) || Math.abs(target) <= 1) return false;
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
