/**
 * Keeps the output of a phase in a file on this machine until the store has it. The driver writes the log to the store now
 * and then; if it is killed in between, the last lines are the ones that a person needs.
 *
 *     FROM\n…       the number of bytes printed before; then what was printed since
 *
 * The file may repeat a part of the log: both say where they begin, so a reader sees nothing twice.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { PipelineRecord } from '../../core/index.ts';
import { ownTemporaryDirectory, readRegularFile } from '../../host/index.ts';

const LOGS = 'signalbox-logs';
const LARGEST_BYTES = 1_048_576;
const OLD_MS = 30 * 86_400_000;

/** The file name: pipeline, phase and run. The time keeps apart pipelines of the same id in different stores. */
export function spoolName({ id, startedBy, startedAt }: PipelineRecord, place: number, run: number): string {
  return createHash('sha256')
    .update(JSON.stringify([id, startedBy, startedAt, place, run]))
    .digest('hex');
}

export class Spool {
  readonly #path: string;
  #file: number;
  #size = 0;

  /** Undefined if this user cannot have a private file; then the log goes only to the store. */
  static open(name: string): Spool | undefined {
    try {
      const directory = ownTemporaryDirectory(LOGS);
      removeOld(directory);
      return new Spool(join(directory, name));
    } catch {
      return undefined;
    }
  }

  private constructor(path: string) {
    this.#path = path;
    this.#file = created(path, 0, Buffer.alloc(0));
  }

  /** `end`: the newest output, this piece included. `total`: the number of bytes printed in all. */
  add(bytes: Buffer, total: number, end: () => Buffer): void {
    try {
      if (this.#size + bytes.length > LARGEST_BYTES) return this.#beginAnew(total, end());
      writeSync(this.#file, bytes);
      this.#size += bytes.length;
    } catch {
      // A full disk costs only the last lines of a driver that is killed.
    }
  }

  /** Removes the file: the store has all of it. */
  remove(): void {
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
  }

  #beginAnew(total: number, end: Buffer): void {
    const before = this.#file;
    this.#file = created(this.#path, total - end.length, end);
    this.#size = end.length;
    closeSync(before);
  }
}

/** What a driver had spooled but not stored; undefined if there is nothing. */
export function readSpool(name: string): { readonly from: number; readonly bytes: Buffer } | undefined {
  let content: Buffer | undefined;
  try {
    content = readRegularFile(join(ownTemporaryDirectory(LOGS), name), Number.POSITIVE_INFINITY);
  } catch {
    // The directory belongs to another user.
  }
  const line = content?.indexOf('\n') ?? -1;
  const from = Number(content?.subarray(0, Math.max(0, line)).toString('latin1'));
  return content !== undefined && line > 0 && Number.isSafeInteger(from)
    ? { from, bytes: content.subarray(line + 1) }
    : undefined;
}

export function removeSpool(name: string): void {
  try {
    rmSync(join(ownTemporaryDirectory(LOGS), name), { force: true });
  } catch {
    // The file belongs to another user, or does not exist.
  }
}

/** Replaces the file in one step: a process that is killed here leaves the file as it was. */
function created(path: string, from: number, bytes: Buffer): number {
  const fresh = `${path}.${process.pid}`;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_NOFOLLOW } = constants;
  const file = openSync(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0o600);
  writeSync(file, Buffer.concat([Buffer.from(`${from}\n`), bytes]));
  renameSync(fresh, path);
  return file;
}

/** Removes files of pipelines that were never resumed. */
function removeOld(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    // Another driver may remove or rename the file meanwhile.
    const modifiedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (modifiedMs !== undefined && Date.now() - modifiedMs > OLD_MS) rmSync(path, { force: true });
  }
}
