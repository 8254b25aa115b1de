/** Opens a store for commands that only read: they do not create one where there is none yet. */
import type { Command } from './command.ts';
import { statSync } from 'node:fs';
import { refuseCheckedOut } from '../runtime/location/checked-out.ts';
import { parseFileUrl, storeUrl, trustedOwnerOf } from '../runtime/location/location.ts';
import { open } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { isReadOnly, openToRead, storeFile } from '../store/embedded/index.ts';
import { withoutPassword } from '../store/index.ts';
import { interruptible } from './interrupt.ts';
import { printable, say } from './output.ts';
import { closing, withBox } from './store.ts';

export interface Looked<T> {
  readonly found: T;
  /** The store that was read. */
  readonly url: string;
  /** If there is no store yet: a sentence that says so. The caller adds what that means for its question. */
  readonly missing: string | undefined;
}

type Work<T> = (box: Signalbox, signal: AbortSignal, url: string) => Promise<T>;

export async function look<T>(command: Command, work: Work<T>): Promise<Looked<T>> {
  const url = storeUrl(command.store);
  if (isThere(url)) {
    const found = isReadOnlyStore(url)
      ? await interruptible(async (signal) => closing(await openToLook(url), (box) => work(box, signal, url)))
      : await withBox(command, (box, signal) => work(box, signal, url));
    return { found, url: withoutPassword(url), missing: undefined };
  }
  const isNamed = command.store !== undefined;
  const missing = `There is no store at ${url} yet${isNamed ? ': check the path, if there should be one' : ''}.`;
  // A program that gets an empty list could not tell that the path was mistyped.
  if (isNamed && command.isJson) say(`there is no store at ${printable(url)} yet`);
  // An empty store in memory answers like a newly created one.
  const found = await interruptible(async (signal) =>
    closing(await open('memory:', { maintains: false }), (box) => work(box, signal, url)),
  );
  return { found, url, missing };
}

/** Whether this process may read the store, and not write it: in a sandbox, or on a read-only file system. */
export function isReadOnlyStore(url: string): boolean {
  return url.startsWith('file:') && isReadOnly(parseFileUrl(url).directory);
}

/** Makes no session, and nothing beside the store. */
export async function openToLook(url: string): Promise<Signalbox> {
  const options = { maintains: false, component: 'cli' };
  if (!isReadOnlyStore(url)) return open(url, options);
  const { directory, share } = parseFileUrl(url);
  refuseCheckedOut(directory);
  return open(await openToRead(directory, { share, trustedOwner: () => trustedOwnerOf(directory) }), options);
}

/** Other problems with the place are reported when it is opened. */
export function isThere(url: string): boolean {
  if (!url.startsWith('file:')) return true;
  try {
    statSync(storeFile(parseFileUrl(url).directory));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
