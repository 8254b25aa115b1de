/** Prints aligned columns. On a terminal they fit its width; longer cells end in an ellipsis. */
import { type Paint, paintFor, print, printable, screen, unpainted } from './output.ts';
import { wrapped } from './pipeline/columns.ts';

export interface Row {
  readonly cells: readonly string[];
  /** Printed below the row, across all columns: one line, or several that are broken between words. */
  readonly note?: string | readonly string[];
  readonly paint?: (text: string) => string;
}

export interface Layout {
  /** Infinity if nothing is cut. */
  readonly width: number;
  readonly paint: Paint;
}

export const PLAIN: Layout = { width: Number.POSITIVE_INFINITY, paint: unpainted };

const GAP = '  ';
/** The narrowest that a column may become. */
const NARROWEST = 6;

export function tableLines(header: readonly string[], rows: readonly Row[], { width, paint }: Layout): string[] {
  const cells = rows.map((row) => row.cells.map(printable));
  const widths = fitted(
    header.map((title, column) => Math.max(...[title, ...cells.map((row) => row[column] ?? '')].map(length))),
    width,
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const shown = cut(cell, widths[column] as number);
        return shown + ' '.repeat((widths[column] as number) - length(shown));
      })
      .join(GAP)
      .trimEnd();
  return [
    paint('bold', line(header)),
    ...rows.flatMap((row, place) => {
      const text = line(cells[place] as readonly string[]);
      const painted = row.paint?.(text) ?? text;
      const { note = '' } = row;
      const notes = typeof note === 'string' ? [cut(printable(note), width - GAP.length)] : noteLines(note, width);
      return [painted, ...notes.filter((one) => one !== '').map((one) => paint('dim', GAP + one))];
    }),
  ];
}

/** Each part on lines of its own, none of it cut; without a limit all parts on one line. */
function noteLines(parts: readonly string[], width: number): readonly string[] {
  const shown = parts.filter((part) => part !== '').map(printable);
  return Number.isFinite(width)
    ? shown.flatMap((part) => wrapped(part, Math.max(20, width - GAP.length - 1)))
    : [shown.join(' · ').replaceAll('\u00a0', ' ')];
}

/** Narrows the widest column until all columns fit. */
export function fitted(wanted: readonly number[], width: number): readonly number[] {
  const widths = [...wanted];
  const total = (): number => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  while (total() > width) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] as number) <= NARROWEST) break;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

export function cut(text: string, width: number): string {
  return length(text) <= width ? text : `${[...text].slice(0, Math.max(0, width - 1)).join('')}…`;
}

function length(text: string): number {
  return [...text].length;
}

/** A list of facts, without those that have no text. */
export function factLines(facts: readonly (readonly [fact: string, text: string])[]): readonly string[] {
  return facts.filter(([, text]) => text !== '').map(([fact, text]) => `${fact.padEnd(12)}${text}`);
}

/** Prints a table as wide as the terminal allows. */
export function printTable(header: readonly string[], rows: readonly Row[]): void {
  for (const line of tableLines(header, rows, screenLayout())) print(line);
}

export function screenLayout(): Layout {
  return layoutFor(screen(), paintFor(screen()));
}

/** The terminal's width; no limit without a terminal. A terminal that was never given a size (in a container) says 0. */
export function layoutFor(stream: { readonly isTTY?: boolean; readonly columns?: number }, paint: Paint): Layout {
  return stream.isTTY === true ? { width: stream.columns || 80, paint } : PLAIN;
}
