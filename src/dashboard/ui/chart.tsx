/**
 * Values over time as lines, with axes, a legend in words, and a read-out. Lines are drawn in a box that is stretched; text and
 * the cursor are HTML over it, so the width need not be measured. A slider lies over the lines: it gives pointer, touch, keyboard
 * and screen readers the same way to a value.
 */
import type { ComponentChildren, JSX } from 'preact';
import { pathsOf, scaleOf, summaryOf, timeMarks, type Unit, type Values } from '../model/chart.ts';
import type { Window } from '../model/rates.ts';
import { clock } from '../model/time.ts';

export interface Line {
  readonly label: string;
  readonly values: Values;
}

/** The part of the window to read out, by its beginning; undefined means the newest value. All charts of a view share it. */
export interface Cursor {
  readonly at: number | undefined;
  readonly set: (at: number | undefined) => void;
}

interface ChartProps {
  readonly title: string;
  /** What the values mean, in a few words. */
  readonly means: string;
  readonly unit: Unit;
  /** At most three: each has a colour and a pattern of its own. */
  readonly lines: readonly Line[];
  readonly window: Window;
  readonly cursor: Cursor;
  /** Shown in place of the lines if every value is zero. */
  readonly nothing: ComponentChildren;
  readonly isSmall?: boolean;
  /** A figure under the title. */
  readonly figure?: string;
  readonly class?: string;
}

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;

export function Chart(props: ChartProps): JSX.Element {
  const { title, means, unit, lines, window, cursor, nothing, isSmall = false, figure, class: name = '' } = props;
  const { from, partMs, parts } = window;
  const scale = scaleOf(
    lines.map(({ values }) => values),
    unit,
  );
  const isEmpty = lines.every(({ values }) => values.every((value) => value === undefined || value === 0));
  const shown = isEmpty ? [] : lines;
  const last = parts - 1;
  const newest = Math.max(0, ...lines.map(({ values }) => values.findLastIndex((value) => value !== undefined)));
  const asked = cursor.at === undefined ? newest : Math.round((cursor.at - from) / partMs);
  const place = Math.max(0, Math.min(last, asked));
  const at = from + place * partMs;
  const told = (value: number | undefined): string => (value === undefined ? '–' : scale.told(value));
  const readOut = lines.map(({ label, values }) => `${label} ${told(values[place])}`).join(', ');
  const read = (to: number): void => cursor.set(from + Math.max(0, Math.min(last, to)) * partMs);
  const follow = (event: PointerEvent & { currentTarget: HTMLInputElement }): void => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    read(Math.round(((event.clientX - left) / width) * last));
  };
  return (
    <figure class={`chart ${isSmall ? 'small' : `panel ${name}`}`} aria-label={title}>
      <figcaption class="line">
        <b>{title}</b>
        {figure !== undefined && <span class="figure">{figure}</span>}
        <span class="faint small">{means}</span>
      </figcaption>
      <p class="unseen">{isEmpty ? 'No values' : summaryOf(lines, window, scale)}</p>
      <div class="legend soft small" aria-hidden="true">
        {lines.map(({ label, values }, which) => (
          <span class="line" key={label}>
            {!isSmall && (
              <svg class={`look look-${which}`} width="22" height="8" viewBox="0 0 22 8">
                <path d="M1 4H21" />
              </svg>
            )}
            {label}
            <b class="num">{told(values[place])}</b>
          </span>
        ))}
        <span class="faint num">{!isEmpty && clock(at)}</span>
      </div>
      <div class="plot">
        {(isEmpty ? [0, scale.top] : scale.marks).map((mark) => (
          <span class="mark" key={mark} style={{ bottom: percent(mark / scale.top) }} aria-hidden="true">
            {!isEmpty && <i>{mark === 0 ? '0' : scale.told(mark)}</i>}
          </span>
        ))}
        <div class="curves">
          <svg viewBox={`0 0 ${last} 100`} preserveAspectRatio="none" aria-hidden="true">
            {shown.map(({ label, values }, which) => {
              const { lines: through, dots } = pathsOf(values, scale.top);
              return [
                <path key={label} class={`look look-${which}`} d={through} />,
                <path key={`${label}, alone`} class={`look dots look-${which}`} d={dots} />,
              ];
            })}
          </svg>
          {!isEmpty && cursor.at !== undefined && (
            <div class="cursor" style={{ left: percent(place / last) }} aria-hidden="true">
              {lines.map(({ label, values }, which) => {
                const value = values[place];
                if (value === undefined) return null;
                return <i key={label} class={`look-${which}`} style={{ bottom: percent(value / scale.top) }} />;
              })}
            </div>
          )}
          {isEmpty ? (
            <div class="nothing-yet">{nothing}</div>
          ) : (
            <input
              type="range"
              aria-label={`${title}, read a value`}
              aria-valuetext={`${clock(at)}: ${readOut}`}
              min={0}
              max={last}
              value={place}
              onInput={(event) => read(Number(event.currentTarget.value))}
              onPointerMove={follow}
              onPointerLeave={() => cursor.set(undefined)}
              onBlur={() => cursor.set(undefined)}
            />
          )}
          {timeMarks(window, isSmall ? 3 : 6).map(({ at: when, share }) => (
            <span class="when" key={when} style={{ left: percent(share) }} aria-hidden="true">
              {clock(when).slice(0, 5)}
            </span>
          ))}
        </div>
      </div>
    </figure>
  );
}
