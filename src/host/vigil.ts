/**
 * Watches whether processes are still there, again and again, at a tenth of what it costs to look each of them up. An
 * open file in /proc stays tied to its process: once the process is gone, reading fails, even if another process has
 * its pid by then.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { isInSight, isProvenGone, type ProcessIdentity, readStat } from './process.ts';

/** The most files to keep open; processes beyond that are looked up. */
const MOST_FILES = 256;
/**
 * How the kernel shows the memory of a process that has ended and was not collected by its parent, or whose main thread
 * has ended.
 */
const NO_MEMORY = '0 0 0 ';

export class Vigil {
  readonly #files = new Map<string, number>();
  readonly #asked = new Set<string>();
  readonly #buffer = Buffer.alloc(64);

  /** Answers like `isProvenGone`. */
  readonly isGone = (identity: ProcessIdentity): boolean => {
    const key = `${identity.pid} ${identity.start}`;
    const file = isInSight(identity) ? (this.#files.get(key) ?? this.#open(key, identity)) : undefined;
    if (file === undefined) return isProvenGone(identity);
    this.#asked.add(key);
    if (this.#isAlive(file)) return false;
    return isProvenGone(identity);
  };

  /** Closes the files of processes that were not asked about since the last time. */
  tidy(): void {
    for (const [key, file] of this.#files) if (!this.#asked.has(key)) this.#close(key, file);
    this.#asked.clear();
  }

  end(): void {
    for (const [key, file] of this.#files) this.#close(key, file);
  }

  #open(key: string, { pid, start }: ProcessIdentity): number | undefined {
    if (this.#files.size >= MOST_FILES) return undefined;
    try {
      const file = openSync(`/proc/${pid}/statm`, 'r');
      this.#files.set(key, file);
      // Looked up after the file was opened, so it is the file of this very process.
      if (readStat(pid)?.start === start) return file;
      this.#close(key, file);
    } catch {
      // The process is gone, or hidden.
    }
    return undefined;
  }

  #isAlive(file: number): boolean {
    try {
      const length = readSync(file, this.#buffer, 0, this.#buffer.length, 0);
      return length > 0 && !this.#buffer.toString('latin1', 0, length).startsWith(NO_MEMORY);
    } catch {
      return false;
    }
  }

  #close(key: string, file: number): void {
    this.#files.delete(key);
    closeSync(file);
  }
}
