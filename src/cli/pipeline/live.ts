/** Draws a pipeline on a terminal, and redraws it on every change. */
import type { PipelineRecord } from '../../core/index.ts';
import { type Paint, printable } from '../output.ts';
import { Redrawn } from '../redrawn.ts';
import { LastLines } from './last-lines.ts';
import { pictureOf } from './picture.ts';
import type { Show } from './show.ts';

const TICK_MS = 1_000;
/** Output may come by the megabyte, and no one reads faster than this. */
const REDRAW_MS = 80;

export class Live implements Show {
  readonly #paint: Paint;
  readonly #printed = new LastLines();
  readonly #tick: NodeJS.Timeout;
  readonly #screen: Redrawn;
  #record: PipelineRecord | undefined;
  #phase = '';
  #soon: NodeJS.Timeout | undefined;
  readonly #redraw = (): void => this.#draw();

  constructor(paint: Paint) {
    this.#paint = paint;
    this.#tick = setInterval(this.#redraw, TICK_MS);
    this.#screen = new Redrawn(this.#redraw);
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

  message(phase: string, text: string): void {
    this.say(printable(`${phase}: ${text}`));
  }

  /** Prints a line above the picture that stays. */
  say(line: string): void {
    this.#screen.erase();
    this.#screen.write(`${line}\n`);
    this.#draw();
  }

  over(record: PipelineRecord | undefined): void {
    clearInterval(this.#tick);
    clearTimeout(this.#soon);
    if (record !== undefined) this.#record = record;
    this.#draw(Number.POSITIVE_INFINITY, false);
    this.#screen.over();
  }

  #draw(height = this.#screen.height, isDriven = true): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    if (this.#record === undefined) return;
    const { width } = this.#screen;
    const frame = { width, height, paint: this.#paint, now: Date.now(), printed: this.#printed.all, isDriven };
    this.#screen.draw(pictureOf(this.#record, frame));
  }
}
