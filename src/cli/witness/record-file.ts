/** Reads the lines of an export, packed with gzip or not, one after the other. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';
import { shown } from '../../failure.ts';
import { unreadable } from '../document-file.ts';
import { CliExit, EXIT } from '../exit-code.ts';

/** No entry comes near this; a file with a longer line is not an export. */
const LONGEST_LINE = 256 * 1024 * 1024;

/** `-` is stdin. A packed file that was cut off just ends early; the verifier notices that the record's own end is missing. */
export async function* linesOf(file: string): AsyncGenerator<string, void> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of unpacked(file)) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST_LINE) throw damaged(file, 'it has a line of more than 256 MiB');
    yield* lines;
  }
  rest += decoder.end();
  if (rest !== '') yield rest;
}

async function* unpacked(file: string): AsyncGenerator<Buffer, void> {
  const source = file === '-' ? process.stdin : createReadStream(file);
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    const first = await chunks.next();
    if (first.done === true) return;
    const all = joined(first.value, chunks);
    if (first.value[0] === 0x1f && first.value[1] === 0x8b) yield* gunzipped(all);
    else yield* all;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code === 'Z_BUF_ERROR') return;
    if (code.startsWith('Z_')) throw damaged(file, message);
    if (typeof (error as NodeJS.ErrnoException).errno !== 'number') throw error;
    throw new CliExit(EXIT.usage, `${shown(file)}: ${unreadable(error as NodeJS.ErrnoException)}`);
  }
}

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* gunzipped(packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const gunzip = createGunzip();
  const source = Readable.from(packed);
  source.on('error', (error) => gunzip.destroy(error));
  yield* source.pipe(gunzip) as AsyncIterable<Buffer>;
}

function damaged(file: string, why: string): CliExit {
  return new CliExit(EXIT.integrity, `${shown(file)} is damaged: ${why}`);
}
