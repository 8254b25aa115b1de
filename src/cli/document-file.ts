/** Reads a file that is named on the command line. */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { LARGEST_BYTES } from '../document/index.ts';

/** Returns the bytes, at most one more than a document may have, or a text that says what is wrong. `-` is stdin. */
export async function readBytes(named: string): Promise<Uint8Array | string> {
  try {
    return await firstOf(named === '-' ? process.stdin : createReadStream(named));
  } catch (error) {
    return unreadable(error as NodeJS.ErrnoException);
  }
}

/** Reads a stream and not `/dev/stdin`, which cannot be opened where it is a socket. */
async function firstOf(stream: Readable): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > LARGEST_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, LARGEST_BYTES + 1);
}

/** What is wrong with the file, in words. */
export function unreadable({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory; expected a file';
  if (code === 'EACCES') return 'you have no permission to read it';
  return `it cannot be read: ${message}`;
}
