/** Durations as people write them: `250ms`, `60s`, `5m`, `1h`; a bare number is seconds. */
import { Failure, shown } from '../failure.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const ACCEPTED = 'accepted is a number of seconds, or a number with a unit: 250ms, 60s, 5m, 1h, 2d';
/** A hundred years: whoever means longer means for ever. */
const LONGEST_MS = 100 * 365 * 86_400_000;

/** In milliseconds. */
export function parseDuration(text: string): number {
  const [, amount = '', unit = 's'] = /^(\d+|\d*\.\d+)\s*([a-z]+)?$/i.exec(text.trim()) ?? [];
  const factor = UNITS[unit];
  if (amount === '' || factor === undefined) throw new Failure('invalid', `${shown(text)} is no duration; ${ACCEPTED}`);
  const ms = Number(amount) * factor;
  if (ms > LONGEST_MS) throw new Failure('invalid', `${shown(text)} is longer than a hundred years`);
  return ms;
}

/** Short, and as exact as somebody wants to know who asks how long ago: `3 s`, `5 min`, `2 h`, `4 d`. */
export function spoken(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 1000) return `${Math.floor(size)} ms`;
  if (size < 100_000) return `${Math.round(size / 1000)} s`;
  if (size < 5_400_000) return `${Math.round(size / 60_000)} min`;
  if (size < 172_800_000) return `${Math.round(size / 3_600_000)} h`;
  return `${Math.round(size / 86_400_000)} d`;
}
