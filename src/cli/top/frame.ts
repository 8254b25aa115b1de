/**
 * Draws the board: a pure function of what is known, what the user has chosen, the size and the time. Never more lines than
 * the terminal has, and none wider.
 *
 *     signalbox top  file:/src/app/.git/signalbox           live 14:32:07
 *     [1 Overview] 2 Locks 12  3 Semaphores 3  4 Tasks 9  …
 *
 *     NEEDS YOU
 *      ▸✗ lost hold  lock/staging: agent:7 is gone …     2 wait   4m 12s
 *     LOCKS  3 held, 4 waiting
 *       ■ main       worker:1   merging change 42        3 wait      42s
 *           └ 1. agent:9 12s (hotfix), 2. agent:4 3s
 *     …
 *     j/k move · enter details · / filter · b break · ? help · q quit
 */
import { type Paint, printable } from '../output.ts';
import { columnsOf, fit } from '../pipeline/columns.ts';
import type { Board } from './board.ts';
import { dialogLines } from './dialog.ts';
import { detailLines } from './details.ts';
import { HELP } from './help.ts';
import { age, rowLines, type Section, shortened, widthsOf } from './row.ts';
import { selectedRow, type Ui } from './ui.ts';
import { countOf, sectionsOf, type View, VIEWS } from './views.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Frame {
  readonly lines: readonly string[];
  /** The first line of the list that is shown: the next frame begins from there, so that rows do not jump. */
  readonly offset: number;
  /** How many lines of the list or page are on the screen, and how many there are. */
  readonly page: number;
  readonly length: number;
  readonly sections: readonly Section[];
}

export interface Drawing extends Size {
  readonly now: number;
  readonly paint: Paint;
  /** The time of day as the user reads it. */
  readonly clock: string;
}

/** From this height on there is an empty line below the tabs. */
const AIRY = 20;
/** From this height of the list on there are empty lines between its parts. */
const ROOMY = 30;
/** Below it there is neither a title nor a line of tabs. */
const TIGHT = 8;

export function frameOf(board: Board, ui: Ui, drawing: Drawing): Frame {
  const { width, height, paint, now } = drawing;
  const head =
    height < TIGHT ? [tabsLine(board, ui, drawing)] : [titleLine(board, drawing), tabsLine(board, ui, drawing)];
  if (height >= AIRY) head.push('');
  const foot = [footLine(board, ui, drawing)];
  const page = Math.max(1, height - head.length - foot.length);
  // What the filter leaves is what keys move through, whatever page is shown.
  const sections = sectionsOf(board, ui.view, ui.filter, now);
  const body = bodyOf(board, ui, sections, page, drawing);
  const filled = [...body.lines, ...Array.from({ length: Math.max(0, page - body.lines.length) }, () => '')];
  const lines = [...head, ...filled, ...foot].slice(0, Math.max(1, height));
  const isTiny = width < 16 || height < 4;
  const tiny = [fit('signalbox top', width), fit('too small', width)].slice(0, Math.max(1, height));
  return { ...body, lines: isTiny ? tiny.map((line) => paint('bold', line)) : lines, page, sections };
}

type Body = Pick<Frame, 'lines' | 'offset' | 'length'>;

function bodyOf(board: Board, ui: Ui, sections: readonly Section[], page: number, drawing: Drawing): Body {
  const { width } = drawing;
  const inset = { ...drawing, width: width - 2 };
  switch (ui.mode) {
    case 'help':
      return scrolled(HELP, ui.scroll, page, width);
    case 'detail':
      return scrolled(detailLines(board, ui.about, inset), ui.scroll, page, width);
    case 'break':
      return scrolled(dialogLines(board, ui, inset), 0, page, width);
    case 'list':
    case 'filter':
      return listOf(board, ui, sections, page, drawing);
  }
}

function scrolled(all: readonly string[], scroll: number, page: number, width: number): Body {
  const from = Math.max(0, Math.min(scroll, all.length - page));
  const lines = all.slice(from, from + page).map((line) => ` ${line}`);
  return { lines: lines.map((line) => cutPainted(line, width)), offset: 0, length: all.length };
}

function listOf(board: Board, ui: Ui, sections: readonly Section[], page: number, drawing: Drawing): Body {
  const { paint, width } = drawing;
  if (board.everything === undefined) {
    const text = board.trouble === undefined ? 'Reading the store …' : '';
    return { lines: ['', ` ${paint('dim', fit(text, width - 2))}`], offset: 0, length: 0 };
  }
  const selected = selectedRow(ui, sections);
  const isOverview = ui.view === 'overview';
  const shown = isOverview ? shared(sections, page, selected) : sections;
  const all: { readonly text: string; readonly row?: string | undefined }[] = [];
  for (const [at, section] of shown.entries()) {
    if (at > 0 && page >= ROOMY) all.push({ text: '' });
    const whole = sections[at] ?? section;
    all.push({ text: heading(section, isOverview, drawing), row: at === 0 ? section.rows[0]?.id : undefined });
    if (whole.rows.length === 0 && !isOverview)
      all.push({ text: paint('dim', fit(`    ${section.empty}`, width - 1)) });
    const layout = { ...drawing, widths: widthsOf(whole.rows, width) };
    for (const row of section.rows) {
      for (const text of rowLines(row, row.id === selected, layout)) all.push({ text, row: row.id });
    }
    const rest = whole.rows.length - section.rows.length;
    if (rest > 0)
      all.push({
        text: paint(
          'dim',
          fit(`    … ${rest} more${section.key === undefined ? '' : `: press ${section.key}`}`, width - 1),
        ),
      });
  }
  const first = all.findIndex(({ row }) => row === selected);
  const last = all.findLastIndex(({ row }) => row === selected);
  const offset = windowed(ui.offsets[ui.view] ?? 0, Math.max(0, first), Math.max(0, last), page, all.length);
  return { lines: all.slice(offset, offset + page).map(({ text }) => text), offset, length: all.length };
}

/** Moves the window as little as possible, so that what is selected is in it with what is below it. */
function windowed(before: number, first: number, last: number, page: number, length: number): number {
  const lowest = Math.max(0, length - page);
  const down = Math.max(before, last - page + 1);
  return Math.max(0, Math.min(lowest, Math.min(down, first)));
}

/** On the overview every section gets its share of the height, row by row. */
function shared(sections: readonly Section[], page: number, selected: string | undefined): readonly Section[] {
  const gaps = page >= ROOMY ? sections.length - 1 : 0;
  const counts = sections.map(({ rows }, at) => Math.min(rows.length, at === 0 ? LEAST_MATTERS : LEAST_ROWS));
  const heightOf = ({ rows }: Section, count: number): number =>
    // One line says how many are left out.
    rows.slice(0, count).reduce((sum, { below = [] }) => sum + 1 + below.length, count < rows.length ? 1 : 0);
  let room = page - gaps - sections.reduce((sum, section, at) => sum + 1 + heightOf(section, counts[at] ?? 0), 0);
  for (let hasGrown = true; hasGrown && room > 0;) {
    hasGrown = false;
    for (const [at, section] of sections.entries()) {
      const count = counts[at] ?? 0;
      const more = heightOf(section, count + 1) - heightOf(section, count);
      if (count >= section.rows.length || more > room) continue;
      counts[at] = count + 1;
      room -= more;
      hasGrown = true;
    }
  }
  return sections.map((section, at) => {
    // A row that is selected stays on the screen, with those before it.
    const chosen = section.rows.findIndex(({ id }) => id === selected);
    return { ...section, rows: section.rows.slice(0, Math.max(counts[at] ?? 0, chosen + 1)) };
  });
}

/** The fewest rows that a section shows. Where they do not fit, the list scrolls. */
const LEAST_ROWS = 2;
const LEAST_MATTERS = 4;

/** On the overview a section without rows is this one line. */
function heading({ title, told, rows, empty }: Section, isOverview: boolean, { width, paint }: Drawing): string {
  const isFirst = title === 'Needs you';
  const rest = rows.length === 0 && isOverview ? empty : told;
  const text = ` ${title.toUpperCase()}`;
  const shown = fit(`${text}  ${rest}`.trimEnd(), width - 1);
  if (isFirst && rows.length > 0) return paint('red', paint('bold', shown));
  return paint('bold', shown.slice(0, text.length)) + paint(isFirst ? 'green' : 'dim', shown.slice(text.length));
}

function titleLine(board: Board, { width, now, clock, paint }: Drawing): string {
  const { trouble, everything } = board;
  const state =
    trouble !== undefined
      ? `! not live for ${age(now - trouble.since)}`
      : everything === undefined
        ? ''
        : `live ${clock}`;
  const name = ' signalbox top';
  const room = width - name.length - columnsOf(state) - 4;
  const store = room < 8 ? '' : shortened(printable(board.store), room);
  const gap = ' '.repeat(Math.max(1, width - columnsOf(`${name}  ${store}${state}`) - 1));
  const right = trouble === undefined ? paint('dim', state) : paint('red', paint('bold', state));
  return cutPainted(`${paint('bold', name)}  ${paint('dim', store)}${gap}${right}`, width);
}

/** With counts if they fit, else without them, else with the name of the current view alone. */
function tabsLine(board: Board, ui: Ui, { width, paint }: Drawing): string {
  const name = (view: View, isCounted: boolean): string => {
    const count = countOf(board, view);
    const counted = isCounted && count !== undefined && count > 0 ? ` ${count}` : '';
    const title = view.slice(0, 1).toUpperCase() + view.slice(1);
    return `${VIEWS.indexOf(view) + 1} ${title}${counted}`;
  };
  const forms = [
    (view: View): string => name(view, true),
    (view: View): string => name(view, false),
    (view: View): string => (view === ui.view ? name(view, true) : String(VIEWS.indexOf(view) + 1)),
  ];
  const fits = (form: (view: View) => string): boolean =>
    VIEWS.reduce((sum, view) => sum + columnsOf(form(view)) + 2, 0) <= width;
  const form = forms.find(fits) ?? ((view: View): string => (view === ui.view ? name(view, false) : ''));
  const tabs = VIEWS.map((view) => {
    const text = form(view);
    if (text === '') return '';
    return view === ui.view ? paint('inverse', `[${text}]`) : ` ${text} `;
  });
  return cutPainted(tabs.join(''), width);
}

function footLine(board: Board, ui: Ui, { width, paint }: Drawing): string {
  const { message, mode, filter } = ui;
  const room = width - 2;
  if (mode === 'filter')
    return cutPainted(
      ` ${paint('bold', '/')}${printable(filter)}${paint('inverse', ' ')}  ${paint('dim', 'enter: keep · esc: clear')}`,
      width,
    );
  if (message !== '') return ` ${paint('bold', fit(printable(message), room))}`;
  const { trouble } = board;
  if (trouble !== undefined) return ` ${paint('red', fit(printable(trouble.message), room))}`;
  const keys = [...(filter === '' ? [] : [`filter "${printable(filter)}" · esc clears it`]), ...HINTS[mode]];
  // Help and the way out are named first where not everything fits.
  let shown = '';
  for (const hint of keys) if (columnsOf(`${shown} · ${hint}`) <= room) shown += (shown === '' ? '' : ' · ') + hint;
  return ` ${paint('dim', shown)}`;
}

const HINTS: Readonly<Record<Ui['mode'], readonly string[]>> = {
  list: ['? help', 'q quit', 'j/k move', 'enter details', '/ filter', '1-7 views', 'b break'],
  detail: ['esc back', 'j/k scroll', 'b break', '1-7 views'],
  help: ['esc back', 'j/k scroll'],
  filter: [],
  break: ['esc leaves it as it is'],
};

/** Cuts text that has our colours in it; nothing foreign has escapes any more. */
export function cutPainted(text: string, width: number): string {
  let columns = 0;
  let cut = '';
  let isFull = false;
  for (const [piece] of text.matchAll(/\x1b\[\d+m|[^]/gu)) {
    if (piece.length > 2 && piece.startsWith('\x1b')) cut += piece;
    else if (!isFull) {
      columns += columnsOf(piece);
      isFull = columns > width;
      if (!isFull) cut += piece;
    }
  }
  return cut;
}
