/**
 * The token of the local administrator: a file next to the store that only its user can read. Loopback is open to every user
 * of the machine, so a server asks for a token there too; programs of the same user read this one.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../../failure.ts';
import { parseFileUrl, userDirectory } from './location.ts';

const FORM = /^sbx_local_[A-Za-z0-9_-]{43}$/;
const BY_OTHERS = 0o077;

/** `url`: as `storeUrl` gives it. A store on etcd has no place on this machine; its token is in the user's directory. */
export function localTokenFile(url: string): string {
  const user = process.geteuid?.() ?? 'user';
  if (url.startsWith('file:')) return `${parseFileUrl(url).directory}.token-${user}`;
  const name = createHash('sha256').update(url).digest('hex').slice(0, 16);
  return join(userDirectory(), `signalbox-${name}.token-${user}`);
}

/** Undefined if no server has made one yet. */
export function readLocalToken(url: string): string | undefined {
  const file = localTokenFile(url);
  let descriptor: number;
  try {
    // Without O_NONBLOCK, opening a pipe at this place would wait for ever.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Failure('forbidden', `the local token cannot be read: ${(error as Error).message}`, { cause: error });
  }
  try {
    refuseUnlessPrivate(file, descriptor);
    const text = readFileSync(descriptor, 'utf8').trim();
    if (FORM.test(text)) return text;
  } finally {
    closeSync(descriptor);
  }
  throw new Failure('corrupt', `${file} has no token in it; remove it, and start signalbox serve again`);
}

/** Makes the token if there is none. Of several servers that start at once, all get the same. */
export function ensureLocalToken(url: string): string {
  const known = readLocalToken(url);
  if (known !== undefined) return known;
  const file = localTokenFile(url);
  const made = `${file}.${randomBytes(6).toString('hex')}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(made, `sbx_local_${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  try {
    // Fails if another server was faster, and shows nobody a file that is still empty.
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(made);
  }
  return readLocalToken(url) as string;
}

function refuseUnlessPrivate(file: string, descriptor: number): void {
  const stat = fstatSync(descriptor);
  const own = process.geteuid?.();
  if (!stat.isFile()) throw new Failure('forbidden', `${file} is no file; remove it`);
  if (own === undefined) return;
  if (stat.uid !== own || (stat.mode & BY_OTHERS) !== 0) {
    throw new Failure(
      'forbidden',
      `${file} is not yours alone, so others may know the token in it; remove it, and start signalbox serve again`,
    );
  }
}
