/**
 * Reads a file that another user may have put there, without blocking: opening a FIFO would block for ever, and a
 * device would never end. Guards use the asynchronous `adapters/foreign-file.ts`.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs';

const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = constants;

/** Undefined if it is not a regular file, is larger than `mostBytes`, or cannot be read. */
export function readRegularFile(path: string, mostBytes: number): Buffer | undefined {
  return opened(path, (file, size) => (size > mostBytes ? undefined : readFileSync(file)));
}

/** The first bytes of the file; undefined if it is not a regular file or cannot be read. */
export function beginningOfFile(path: string, bytes: number): Buffer | undefined {
  return opened(path, (file) => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, readSync(file, buffer));
  });
}

function opened(path: string, read: (file: number, size: number) => Buffer | undefined): Buffer | undefined {
  let file: number | undefined;
  try {
    // Opening a device can do something to it.
    if (!statSync(path).isFile()) return undefined;
    file = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const now = fstatSync(file);
    return now.isFile() ? read(file, now.size) : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
