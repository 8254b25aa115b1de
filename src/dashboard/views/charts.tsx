/** Charts of rates, durations and outcomes over the last five minutes or the last hour. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import type { Unit, Values } from '../model/chart.ts';
import { meanWait, partsOf, quantileOf, REMEMBERED_MS, total, type Window, windowAt } from '../model/rates.ts';
import { clock, count, plural, span } from '../model/time.ts';
import type { Slice } from '../model/types.ts';
import { Chart, type Cursor } from '../ui/chart.tsx';
import { Choices, ListHead } from '../ui/list-parts.tsx';
import { CommandLine, Panel } from '../ui/parts.tsx';

const PARTS = 60;
const SHORT_MS = 300_000;
const SHORT = ['', '5 minutes'] as const;
const LONG = ['hour', '60 minutes'] as const;
/** The least time by which a part that has just begun is divided: a single grant is not a thousand grants a second. */
const SHORTEST_MS = 2_000;

const TIMES = [
  {
    what: 'waits',
    title: 'How long requests wait',
    means: 'from request to grant, of those that had to wait',
    none: 'Nobody had to wait',
  },
  {
    what: 'holds',
    title: 'How long things are held',
    means: 'from grant to release, of holds that ended',
    none: 'No hold ended',
  },
] as const;
const SHARES = [
  ['p50, half below', 0.5],
  ['p95, 19 of 20 below', 0.95],
] as const;

export function Charts({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, now, route, past } = snapshot;
  const [at, set] = useState<number>();
  const [chosen, inWords] = route.filters['span'] === LONG[0] ? LONG : SHORT;
  const window = windowAt(now, chosen === LONG[0] ? REMEMBERED_MS : SHORT_MS, PARTS);
  const seen = seenParts(partsOf(state.slices, window), window, state.countedFrom, now);
  const common = { window, cursor: { at, set } satisfies Cursor };
  return (
    <>
      <ListHead title="Charts" deeds={<Choices of={[SHORT, LONG]} now={chosen} filter="span" />}>
        <span>{past === undefined ? `the last ${inWords}` : `the ${inWords} before ${clock(past.at)}`},</span>
        <span>every holder of the store</span>
        {state.countedFrom > window.from && <span>· known since {clock(state.countedFrom)}</span>}
      </ListHead>
      <div class="grid">
        <Chart
          {...common}
          title="How often"
          means={`locks, semaphores and tasks; the mean of ${told(window)} each`}
          unit="per"
          lines={[
            { label: 'Grants', values: rates(seen, 'grants') },
            { label: 'Conflicts', values: rates(seen, 'conflicts') },
            { label: 'Releases', values: rates(seen, 'releases') },
          ]}
          nothing={
            <>
              <p>Nothing was granted in the last {inWords}. Make a first grant:</p>
              <CommandLine>signalbox run --lock main-branch -- sleep 5</CommandLine>
            </>
          }
        />
        {TIMES.map(({ what, none, ...words }) => (
          <Chart
            key={what}
            {...common}
            {...words}
            class="w6"
            unit="ms"
            lines={SHARES.map(([label, share]) => ({
              label,
              values: drawn(seen, (slice) => quantileOf(slice[what], share)),
            }))}
            nothing={
              <p>
                {none} in the last {inWords}.
              </p>
            }
          />
        ))}
        <FiveFigures seen={seen} {...common} inWords={inWords} />
        <AsTable seen={seen} window={window} />
      </div>
    </>
  );
}

/** One part of the window, and how much of it is known. */
interface Part {
  readonly slice: Slice;
  readonly knownMs: number;
  /**
   * The present part is drawn once it is over, because its counts are too low until then; unless no earlier part has a
   * value.
   */
  readonly isDrawn: boolean;
}

/** Undefined for the time before everything is known. */
type Parts = readonly (Part | undefined)[];

function seenParts(slices: readonly Slice[], { partMs }: Window, knownFrom: number, now: number): Parts {
  const hasEarlier = slices.slice(0, -1).some(hasSome);
  return slices.map((slice, place) => {
    const [from, to] = [Math.max(slice.at, knownFrom), Math.min(slice.at + partMs, now)];
    if (slice.at + partMs <= knownFrom && slice.events === 0) return undefined;
    return { slice, knownMs: to - from, isDrawn: !hasEarlier || place < slices.length - 1 };
  });
}

function hasSome({ events, refusals }: Slice): boolean {
  return events + refusals > 0;
}

function drawn(seen: Parts, of: (slice: Slice) => number | undefined): Values {
  return seen.map((part) => (part?.isDrawn === true ? of(part.slice) : undefined));
}

function rates(seen: Parts, what: 'grants' | 'conflicts' | 'releases'): Values {
  return seen.map((part) =>
    part?.isDrawn === true ? (part.slice[what] * 1000) / Math.max(part.knownMs, SHORTEST_MS) : undefined,
  );
}

function told({ partMs }: Window): string {
  return partMs < 60_000 ? `${partMs / 1000} s` : plural(partMs / 60_000, 'minute');
}

interface Figure {
  readonly title: string;
  readonly means: string;
  readonly unit: Unit;
  readonly of: (slice: Slice) => number | undefined;
}

/** The same five figures that `getMetrics` returns for one process, here for all processes that use the store. */
const FIGURES: readonly Figure[] = [
  {
    title: 'Acquired',
    means: 'got what they asked for',
    unit: 'of',
    of: ({ grants }) => grants,
  },
  { title: 'Conflicts', means: 'met another holder', unit: 'of', of: ({ conflicts }) => conflicts },
  { title: 'Time to acquire', means: 'mean of all grants', unit: 'ms', of: meanWait },
  { title: 'Failed', means: 'did not get it', unit: 'of', of: ({ refusals }) => refusals },
  {
    title: 'Stale claimed',
    means: 'from silent holders',
    unit: 'of',
    of: ({ reclaims }) => reclaims,
  },
];

interface FiveProps {
  readonly seen: Parts;
  readonly window: Window;
  readonly cursor: Cursor;
  readonly inWords: string;
}

function FiveFigures({ seen, window, cursor, inWords }: FiveProps): JSX.Element {
  const whole = total(seen.flatMap((one) => (one === undefined ? [] : [one.slice])));
  return (
    <Panel title="What became of requests" aside={`in these ${inWords}`}>
      <div class="five">
        {FIGURES.map(({ title, means, unit, of }) => {
          return (
            <Chart
              key={title}
              {...{ title, means, unit, window, cursor }}
              isSmall
              figure={valueOf(of(whole), unit)}
              lines={[{ label: `in ${told(window)}`, values: drawn(seen, of) }]}
              nothing={<p>None</p>}
            />
          );
        })}
      </div>
    </Panel>
  );
}

const COLUMNS: readonly (readonly [string, (slice: Slice) => string])[] = [
  ...FIGURES.map(({ title, unit, of }) => [title, (slice: Slice) => valueOf(of(slice), unit)] as const),
  ['Released', ({ releases }) => count(releases)],
  ...TIMES.flatMap(({ what }) =>
    SHARES.map(
      ([, share]) =>
        [
          `${what === 'waits' ? 'Wait' : 'Hold'} p${share * 100}`,
          (slice: Slice) => valueOf(quantileOf(slice[what], share), 'ms'),
        ] as const,
    ),
  ),
];

function valueOf(value: number | undefined, unit: Unit): string {
  return value === undefined ? '–' : unit === 'ms' ? span(value) : count(value);
}

/** All values as text; drawn only while it is open. */
function AsTable({ seen, window }: { seen: Parts; window: Window }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const known = seen.filter((one) => one !== undefined && hasSome(one.slice)).toReversed();
  return (
    <details class="panel values" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same values as a table, {told(window)} a row</summary>
      {isOpen && (
        <div class="scrolls" tabIndex={0} role="region" aria-label="Values as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {COLUMNS.map(([title]) => (
                  <th scope="col" key={title}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {known.map((one) => (
                <tr key={one?.slice.at}>
                  <th scope="row">{clock(one?.slice.at ?? 0)}</th>
                  {one !== undefined && COLUMNS.map(([title, of]) => <td key={title}>{of(one.slice)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
