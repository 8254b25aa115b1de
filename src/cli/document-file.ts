/** The bytes of a file that somebody names on the command line. */
import { open } from 'node:fs/promises';
import { LARGEST_BYTES } from '../document/index.ts';

/** Not more than a document may have, and one byte, whatever it is that is read; or what is wrong. `-` is stdin. */
export async function readBytes(named: string): Promise<Uint8Array | string> {
  try {
    const file = await open(named === '-' ? '/dev/stdin' : named, 'r');
    try {
      const bytes = Buffer.alloc(LARGEST_BYTES + 1);
      let length = 0;
      while (length < bytes.length) {
        const { bytesRead } = await file.read(bytes, length, bytes.length - length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return bytes.subarray(0, length);
    } finally {
      await file.close();
    }
  } catch (error) {
    return unreadable(error as NodeJS.ErrnoException);
  }
}

function unreadable({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory; accepted is a file';
  if (code === 'EACCES') return 'it may not be read';
  return `it cannot be read: ${message}`;
}
