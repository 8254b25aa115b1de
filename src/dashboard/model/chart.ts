/** What a chart of values over time needs besides the values: the marks of its axes, and the values in words. */
import type { Window } from './rates.ts';
import { clock, count, HOUR_MS, MINUTE_MS, span } from './time.ts';

/** `per`: a rate, in events per second. `ms`: a duration. `of`: a count. */
export type Unit = 'per' | 'ms' | 'of';

export type Values = readonly (number | undefined)[];

export interface Scale {
  /** The upper end of the axis. */
  readonly top: number;
  /** From 0 to the top. */
  readonly marks: readonly number[];
  /** A value with its unit, in as many digits as the scale needs. */
  readonly told: (value: number) => string;
}

const MOST_MARKS = 4;
/** Steps in which people count times above a second. */
const TIME_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 6, 12, 24].map((hours) => hours * HOUR_MS),
];

/** The smallest round step with which few marks reach `most`: 1, 2 or 5 times a power of ten. */
function roundStep(most: number): number {
  const least = most / MOST_MARKS;
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((digit) => digit * power >= least * (1 - 1e-9)) ?? 10) * power;
}

function timeStep(most: number): number {
  if (most <= 2000) return Math.max(1, roundStep(most));
  return TIME_STEPS.find((step) => step * MOST_MARKS >= most) ?? roundStep(most / HOUR_MS) * HOUR_MS;
}

export function scaleOf(all: readonly Values[], unit: Unit): Scale {
  const most = Math.max(0, ...all.flat().map((value) => value ?? 0));
  // Rates below one a second are shown per minute: nobody can picture 0.05/s.
  const perMinute = unit === 'per' && most < 1;
  const times = perMinute ? 60 : 1;
  const largest = most === 0 ? 1 : most * times;
  const step = unit === 'ms' ? timeStep(largest) : unit === 'of' ? Math.max(1, roundStep(largest)) : roundStep(largest);
  const steps = Math.max(1, Math.ceil(largest / step - 1e-9));
  const told = (value: number): string => {
    if (unit === 'ms') return span(value);
    if (unit === 'of') return count(value);
    const shown = value * times;
    const digits = shown >= 10 || Number.isInteger(shown) ? 0 : 1;
    return `${digits === 0 ? count(shown) : shown.toFixed(digits)}/${perMinute ? 'min' : 's'}`;
  };
  return {
    top: (step * steps) / times,
    marks: Array.from({ length: steps + 1 }, (_, place) => (place * step) / times),
    told,
  };
}

/** Marks of the time axis at whole minutes, as fractions of its length, few enough to read. */
export function timeMarks({ from, partMs, parts }: Window, most = 6): readonly { at: number; share: number }[] {
  const whole = partMs * (parts - 1);
  const step = TIME_STEPS.find((one) => one >= MINUTE_MS && whole / one <= most) ?? HOUR_MS;
  // Days begin at local midnight, and so do the marks.
  const shift = new Date(from).getTimezoneOffset() * MINUTE_MS;
  const marks = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= from + whole; at += step) {
    marks.push({ at, share: (at - from) / whole });
  }
  return marks;
}

/** Paths through the values in a box of `parts` - 1 by 100: lines that break where there is no value, and values that stand alone. */
export function pathsOf(values: Values, top: number): { readonly lines: string; readonly dots: string } {
  let [lines, dots] = ['', ''];
  values.forEach((value, place) => {
    if (value === undefined) return;
    const at = `${place} ${(100 - (value / top) * 100).toFixed(1)}`;
    const isFirst = values[place - 1] === undefined;
    if (isFirst && values[place + 1] === undefined) dots += `M${at}h0`;
    else lines += `${isFirst ? 'M' : 'L'}${at}`;
  });
  return { lines, dots };
}

/** One sentence for readers who do not see the lines. */
export function summaryOf(
  lines: readonly { readonly label: string; readonly values: Values }[],
  window: Window,
  scale: Scale,
): string {
  return lines
    .map(({ label, values }) => {
      const most = Math.max(...values.map((value) => value ?? -1));
      if (most < 0) return `${label}: nothing measured`;
      const at = window.from + values.lastIndexOf(most) * window.partMs;
      const last = values.findLast((value) => value !== undefined) ?? 0;
      return `${label}: last ${scale.told(last)}, highest ${scale.told(most)} at ${clock(at)}`;
    })
    .join('. ');
}
