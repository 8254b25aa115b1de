/**
 * Reads files that another user may have written or replaced: without blocking, and only regular files of limited size.
 * Opening a FIFO would block for ever, in a thread that no signal reaches.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, stat } from 'node:fs/promises';
import { Failure, shown } from '../failure.ts';

/** A FIFO would block until a process writes to it, and a terminal would become our controlling terminal. */
const CAREFULLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;

export interface ForeignFile {
  /** The name of the file in errors. */
  readonly name: string;
  readonly limitBytes: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with the open file, before anything is read. */
  readonly check?: (file: FileHandle) => Promise<void>;
}

/** Reads the file at `path`, which must be no link. Throws the system's error if it is not there or cannot be opened. */
export async function readForeign(path: string, foreign: ForeignFile): Promise<Buffer> {
  const { name, limitBytes, check } = foreign;
  // Opening a device can do something to it.
  checkKind(await stat(path), name);
  const file = await open(path, CAREFULLY);
  try {
    await check?.(file);
    const now = await file.stat();
    checkKind(now, name);
    if (now.size > limitBytes) throw tooLarge(name, limitBytes);
    return await readAll(file, foreign);
  } finally {
    await file.close();
  }
}

/** Names of branches and paths are short. */
const LINE_BYTES = 8 * 1024;

/** The line that a small file holds; undefined if there is no such file. */
export async function lineIn(path: string, signal?: AbortSignal): Promise<string | undefined> {
  const bytes = await readForeign(path, { name: path, limitBytes: LINE_BYTES, signal }).catch((error: unknown) =>
    absent(path, error),
  );
  return bytes?.toString('utf8').replace(/\n$/, '');
}

/** Whether anything exists at that path, of any kind. */
export async function isThere(path: string): Promise<boolean> {
  const found = await lstat(path).catch((error: unknown) => absent(path, error));
  return found !== undefined;
}

/** Throws unless the error says that there is no such file. */
function absent(path: string, cause: unknown): undefined {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
  if (cause instanceof Failure || typeof code !== 'string') throw cause;
  throw new Failure('unavailable', `${path} cannot be looked at: ${message}`, { cause });
}

/** Reads up to the limit: some files do not know their size, and others grow. */
async function readAll(file: FileHandle, { name, limitBytes, signal }: ForeignFile): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let length = 0; ;) {
    signal?.throwIfAborted();
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(limitBytes - length, 64 * 1024) + 1));
    if (bytesRead === 0) return Buffer.concat(chunks);
    length += bytesRead;
    if (length > limitBytes) throw tooLarge(name, limitBytes);
    chunks.push(buffer.subarray(0, bytesRead));
  }
}

function checkKind(stats: { isFile(): boolean; isDirectory(): boolean }, name: string): void {
  if (stats.isFile()) return;
  throw new Failure(
    'invalid',
    `${shown(name)} is ${stats.isDirectory() ? 'a directory' : 'no regular file'}: it has no text`,
  );
}

function tooLarge(name: string, limitBytes: number): Failure {
  return new Failure(
    'unavailable',
    `${shown(name)} is larger than ${limitBytes} bytes, the most that is read of a file`,
  );
}
