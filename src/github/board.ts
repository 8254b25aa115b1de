/**
 * The locks of a repository on GitHub, shown beside those of the store. However many readers there are, the server asks GitHub at
 * most every 15 s, with two requests that do not count against the rate limit while nothing has changed.
 */
import type { Clock } from '../clock.ts';
import type { LockManager } from './lock-manager.ts';
import type { LockedIssue } from './terms.ts';

export interface BoardView {
  /** `owner/name`; null if the server follows no repository. */
  readonly repository: string | null;
  /** When the server last asked GitHub; null if it never did. */
  readonly asOf: number | null;
  /** Why the list may be old: what went wrong when the server asked GitHub. */
  readonly trouble: string | null;
  /** How often the server asks GitHub; reading again sooner shows the same list. */
  readonly everyMs: number;
  readonly locks: readonly LockedIssue[];
}

const FRESH_MS = 15_000;
export const NO_BOARD: BoardView = { repository: null, asOf: null, trouble: null, everyMs: FRESH_MS, locks: [] };

export class GitHubBoard {
  readonly #locks: Pick<LockManager, 'listLocks'>;
  readonly #clock: Clock;
  #view: BoardView;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(repository: string, locks: Pick<LockManager, 'listLocks'>, clock: Clock, everyMs = FRESH_MS) {
    this.#locks = locks;
    this.#clock = clock;
    this.#view = { ...NO_BOARD, repository, everyMs };
  }

  /** The last answer, without asking. */
  get last(): BoardView {
    return this.#view;
  }

  async look(): Promise<BoardView> {
    if (this.#clock.monotonic() - this.#askedAt >= this.#view.everyMs) {
      this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    }
    await this.#asking;
    return this.#view;
  }

  async #ask(): Promise<void> {
    try {
      const locks = await this.#locks.listLocks();
      this.#view = { ...this.#view, asOf: this.#clock.now(), trouble: null, locks };
    } catch (error) {
      this.#view = { ...this.#view, trouble: (error as Error).message };
    }
    this.#askedAt = this.#clock.monotonic();
  }
}
