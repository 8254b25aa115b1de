/**
 * The two ways in which users can share a store, and the modes of its files in each. The modes are set to exactly this,
 * whatever the umask says, and are the record of what the owner decided.
 *
 *     0700, files 0600    private: what every store is, unless its URL says otherwise
 *     2770, files 0660    shared with a group: made so by `?share=group`, kept so until its owner says `?share=none`
 */
import type { Stats } from 'node:fs';

/** `none`: for the owner alone. `group`: for every member of the directory's group. */
export type Share = 'none' | 'group';

interface Modes {
  readonly directory: number;
  readonly file: number;
}

export const MODES: Readonly<Record<Share, Modes>> = {
  none: { directory: 0o700, file: 0o600 },
  // New files inherit the directory's group, whichever user makes them.
  group: { directory: 0o2770, file: 0o660 },
};

/** How to make files in a store that was found to be safe. */
export interface Access {
  readonly share: Share;
  /** The owner of new files here; if undefined, the user of the process that makes them. */
  readonly heir: { readonly uid: number; readonly gid: number } | undefined;
}

export const PERMISSIONS = 0o7777;
const BY_GROUP = 0o2070;
export const BY_EVERYBODY_WRITABLE = 0o002;

/** Whether every member of the directory's group, and nobody else, may make files in it, which then belong to that group. */
export function isSharedDirectory({ mode }: Stats): boolean {
  return (mode & BY_GROUP) === BY_GROUP && (mode & BY_EVERYBODY_WRITABLE) === 0;
}

/** Writes a mode as `0755`. */
export function octal(mode: number): string {
  return (mode & PERMISSIONS).toString(8).padStart(4, '0');
}
