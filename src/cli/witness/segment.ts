/** Writes exports of the record to files, packed with gzip if the name ends in `.gz`. */
import { createWriteStream, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
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
  let count = 0;
  const text = async function* (): AsyncGenerator<string, void> {
    for await (const line of lines) {
      count += 1;
      yield `${line}\n`;
    }
  };
  let isOurs = false;
  const target = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  target.once('open', () => (isOurs = true));
  try {
    if (file.endsWith('.gz')) await pipeline(Readable.from(text()), createGzip(), target);
    else await pipeline(Readable.from(text()), target);
    // Maintenance may delete from the store what is in the file.
    await sync(file);
    // Not every file system can do that.
    await sync(dirname(file)).catch(() => undefined);
  } catch (error) {
    if (isOurs) rmSync(file, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new CliExit(EXIT.usage, `${file} is there already, and is not overwritten`);
    if (code?.startsWith('E') === true && !isOurs)
      throw new CliExit(EXIT.usage, `${file} cannot be written: ${message}`);
    throw error;
  }
  return count;
}
