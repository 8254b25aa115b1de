/** Opens a store for commands that only read: they do not create one where there is none yet. */
import type { Command } from 'commander';
import { statSync } from 'node:fs';
import { parseFileUrl, storeUrl } from '../runtime/location/location.ts';
import { open } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { storeFile } from '../store/embedded/index.ts';
import { withoutPassword } from '../store/index.ts';
import { interruptible } from './interrupt.ts';
import type { GlobalOptions } from './program.ts';
import { withBox } from './store.ts';

export interface Looked<T> {
  readonly found: T;
  /** The store that was read. */
  readonly url: string;
  /** If there is no store yet: a sentence that says so. What it means for the question, the caller adds. */
  readonly missing: string | undefined;
}

type Work<T> = (box: Signalbox, signal: AbortSignal, url: string) => Promise<T>;

export async function look<T>(command: Command, work: Work<T>): Promise<Looked<T>> {
  const url = storeUrl(command.optsWithGlobals<GlobalOptions>().store);
  if (isThere(url)) {
    const found = await withBox(command, (box, signal) => work(box, signal, url));
    return { found, url: withoutPassword(url), missing: undefined };
  }
  const missing = `There is no store at ${url} yet.`;
  return { found: await interruptible((signal) => onNothing((box) => work(box, signal, url))), url, missing };
}

/** An empty store in memory answers like a newly created one. */
async function onNothing<T>(work: (box: Signalbox) => Promise<T>): Promise<T> {
  const box = await open('memory:', { maintains: false });
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}

/** Other problems with the place are reported when it is opened. */
function isThere(url: string): boolean {
  if (!url.startsWith('file:')) return true;
  try {
    statSync(storeFile(parseFileUrl(url).directory));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
