/**
 * Draws a pipeline: the state of each phase, and what the current phase prints or waits for.
 *
 *     release-7  blocked · 12 s
 *       ✓ plan     3 s
 *       ▸ merge    blocked · 9 s
 *           merge.pre: lock deploy is held by agent:7
 *           looks again after lock:released
 *       · deploy
 */
import { hasEnded, type PhaseRecord, type PipelineRecord, spoken } from '../../core/index.ts';
import { type Colour, joined, type Paint, printable } from '../output.ts';
import { columnsOf, fit, withoutEscapes, wrapped } from './columns.ts';
import { blockedLines, lengthOf, shownState } from './words.ts';

export interface Frame {
  readonly width: number;
  /** Infinity if there is no limit. */
  readonly height: number;
  readonly paint: Paint;
  readonly now: number;
  /** The last lines that the current phase has printed. */
  readonly printed: readonly string[];
  /** Whether a process drives it. */
  readonly isDriven: boolean;
}

/** One line of the picture, and its width. */
export interface PictureLine {
  readonly text: string;
  readonly columns: number;
}

const MOST_PRINTED = 8;
/** Not shortened, because it says what to do. */
const MOST_REASON_LINES = 12;

const COLOURS: Readonly<Record<string, Colour>> = {
  done: 'green',
  failed: 'red',
  cancelled: 'red',
  blocked: 'yellow',
  stopped: 'yellow',
  pending: 'dim',
};

export function pictureOf(record: PipelineRecord, frame: Frame): readonly PictureLine[] {
  const header = headerOf(record, frame);
  const phases = record.phases.map((phase, at) => phaseLines(record, phase, at, frame));
  const room = frame.height - header.length;
  return [...header, ...windowOf(phases, record, room, frame)];
}

function headerOf(record: PipelineRecord, frame: Frame): readonly PictureLine[] {
  const { id, state, reason = '', cancel } = record;
  const isLeft = !frame.isDriven && !hasEnded(record);
  const told = cancel !== undefined && !hasEnded(record) ? 'cancelling' : shownState(record, frame.isDriven);
  const name = fit(printable(id), Math.max(8, frame.width - 40));
  const rest = `${told} · ${spoken(lengthOf(record, frame.now))}${isLeft ? ' · no process drives it' : ''}`;
  const { paint } = frame;
  const first = {
    text: `${paint('bold', name)}  ${painted(paint, COLOURS[told], rest)}`,
    columns: columnsOf(`${name}  ${rest}`),
  };
  const why = reason === '' ? [] : wrapped(printable(reason), frame.width - 4).slice(0, MOST_REASON_LINES);
  return [first, ...why.map((text) => line(`  ${text}`, frame, state === 'done' ? 'dim' : 'red'))];
}

/** A phase's line, and the lines below it. */
function phaseLines(record: PipelineRecord, phase: PhaseRecord, at: number, frame: Frame): readonly PictureLine[] {
  const isCurrent = at === record.step.phase && !hasEnded(record) && record.state !== 'pending';
  const longest = Math.min(30, Math.max(...record.phases.map(({ name }) => columnsOf(printable(name)))));
  const name = fit(printable(phase.name), longest);
  const padded = name + ' '.repeat(Math.max(0, longest - columnsOf(name)));
  const [mark, colour] = markOf(record, phase, isCurrent);
  const note = noteOf(record, phase, isCurrent, frame);
  const body = fit(`${padded}  ${note}`.trimEnd(), frame.width - 4);
  const { paint } = frame;
  const isQuiet = phase.state === 'waiting' && !isCurrent;
  const first = {
    text: `  ${painted(paint, colour, mark)} ${isQuiet ? paint('dim', body) : body}`,
    columns: 4 + columnsOf(body),
  };
  const { warnings: kept = [], warningsDropped: dropped } = phase;
  const told = dropped === undefined ? kept : [`${dropped} more dropped`, ...kept];
  const warnings = told.map((warning) => line(`      ! ${printable(warning)}`, frame, 'yellow'));
  return [first, ...warnings, ...(isCurrent ? currentLines(record, frame) : endLines(record, at, frame))];
}

function markOf(record: PipelineRecord, { state }: PhaseRecord, isCurrent: boolean): readonly [string, Colour?] {
  const hasFailed = state === 'failed' || state === 'interrupted';
  if (state === 'cancelled' || (hasFailed && !isCurrent)) return ['✗', 'red'];
  if (isCurrent) return ['▸', record.state === 'blocked' ? 'yellow' : 'green'];
  if (state === 'done') return ['✓', 'green'];
  if (state === 'skipped') return ['↷', 'yellow'];
  return ['·', 'dim'];
}

function noteOf(record: PipelineRecord, phase: PhaseRecord, isCurrent: boolean, { now, isDriven }: Frame): string {
  const { state, runs, ended = '' } = phase;
  const again = runs > 1 ? `run ${runs}` : '';
  if (isCurrent && record.blocked !== undefined) {
    return joined(['blocked', spoken(now - record.blocked.since), runs > 0 ? `after run ${runs}` : '']);
  }
  if (isCurrent && !isDriven) return joined(['stopped', runs > 0 ? `after run ${runs}` : '']);
  if (isCurrent && record.step.when !== 'during')
    return record.step.when === 'after' ? 'checks its last guards' : 'checks its guards';
  switch (state) {
    case 'waiting':
      return '';
    case 'running':
    case 'done':
      return joined([spoken(lengthOf(phase, now)), again]);
    case 'failed':
      return joined([runs === 0 ? '' : spoken(lengthOf(phase, now)), again, printable(ended)]);
    case 'interrupted':
    case 'skipped':
    case 'cancelled':
      return joined([state, again]);
  }
}

function currentLines(record: PipelineRecord, frame: Frame): readonly PictureLine[] {
  const { blocked } = record;
  if (blocked !== undefined) {
    return blockedLines(blocked, frame.now)
      .flatMap((text) => indented(printable(text), frame.width))
      .slice(0, MOST_REASON_LINES)
      .map((text) => line(text, frame, blocked.on === 'person' ? 'yellow' : undefined));
  }
  return printedLines(frame);
}

/** The last output of the current phase, or of the phase in which the pipeline failed. */
function endLines(record: PipelineRecord, at: number, frame: Frame): readonly PictureLine[] {
  const hasFailed = at === record.step.phase && (record.state === 'failed' || record.state === 'cancelled');
  return hasFailed ? printedLines(frame) : [];
}

function printedLines(frame: Frame): readonly PictureLine[] {
  const { printed } = frame;
  return printed.slice(-MOST_PRINTED).map((text) => line(`      │ ${printable(withoutEscapes(text))}`, frame, 'dim'));
}

/** Shows as many phases around the current one as fit; counts the rest. */
function windowOf(
  phases: readonly (readonly PictureLine[])[],
  record: PipelineRecord,
  room: number,
  frame: Frame,
): readonly PictureLine[] {
  const count = (from: number, to: number): number =>
    phases.slice(from, to).reduce((sum, lines) => sum + lines.length, 0);
  if (count(0, phases.length) <= room) return phases.flat();
  const at = record.step.phase;
  let [from, to] = [at, at + 1];
  // Two lines count the phases left out.
  for (let grew = true; grew;) {
    grew = false;
    if (to < phases.length && count(from, to + 1) <= room - 2) grew = ++to > 0;
    if (from > 0 && count(from - 1, to) <= room - 2) grew = --from >= 0;
  }
  const shown = phases
    .slice(from, to)
    .flat()
    .slice(0, Math.max(1, room - 2));
  const before = from === 0 ? [] : [line(`  … ${from} before`, frame, 'dim')];
  const after = to === phases.length ? [] : [line(`  … ${phases.length - to} more`, frame, 'dim')];
  return [...before, ...shown, ...after].slice(0, Math.max(0, room));
}

function indented(text: string, width: number): readonly string[] {
  return wrapped(text, Math.max(20, width - 8)).map((part, at) => `      ${at === 0 ? '' : '  '}${part}`);
}

function line(text: string, { width, paint }: Frame, colour?: Colour): PictureLine {
  const cut = fit(text, width);
  return { text: painted(paint, colour, cut), columns: columnsOf(cut) };
}

function painted(paint: Paint, colour: Colour | undefined, text: string): string {
  return colour === undefined ? text : paint(colour, text);
}
