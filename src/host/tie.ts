/**
 * Finds the process that a hold is to end with. Accepts only a living process of this user: a process of another user
 * may end at any time, for reasons that only that user knows, and a number that names no process is a mistake in the
 * call.
 */
import { isTrustedOwner, userShown } from './accounts.ts';
import { realUidOf } from './permission.ts';
import { canBeSignalled, hasEnded, identify, type ProcessIdentity, readStat, thisHost } from './process.ts';

export type Tie =
  /** `process` is undefined where the system cannot identify processes for certain: then leases alone decide. */
  | { readonly ok: true; readonly process: ProcessIdentity | undefined }
  | { readonly ok: false; readonly problem: string };

export function tieTo(pid: number): Tie {
  const stat = thisHost() === undefined ? undefined : readStat(pid);
  const isAlive = stat === undefined ? canBeSignalled(pid) : !hasEnded(stat);
  if (!isAlive) return { ok: false, problem: `pid is ${pid}, and no such process runs here` };
  const uid = realUidOf(pid);
  if (uid !== undefined && !isTrustedOwner(uid)) {
    return { ok: false, problem: `pid is ${pid}, a process of ${userShown(uid)}; expected one of your own` };
  }
  return { ok: true, process: identify(pid) };
}
