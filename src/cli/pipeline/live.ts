/**
 * Draws a pipeline on a terminal, and redraws it in place on every change. It changes nothing above, uses no more lines
 * than the terminal has, and leaves the terminal as it was, however it ends.
 */
import type { PipelineRecord } from '../../core/index.ts';
import { type Paint, printText } from '../output.ts';
import { LastLines } from './last-lines.ts';
import { pictureOf, type PictureLine } from './picture.ts';
import type { Show } from './show.ts';

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** Turns line wrapping off: a character wider than we think is cut off, and moves nothing. */
const NO_WRAP = '\x1b[?7l';
const WRAP = '\x1b[?7h';
const TICK_MS = 1_000;
/** Output may come by the megabyte, and no one reads faster than this. */
const REDRAW_MS = 80;

export class Live implements Show {
  readonly #paint: Paint;
  readonly #printed = new LastLines();
  readonly #tick: NodeJS.Timeout;
  #record: PipelineRecord | undefined;
  #phase = '';
  #drawn: readonly PictureLine[] = [];
  #soon: NodeJS.Timeout | undefined;
  /** A closed terminal cannot be drawn on. The signal handler elsewhere reacts to that. */
  #isGone = false;
  readonly #restore = (): void => this.#write(SHOW_CURSOR + WRAP);
  readonly #redraw = (): void => this.#draw();

  constructor(paint: Paint) {
    this.#paint = paint;
    this.#tick = setInterval(this.#redraw, TICK_MS);
    process.stdout.on('resize', this.#redraw);
    process.on('exit', this.#restore);
    this.#write(HIDE_CURSOR);
  }

  changed(record: PipelineRecord): void {
    const { runs = 0, name = '' } = record.phases[record.step.phase] ?? {};
    const phase = `${name}/${runs}`;
    if (phase !== this.#phase && record.step.when === 'during') this.#printed.clear();
    if (record.step.when === 'during') this.#phase = phase;
    this.#record = record;
    this.#draw();
  }

  printed(_phase: string, text: string): void {
    this.#printed.add(text);
    this.#soon ??= setTimeout(this.#redraw, REDRAW_MS);
  }

  /** Prints a line above the picture that stays. */
  say(line: string): void {
    this.#erase();
    this.#write(`${line}\n`);
    this.#draw();
  }

  over(record: PipelineRecord | undefined): void {
    clearInterval(this.#tick);
    clearTimeout(this.#soon);
    process.stdout.off('resize', this.#redraw);
    if (record !== undefined) this.#record = record;
    this.#draw(Number.POSITIVE_INFINITY, false);
    process.off('exit', this.#restore);
    this.#restore();
  }

  #draw(height = (process.stdout.rows || 24) - 1, isDriven = true): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    if (this.#record === undefined) return;
    // The last column stays empty: some terminals move to the next line once it is filled.
    const width = Math.max(20, (process.stdout.columns || 80) - 1);
    const frame = { width, height, paint: this.#paint, now: Date.now(), printed: this.#printed.all, isDriven };
    const lines = pictureOf(this.#record, frame);
    const body = lines.map(({ text }) => `${text}\x1b[K\n`).join('');
    this.#write(`${NO_WRAP}${this.#back()}${body}\x1b[J${WRAP}`);
    this.#drawn = lines;
  }

  #erase(): void {
    this.#write(`${this.#back()}\x1b[J`);
    this.#drawn = [];
  }

  #write(text: string): void {
    if (this.#isGone) return;
    try {
      printText(text);
    } catch {
      this.#isGone = true;
    }
  }

  /** Moves to where the last picture began, counting the lines that a narrower window has wrapped. */
  #back(): string {
    const columns = process.stdout.columns || 80;
    const rows = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.columns / columns)), 0);
    return rows === 0 ? '\r' : `\x1b[${rows}A\r`;
  }
}
