/**
 * The whole terminal: the other screen, without cursor and line wrapping. Writes only the lines that have changed. However the
 * process ends, it restores the terminal; only after `kill -9` it cannot.
 */
import { harmless, terminalWriter } from './output.ts';

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';

/** What makes one picture of the other: each line that differs, in its place. */
export function changesBetween(before: readonly string[], after: readonly string[]): string {
  let changes = '';
  for (let at = 0; at < Math.max(before.length, after.length); at++) {
    const line = after[at] ?? '';
    if (line !== (before[at] ?? '')) changes += `\x1b[${at + 1};1H${line}\x1b[K`;
  }
  return changes;
}

export class FullScreen {
  /** Whether one has the terminal now. */
  static isShown = false;
  readonly #redraw: () => void;
  readonly #onKeys: ((text: string) => void) | undefined;
  #drawn: readonly string[] = [];
  #isEntered = false;
  readonly #write = terminalWriter();
  readonly #restore = (): void => this.#leave();
  readonly #resized = (): void => {
    if (!this.#isEntered) return;
    // A terminal may have moved or cut what was on it.
    this.#drawn = [];
    this.#write('\x1b[2J');
    this.#redraw();
  };
  readonly #continued = (): void => {
    this.#enter();
    this.#resized();
  };
  readonly #typed = (chunk: Buffer): void => this.#onKeys?.(chunk.toString('utf8'));

  /** `redraw`: called when the window has another size. `onKeys`: gets what is typed, as it comes; without it nothing is read. */
  constructor(redraw: () => void, onKeys?: (text: string) => void) {
    this.#redraw = redraw;
    this.#onKeys = onKeys;
    process.stdout.on('resize', this.#resized);
    process.on('exit', this.#restore);
    process.on('SIGCONT', this.#continued);
    if (onKeys !== undefined) process.stdin.on('data', this.#typed);
    this.#enter();
  }

  get width(): number {
    return process.stdout.columns || 80;
  }

  get height(): number {
    return process.stdout.rows || 24;
  }

  draw(lines: readonly string[]): void {
    // Stopped, or about to be: the terminal is the shell's.
    if (!this.#isEntered) return;
    const shown = lines.slice(0, this.height).map(harmless);
    const changes = changesBetween(this.#drawn, shown);
    this.#drawn = shown;
    if (changes !== '') this.#write(changes);
  }

  /** Draws everything again: another program may have written on the terminal. */
  refresh(): void {
    this.#resized();
  }

  /** Ctrl-Z: the terminal is the shell's until it lets us go on. */
  suspend(): void {
    this.#leave();
    process.kill(0, 'SIGTSTP');
  }

  /** `last`: what is left on the terminal. */
  over(last = ''): void {
    process.stdout.off('resize', this.#resized);
    process.off('exit', this.#restore);
    process.off('SIGCONT', this.#continued);
    process.stdin.off('data', this.#typed);
    this.#leave();
    if (last !== '') this.#write(`${harmless(last)}\n`);
    if (this.#onKeys !== undefined) process.stdin.pause();
  }

  #enter(): void {
    if (this.#isEntered) return;
    this.#isEntered = FullScreen.isShown = true;
    if (this.#onKeys !== undefined) process.stdin.setRawMode(true);
    this.#write(ENTER);
    this.#drawn = [];
  }

  #leave(): void {
    if (!this.#isEntered) return;
    this.#isEntered = FullScreen.isShown = false;
    this.#write(LEAVE);
    if (this.#onKeys === undefined) return;
    try {
      process.stdin.setRawMode(false);
    } catch {
      // The terminal is gone.
    }
  }
}
