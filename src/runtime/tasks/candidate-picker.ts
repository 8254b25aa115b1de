/**
 * Which of the best few tasks to go for, so that many workers do not all fight for the same one.
 *
 * A worker that meets nobody takes strictly the oldest of the highest priority. Each time somebody else was faster it
 * looks at twice as many of the oldest and picks one of them by chance; each success narrows that a little. So the number
 * settles at some multiple of the workers there are, conflicts at a few in a hundred, and nobody needs to know of the
 * others. Priorities are never mixed: it is always the oldest few of the highest one.
 */

const WIDEST = 256;
/** By so much of itself it narrows with each success. */
const NARROWING = 1 / 64;
/** So far apart do those go who were woken by the same task, one after another. */
const STEP_MS = 0.5;
const LONGEST_STEP_MS = 20;

export class CandidatePicker {
  #width = 1;
  #seed: number;

  /** `salt`: different for each process, so that they choose differently. */
  constructor(salt: string) {
    this.#seed = hashOf(salt);
  }

  get width(): number {
    return Math.ceil(this.#width);
  }

  won(): void {
    this.#width = Math.max(1, this.#width * (1 - NARROWING));
  }

  lost(): void {
    this.#width = Math.min(WIDEST, Math.max(2, 2 * this.#width));
  }

  /** One of these, which are at most as many as `width`. */
  pick<T>(best: readonly T[]): T | undefined {
    return best[this.#next() % Math.max(1, best.length)];
  }

  /** How long to let others go first for a task that has just come, and that all who wait are woken by. */
  pauseMs(): number {
    return this.width === 1 ? 0 : Math.min(LONGEST_STEP_MS, (this.#next() % this.width) * STEP_MS);
  }

  /** A generator of its own (xorshift): the same seed chooses the same way again. */
  #next(): number {
    let x = this.#seed || 0x9e3779b9;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#seed = x >>> 0;
    return this.#seed;
  }
}

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
