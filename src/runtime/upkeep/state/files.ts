/** Reads and writes the files. A reader sees the old files or the new ones, never a half-written one. */
import { randomHex } from '../../../host/index.ts';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Failure } from '../../../failure.ts';
import { emptyFile, rendered, type SavedKind, type SavedState } from './document.ts';
import { parseLocks, parseSemaphores } from './parse.ts';
import { parseKeys, parsePipelines, parseTasks } from './parse-rest.ts';

/** One file for each kind of resource. */
const STATE_FILES = {
  locks: 'locks.json',
  semaphores: 'semaphores.json',
  tasks: 'tasks.json',
  pipelines: 'pipelines.json',
  keys: 'keys.json',
} as const satisfies Record<SavedKind, string>;

const KINDS = Object.keys(STATE_FILES) as readonly SavedKind[];

/** Writes all under other names first, and renames them once they are on the disk. */
export async function writeState(dir: string, state: SavedState): Promise<readonly string[]> {
  await told(dir, makeDirectory(resolve(dir)));
  const mark = randomHex(4);
  const files = KINDS.map((kind) => {
    const name = STATE_FILES[kind];
    return { kind, path: join(dir, name), beside: join(dir, `.${name}.${mark}.tmp`) };
  });
  try {
    for (const { kind, beside } of files) await told(beside, writeDurably(beside, rendered(kind, state)));
    for (const { path, beside } of files) await told(path, rename(beside, path));
    await sync(dir);
  } catch (error) {
    for (const { beside } of files) await rm(beside, { force: true }).catch(() => undefined);
    throw error;
  }
  return files.map(({ path }) => path);
}

export async function readState(dir: string): Promise<SavedState> {
  const texts = {} as Record<SavedKind, string>;
  for (const kind of KINDS) {
    const path = join(dir, STATE_FILES[kind]);
    // Locks and semaphores must be there: a missing file would look like a state in which nothing is held. Earlier
    // versions wrote only these two.
    const isNeeded = kind === 'locks' || kind === 'semaphores';
    const text = await told(path, readFile(path, 'utf8'), NOT_EXPORTED).catch((error: unknown) => {
      if (isNeeded || (error as { cause?: { code?: string } }).cause?.code !== 'ENOENT') throw error;
      return emptyFile(kind);
    });
    // Some editors put a byte order mark before the text.
    texts[kind] = text.replace(/^\uFEFF/, '');
  }
  const place = (kind: SavedKind): string => join(dir, STATE_FILES[kind]);
  return {
    locks: parseLocks(place('locks'), texts.locks),
    semaphores: parseSemaphores(place('semaphores'), texts.semaphores),
    ...parseTasks(place('tasks'), texts.tasks),
    pipelines: parsePipelines(place('pipelines'), texts.pipelines),
    keys: parseKeys(place('keys'), texts.keys),
  };
}

/**
 * Makes each directory on its own: a recursive `mkdir` of Node never ends below a directory in which none can be made, such as
 * /proc. Resolves once the directory exists.
 */
async function makeDirectory(dir: string): Promise<void> {
  try {
    await mkdir(dir, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const there = await stat(dir).catch(() => undefined);
    if (there?.isDirectory() === true) return;
    const parent = dirname(dir);
    if (code !== 'ENOENT' || parent === dir || (await stat(parent).catch(() => undefined)) !== undefined) throw error;
    await makeDirectory(parent);
    await mkdir(dir, { mode: 0o700 });
  }
}

/** Writes a file for its owner alone: tasks, logs and keys may contain secrets. */
async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
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

/** What is wrong with a path that was given, and what to give instead. */
const MISTAKES: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist, and cannot be made; name another directory',
  ENOTDIR: 'a part of this path is a file; name a directory',
  EEXIST: 'this is a file; name a directory',
  EISDIR: 'this is a directory where a file should be',
};

/** The same for a file that is to be read. */
const NOT_EXPORTED: typeof MISTAKES = {
  ...MISTAKES,
  ENOENT: 'there is no such file; name a directory that export wrote',
};

async function told<T>(path: string, done: Promise<T>, mistakes = MISTAKES): Promise<T> {
  try {
    return await done;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    const mistake = mistakes[code];
    if (mistake === undefined) throw new Failure('unavailable', `${path}: ${message}`, { cause });
    throw new Failure('invalid', `${path}: ${mistake}`, { cause });
  }
}
