/** A file whose time says when a process last made a round; see `Sentry`. */
import { lstatSync } from 'node:fs';
import { makeFile, touch } from './entries.ts';
import type { Access } from './share.ts';

export class Mark {
  readonly #path: string;
  readonly #access: Access;

  constructor(path: string, access: Access) {
    this.#path = path;
    this.#access = access;
  }

  /**
   * The age is never negative: a time in the future, after a clock was set back, must not keep every process from its
   * round.
   */
  ageMs(now: number): number {
    const stat = lstatSync(this.#path, { throwIfNoEntry: false });
    return stat?.isFile() === true ? Math.abs(now - stat.mtimeMs) : Number.POSITIVE_INFINITY;
  }

  /** Whether the mark was set within this time; if not, sets it to now. */
  isFresh(now: number, forMs: number): boolean {
    try {
      if (this.ageMs(now) < forMs) return true;
      touch(this.#path, now);
    } catch {
      // Without a mark, every process makes the round.
      makeFile(this.#path, this.#access);
    }
    return false;
  }
}
