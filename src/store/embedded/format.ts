/**
 * Reads the format of a file without SQLite: merely opening a database of another version with SQLite may change the
 * file. The first page is in the file, or, if it was changed since, in the log next to it (`-wal`).
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync, type Stats, statSync } from 'node:fs';
import { ifPossible } from '../../host/index.ts';

/** These values are those of SQLite's documentation of its file formats. */
const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
const FORMAT_AT = 60;
const APPLICATION_ID_AT = 68;
const WAL_HEADER_BYTES = 32;
const WAL_PAGE_SIZE_AT = 8;
const WAL_SALTS_AT = 16;
const FRAME_HEADER_BYTES = 24;
const FRAME_COMMIT_AT = 4;
const FRAME_SALTS_AT = 8;
const SALTS_BYTES = 8;

export interface FileFormat {
  readonly applicationId: number;
  readonly format: number;
}

/**
 * Undefined for a file that is empty or no database: SQLite reports that. Never call this for a file that SQLite has
 * open in this process: closing it here would drop SQLite's locks on it. See `isOpenHere`.
 */
export function formatOf(file: string): FileFormat | undefined {
  return formatIn(firstPageInLog(`${file}-wal`) ?? reading(file, (fd) => bytesAt(fd, 0, HEADER_BYTES)));
}

/** Whether this process has the file open, in any of its threads and through any copy of this module. Only Linux tells. */
export function isOpenHere({ dev, ino }: Stats): boolean {
  const descriptors = ifPossible(() => readdirSync('/proc/self/fd')) ?? [];
  return descriptors.some((descriptor) => {
    // Not possible if the descriptor was closed meanwhile, or leads to where this user may not look.
    const open = ifPossible(() => statSync(`/proc/self/fd/${descriptor}`));
    return open?.dev === dev && open.ino === ino;
  });
}

function formatIn(page: Buffer | undefined): FileFormat | undefined {
  if (page === undefined || page.length < HEADER_BYTES) return undefined;
  if (page.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  return { applicationId: page.readInt32BE(APPLICATION_ID_AT), format: page.readInt32BE(FORMAT_AT) };
}

/** The first page as the last committed transaction left it. Frames with other salts are of an earlier use of the log. */
function firstPageInLog(log: string): Buffer | undefined {
  return reading(log, (fd) => {
    const header = bytesAt(fd, 0, WAL_HEADER_BYTES);
    if (header.length < WAL_HEADER_BYTES) return undefined;
    const salts = header.subarray(WAL_SALTS_AT, WAL_SALTS_AT + SALTS_BYTES);
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(WAL_PAGE_SIZE_AT);
    const { size } = fstatSync(fd);
    let committed: Buffer | undefined;
    let pending: Buffer | undefined;
    for (let at = WAL_HEADER_BYTES; at + frameBytes <= size; at += frameBytes) {
      const frame = bytesAt(fd, at, FRAME_HEADER_BYTES);
      if (!frame.subarray(FRAME_SALTS_AT, FRAME_SALTS_AT + SALTS_BYTES).equals(salts)) break;
      if (frame.readUInt32BE(0) === 1) pending = bytesAt(fd, at + FRAME_HEADER_BYTES, HEADER_BYTES);
      if (frame.readUInt32BE(FRAME_COMMIT_AT) !== 0) committed = pending ?? committed;
    }
    return committed;
  });
}

function bytesAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, position));
}

/** Undefined if the file is not there or cannot be read: SQLite reports that. */
function reading<T>(file: string, read: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    return undefined;
  }
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}
