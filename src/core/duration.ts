/** Durations as people write them: `250ms`, `60s`, `5m`, `1h`; a bare number is seconds. */

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
export const DURATIONS = 'a number of seconds, or a number with a unit: 250ms, 60s, 5m, 1h, 2d';
/** A hundred years: anything longer means for ever. */
export const LONGEST_MS = 100 * 365 * 86_400_000;

/** In milliseconds; undefined if it is no duration. */
export function durationMs(text: string): number | undefined {
  const [, amount = '', unit = 's'] = /^(\d+|\d*\.\d+)\s*([a-z]+)?$/i.exec(text.trim()) ?? [];
  const factor = UNITS[unit];
  return amount === '' || factor === undefined ? undefined : Number(amount) * factor;
}

/** A rounded duration for display: `3 s`, `5 min`, `2 h`, `4 d`. */
export function spoken(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 1000) return `${Math.floor(size)} ms`;
  if (size < 100_000) return `${Math.round(size / 1000)} s`;
  if (size < 5_400_000) return `${Math.round(size / 60_000)} min`;
  if (size < 172_800_000) return `${Math.round(size / 3_600_000)} h`;
  return `${Math.round(size / 86_400_000)} d`;
}
