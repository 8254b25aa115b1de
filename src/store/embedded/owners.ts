/** Whose files this process trusts. Where the system knows no owners (Windows), everybody's. */
import type { Stats } from 'node:fs';
import type { Access, Share } from './share.ts';

/** Whether files of this user are as good as our own. */
export type Trust = (uid: number) => boolean;

/** As git does: the user's own, and for root under `sudo` also those of the user who called it. */
export function isTrustedOwner(uid: number): boolean {
  const own = process.geteuid?.();
  if (own === undefined || uid === own) return true;
  return own === 0 && uid === sudoUser();
}

/** For root also those of another user whom it has reason to trust: nobody else could open a store that is closed. */
export function trustIn(also: (() => number | undefined) | undefined): Trust {
  if (also === undefined || process.geteuid?.() !== 0) return isTrustedOwner;
  return (uid) => isTrustedOwner(uid) || uid === also();
}

function sudoUser(): number | undefined {
  const named = process.env['SUDO_UID'];
  return named !== undefined && /^\d{1,10}$/.test(named) ? Number(named) : undefined;
}

/** Root may enter whatever is shared. */
export function isMember(gid: number): boolean {
  return process.geteuid?.() === 0 || process.getegid?.() === gid || process.getgroups?.().includes(gid) === true;
}

/** Who gets what is made in this directory; undefined: it stays with its maker. */
export function heirOf({ uid, gid }: Stats, share: Share): Access['heir'] {
  const own = process.geteuid?.();
  if (own === undefined) return undefined;
  // Root leaves nothing that the owner could not use.
  if (own === 0 && uid !== 0) return { uid, gid };
  return share === 'group' ? { uid: own, gid } : undefined;
}

export function ownUid(): number {
  return process.geteuid?.() ?? -1;
}
