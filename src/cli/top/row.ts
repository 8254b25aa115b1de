/** The rows of `top`, and how each becomes lines of a given width. Everything foreign in them is made printable here. */
import type { Everything } from '../../json/status.ts';
import { type Colour, joined, type Paint, printable } from '../output.ts';
import { columnsOf, fit } from '../pipeline/columns.ts';
import { fitted } from '../table.ts';

export interface Row {
  /** Unique on the screen, and the same at the next look: the selection follows it. */
  readonly id: string;
  /** What enter shows and `b` breaks, such as `lock/main`; undefined for what has no page. */
  readonly about?: string | undefined;
  /** One character for the state, which its words tell as well. */
  readonly mark: string;
  readonly colour?: Colour | undefined;
  /** From the most important on; a narrow screen shows the first ones alone. A function draws for the width it gets. */
  readonly cells: readonly (string | ((width: number) => string))[];
  /** At the right edge, before the age. */
  readonly right?: string | undefined;
  /** Its age is at the right edge. */
  readonly since?: number | undefined;
  /** Lines below it, which belong to it. */
  readonly below?: readonly string[];
}

export interface Section {
  readonly title: string;
  /** After the title: how many, in which state. */
  readonly told: string;
  readonly rows: readonly Row[];
  /** What it says if there is no row: what it would show, and what to type. */
  readonly empty: string;
  /** The key of the view that shows all of it. */
  readonly key?: string;
}

/** What the rows are made of. */
export interface Seen {
  readonly everything: Everything;
  readonly now: number;
}

/** `42s`, `4m 12s`, `3h 07m`, `2d 4h`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const two = (part: number): string => String(part).padStart(2, '0');
  if (minutes === 0) return `${seconds}s`;
  if (hours === 0) return `${minutes}m ${two(seconds % 60)}s`;
  if (hours < 24) return `${hours}h ${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** Shortens in the middle: names of one family differ at their ends. */
export function shortened(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  if (width < 8) return fit(text, width);
  const half = Math.floor((width - 1) / 2);
  const end = [...text].reverse();
  let tail = '';
  for (const letter of end) {
    if (columnsOf(letter + tail) > half) break;
    tail = letter + tail;
  }
  return `${fit(text, width - columnsOf(tail))}${tail}`;
}

export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - columnsOf(text)));
}

const GAP = '  ';
/** The selected row begins with a sign, so that it shows without colours. */
const SELECTED = '▸';
const HEAD = 4;
const AGE = 7;
/** Columns that would be narrower than this are left out, from the last one on. */
const NARROWEST = 9;
const BELOW = '     ';
/** A narrower screen has the age alone at its right edge. */
const LEAST_FOR_RIGHT = 70;

/** The widths of the cells. A row without anything at its right edge has more room for its last cell. */
export function widthsOf(rows: readonly Row[], width: number): readonly number[] {
  const room = width - HEAD - (rows.some(({ since }) => since !== undefined) ? AGE + GAP.length : 0) - 1;
  const natural = Array.from({ length: Math.max(0, ...rows.map(({ cells }) => cells.length)) }, (_, at) =>
    rows.reduce((widest, { cells }) => Math.max(widest, columnsOf(cellAt(cells, at, room))), 1),
  );
  let count = natural.length;
  while (count > 1 && room < count * NARROWEST + (count - 1) * GAP.length) count -= 1;
  return count === 0 ? [] : fitted(natural.slice(0, count), room);
}

function cellAt(cells: Row['cells'], at: number, width: number): string {
  const cell = cells[at] ?? '';
  return typeof cell === 'string' ? cell : cell(width);
}

export interface RowLayout {
  readonly width: number;
  readonly widths: readonly number[];
  readonly now: number;
  readonly paint: Paint;
}

/** The row itself, then the lines below it. */
export function rowLines(row: Row, isSelected: boolean, layout: RowLayout): readonly string[] {
  const { width, paint, now } = layout;
  const since = row.since === undefined ? '' : age(now - row.since).padStart(AGE);
  const right = joined([width < LEAST_FOR_RIGHT ? '' : row.right, since], GAP);
  const head = ` ${isSelected ? SELECTED : ' '}${row.mark} `;
  const room = width - HEAD - (right === '' ? 0 : columnsOf(right) + GAP.length) - 1;
  const text = cellsOf(row.cells, layout.widths, room);
  const line = `${head}${padded(text, room)}${right === '' ? '' : GAP + right} `;
  const whole = fit(padded(line, width), width);
  const painted = isSelected ? paint('inverse', whole) : row.colour === undefined ? whole : paint(row.colour, whole);
  const below = (row.below ?? []).map((one) => paint('dim', fit(BELOW + printable(one), width)));
  return [isSelected || row.colour !== undefined ? painted : whole.trimEnd(), ...below];
}

function cellsOf(cells: Row['cells'], widths: readonly number[], room: number): string {
  let text = '';
  for (const [at, own] of widths.entries()) {
    const left = room - columnsOf(text) - (at === 0 ? 0 : GAP.length);
    if (left < 2) break;
    const isLast = at === widths.length - 1;
    const width = isLast ? left : Math.min(own, left);
    const cell = printable(cellAt(cells, at, width));
    // A name loses its middle, a sentence its end.
    const shown = at === 0 || cells.length > at + 1 ? shortened(cell, width) : fit(cell, width);
    text += (at === 0 ? '' : GAP) + (isLast ? shown : padded(shown, width));
  }
  return text;
}
