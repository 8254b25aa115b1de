/**
 * Decides whether this process may signal the processes that a store says are left of a child. A store may be wrong,
 * and others may have written it, so the note alone is no reason to end anything:
 *
 *     nothing that this process runs inside of        or it would end itself, and the user's terminal with it
 *     only what is proven to be that child            the process with that start time, leading the session that the note
 *                                                     says it leads; or processes that bear the child's mark
 *     only this user's processes                      by their real user id. root may also end what bears the mark: a
 *                                                     child that has changed its user, as under `su` or `gosu`
 *
 * Where other users write the same store, a start time proves nothing, because everybody can read it in /proc. There
 * the child has to bear the mark too, which a process gets only from its own parent.
 */
import { readFileSync } from 'node:fs';
import { bearsMark } from './mark.ts';
import type { Offspring } from './offspring.ts';
import { readStat } from './process.ts';

/** Why processes must not be signalled. */
export type Bar =
  | { readonly kind: 'inside' }
  | { readonly kind: 'unproven' }
  /** The processes belong to this other user. */
  | { readonly kind: 'foreign'; readonly uid: number };

export interface Sight {
  /** The child is one of this process, which has supervised it all the time. */
  readonly isOwn?: boolean;
  /** Other users may have written the store's note about the child. */
  readonly isShared?: boolean;
}

/** `pids` are the child's processes that live. */
export function barTo(child: Offspring, pids: readonly number[], { isOwn, isShared }: Sight): Bar | undefined {
  if (isOwn === true) return undefined;
  const lineage = lineageOf(process.pid);
  if (pids.some((pid) => lineage.has(pid))) return { kind: 'inside' };
  if (child.pid <= 1 || pids.some((pid) => pid <= 1)) return { kind: 'unproven' };
  const stat = readStat(child.pid);
  const isItself = pids.includes(child.pid) && stat?.start === child.process?.start;
  if (isItself && child.leads && (stat?.session !== child.pid || stat.group !== child.pid)) return { kind: 'unproven' };
  const marked = pids.filter((pid) => bearsMark(pid, child.mark));
  if (isItself ? isShared === true && !marked.includes(child.pid) : marked.length === 0) return { kind: 'unproven' };
  const ours = process.geteuid?.();
  for (const pid of isItself ? [child.pid, ...marked] : marked) {
    const uid = realUidOf(pid);
    // A process that has ended meanwhile belongs to nobody.
    if (uid === undefined || uid === ours) continue;
    if (ours !== 0 || !marked.includes(pid)) return { kind: 'foreign', uid };
  }
  return undefined;
}

/** The process and its ancestors. */
function lineageOf(pid: number): ReadonlySet<number> {
  const lineage = new Set<number>();
  for (let one = pid; one > 0 && !lineage.has(one); one = readStat(one)?.parent ?? 0) lineage.add(one);
  return lineage;
}

/** The user that started a process, whatever user it runs as; undefined if the system does not show it. */
export function realUidOf(pid: number): number | undefined {
  try {
    const uid = /^Uid:\t(\d+)\t/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return uid === undefined ? undefined : Number(uid);
  } catch {
    return undefined;
  }
}
