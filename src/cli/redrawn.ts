/**
 * Draws lines on a terminal and redraws them in place. It changes nothing above, uses no more lines than the terminal has,
 * and leaves the terminal as it was, however it ends.
 */
import { terminalWriter } from './output.ts';

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** Turns line wrapping off: a character wider than we think is cut off, and moves nothing. */
const NO_WRAP = '\x1b[?7l';
const WRAP = '\x1b[?7h';

/** One line, and how many columns it takes. */
export interface DrawnLine {
  readonly text: string;
  readonly columns: number;
}

export class Redrawn {
  readonly #redraw: () => void;
  #drawn: readonly DrawnLine[] = [];
  readonly write = terminalWriter();
  readonly #restore = (): void => this.write(SHOW_CURSOR + WRAP);

  /** `redraw`: called when the window has another size. */
  constructor(redraw: () => void) {
    this.#redraw = redraw;
    process.stdout.on('resize', redraw);
    process.on('exit', this.#restore);
    this.write(HIDE_CURSOR);
  }

  /** The last column stays empty: some terminals move to the next line once it is filled. */
  get width(): number {
    return Math.max(20, (process.stdout.columns || 80) - 1);
  }

  get height(): number {
    return (process.stdout.rows || 24) - 1;
  }

  draw(lines: readonly DrawnLine[]): void {
    const body = lines.map(({ text }) => `${text}\x1b[K\n`).join('');
    this.write(`${NO_WRAP}${this.#back()}${body}\x1b[J${WRAP}`);
    this.#drawn = lines;
  }

  erase(): void {
    this.write(`${this.#back()}\x1b[J`);
    this.#drawn = [];
  }

  over(): void {
    process.stdout.off('resize', this.#redraw);
    process.off('exit', this.#restore);
    this.#restore();
  }

  /** Moves to where the last picture began, counting the lines that a narrower window has wrapped. */
  #back(): string {
    const columns = process.stdout.columns || 80;
    const rows = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.columns / columns)), 0);
    return rows === 0 ? '\r' : `\x1b[${rows}A\r`;
  }
}
