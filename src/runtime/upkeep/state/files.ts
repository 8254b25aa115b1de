/** Reads and writes the files. A reader sees the old files or the new ones, never a half-written one. */
import { randomHex } from '../../../host/index.ts';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../../failure.ts';
import { rendered, type SavedState, STATE_FILES } from './document.ts';
import { parseLocks, parseSemaphores } from './parse.ts';

/** Writes both under other names first, and renames them once both are on the disk. */
export async function writeState(dir: string, state: SavedState): Promise<readonly string[]> {
  await told(dir, mkdir(dir, { recursive: true }));
  const mark = randomHex(4);
  const files = [STATE_FILES.locks, STATE_FILES.semaphores].map((name) => {
    return { path: join(dir, name), beside: join(dir, `.${name}.${mark}.tmp`) };
  });
  try {
    const texts = [rendered('locks', state), rendered('semaphores', state)];
    for (const [place, { beside }] of files.entries()) await told(beside, writeDurably(beside, texts[place] as string));
    for (const { path, beside } of files) await told(path, rename(beside, path));
    await sync(dir);
  } catch (error) {
    for (const { beside } of files) await rm(beside, { force: true }).catch(() => undefined);
    throw error;
  }
  return files.map(({ path }) => path);
}

export async function readState(dir: string): Promise<SavedState> {
  const locks = join(dir, STATE_FILES.locks);
  const semaphores = join(dir, STATE_FILES.semaphores);
  // Both files must exist: a missing one would look like a state in which nothing is held.
  const texts = [await told(locks, readFile(locks, 'utf8')), await told(semaphores, readFile(semaphores, 'utf8'))];
  // Some editors put a byte order mark before the text.
  const [lockText = '', semaphoreText = ''] = texts.map((text) => text.replace(/^\uFEFF/, ''));
  return { locks: parseLocks(locks, lockText), semaphores: parseSemaphores(semaphores, semaphoreText) };
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the renames durable. Where directories cannot be opened, nothing more can be done. */
async function sync(dir: string): Promise<void> {
  const handle = await open(dir, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

async function told<T>(path: string, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    throw new Failure(code === 'ENOENT' ? 'invalid' : 'unavailable', `${path}: ${message}`, { cause });
  }
}
