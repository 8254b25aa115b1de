/** Which users' stores this process trusts, and who owns the files that it makes there. */
import type { Stats } from 'node:fs';
import { isTrustedOwner } from '../../host/index.ts';
import type { Access, Share } from './share.ts';

/** Whether files of this user are as good as our own. */
export type Trust = (uid: number) => boolean;

/** Root also trusts files of another user, if it has reason to: only root can open a store that is closed to others. */
export function trustIn(also: (() => number | undefined) | undefined): Trust {
  if (also === undefined || process.geteuid?.() !== 0) return (uid) => isTrustedOwner(uid);
  // Asking starts git, so it is done only once.
  let trusted: { readonly uid: number | undefined } | undefined;
  return (uid) => isTrustedOwner(uid) || uid === (trusted ??= { uid: also() }).uid;
}

/** Whether this process is in the group; root may enter whatever is shared. */
export function isMember(gid: number): boolean {
  return process.geteuid?.() === 0 || process.getegid?.() === gid || process.getgroups?.().includes(gid) === true;
}

/** The owner of new files in this directory; if undefined, the user of the process that makes them. */
export function heirOf({ uid, gid }: Stats, share: Share): Access['heir'] {
  const own = process.geteuid?.();
  if (own === undefined) return undefined;
  // Root leaves no file behind that the owner could not use.
  if (own === 0 && uid !== 0) return { uid, gid };
  return share === 'group' ? { uid: own, gid } : undefined;
}

export function ownUid(): number {
  return process.geteuid?.() ?? -1;
}
