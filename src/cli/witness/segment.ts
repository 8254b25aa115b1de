/** Writes exports of the record to files, packed with gzip if the name ends in `.gz`. */
import { rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Failure } from '../../failure.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { VERSION } from '../version.ts';

/** How often to begin an export again because the record was trimmed meanwhile. */
const ATTEMPTS = 5;

/** Returns the number of lines. Does not overwrite an existing file. */
export async function exportTo(box: Signalbox, file: string, only?: readonly string[]): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await writeLines(exportOf(box, only), file);
    } catch (error) {
      if (!Failure.is(error, 'unavailable') || attempt === ATTEMPTS) throw error;
    }
  }
}

export function exportOf(box: Signalbox, only?: readonly string[]): AsyncIterable<string> {
  return box.witness.export({ by: `signalbox ${VERSION}`, ...(only !== undefined && { only }) });
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Leaves no part of a file behind if it fails, and answers when the file is on the disk. */
export async function writeLines(lines: AsyncIterable<string>, file: string): Promise<number> {
  const source = lines[Symbol.asyncIterator]();
  // Nothing is made before there is something to write: a witness that is off, for example, refuses here.
  let next = await source.next();
  let count = 0;
  const text = async function* (): AsyncGenerator<string, void> {
    try {
      for (; next.done !== true; next = await source.next()) {
        count += 1;
        yield `${next.value}\n`;
      }
    } finally {
      await source.return?.();
    }
  };
  const target = (await made(file, source)).createWriteStream();
  try {
    if (file.endsWith('.gz')) await pipeline(Readable.from(text()), createGzip(), target);
    else await pipeline(Readable.from(text()), target);
    // Maintenance may delete from the store what is in the file.
    await sync(file);
    // Not every file system can do that.
    await sync(dirname(file)).catch(() => undefined);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
  return count;
}

async function made(file: string, source: AsyncIterator<string>): Promise<FileHandle> {
  try {
    return await open(file, 'wx', 0o600);
  } catch (error) {
    await source.return?.();
    throw notWritten(file, error);
  }
}

export function notWritten(file: string, error: unknown): CliExit {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'EEXIST' ? 'is there already, and is not overwritten' : `cannot be written: ${message}`;
  return new CliExit(EXIT.usage, `${file} ${why}`);
}
