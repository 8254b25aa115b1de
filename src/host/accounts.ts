/**
 * Names of users and groups, for messages only: no decision depends on a name. Users that the machine's own files do not
 * list (LDAP, containers) are shown by number.
 */
import { readFileSync } from 'node:fs';

/** `alice (uid 1000)`. */
export function userShown(uid: number): string {
  return named('/etc/passwd', uid, 'uid');
}

/** The name of the user that this process acts as; undefined where the system knows no users. */
export function ownUser(): string | undefined {
  const uid = process.geteuid?.();
  return uid === undefined ? undefined : (nameIn('/etc/passwd', uid) ?? `uid ${uid}`);
}

/** `devs (gid 100)`. */
export function groupShown(gid: number): string {
  return named('/etc/group', gid, 'gid');
}

function named(file: string, id: number, kind: 'uid' | 'gid'): string {
  const name = nameIn(file, id);
  return name === undefined ? `${kind} ${id}` : `${name} (${kind} ${id})`;
}

/** Both files begin their lines with `NAME:x:NUMBER`. */
function nameIn(file: string, id: number): string | undefined {
  try {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [name, , number] = line.split(':');
      if (number === String(id)) return name;
    }
  } catch {
    // This system has no such file.
  }
  return undefined;
}

/**
 * Decides whose files we trust, by git's rule: the user's own, and for root under `sudo` also those of the calling
 * user. Where the system knows no owners (Windows), all files are trusted.
 */
export function isTrustedOwner(
  uid: number,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): boolean {
  const own = process.geteuid?.();
  if (own === undefined || uid === own) return true;
  const caller = environment['SUDO_UID'] ?? '';
  return own === 0 && /^\d{1,10}$/.test(caller) && uid === Number(caller);
}
