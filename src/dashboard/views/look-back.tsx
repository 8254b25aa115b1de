/** Chooses a time: every view then shows what was held at that time, rebuilt from the record. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { rebuilt } from '../live/travel.ts';
import { barsOver, partsOf, type Window } from '../model/rates.ts';
import { items, object } from '../model/read.ts';
import { clock, count, duration, exact, HOUR_MS, MINUTE_MS, plural } from '../model/time.ts';
import { timeText } from '../model/travel.ts';
import type { State } from '../model/types.ts';
import { address, store } from '../ui/app.ts';
import { Button, Panel } from '../ui/parts.tsx';
import { useAnswer } from '../ui/reading.ts';

const SHORTEST_MS = 300_000;
/** More than these would become one thick line. */
const MOST_CHECKPOINTS = 100;

export function LookBack({ snapshot: { state, past: shown, now } }: { snapshot: Loaded }): JSX.Element {
  const past = rebuilt(shown);
  const last = past === undefined ? now : Math.max(Date.now(), past.at);
  const window = barsOver(
    past === undefined ? firstShown(state, now) : Math.min(past.begins ?? past.at, past.at),
    last,
  );
  const first = window.from;
  const at = past?.at ?? now;
  const counts =
    past === undefined ? partsOf(state.slices, window).map(({ events }) => events) : store.travel.eventsIn(window);
  const sealed = useCheckpoints(first, last);
  const step = (to: number | undefined): void => void (to !== undefined && address.goTo(Math.min(to, last)));
  const entry = (by: 1 | -1): void => step(store.travel.stepFrom(at, by));
  return (
    <Panel
      class="spaced"
      title={past === undefined ? 'Look back' : `Held at ${clock(at)}`}
      aside={past === undefined ? 'what was held at a time, in every view' : `${duration(last - at)} ago`}
    >
      <div class="inside line look-back">
        <span class="faint num">{clock(first)}</span>
        <div class="way">
          <Histogram counts={counts} />
          {sealed.map(({ number, time }) => (
            <span
              key={number}
              class="sealed"
              title={`Checkpoint ${number}, ${exact(time)}`}
              style={{ left: `${(((time - first) / (last - first)) * 100).toFixed(2)}%` }}
              aria-hidden="true"
            />
          ))}
          <input
            type="range"
            aria-label="Time to look at"
            aria-valuetext={past === undefined ? 'now' : clock(at)}
            min={Math.floor(first / 1000)}
            max={Math.ceil(last / 1000)}
            value={Math.floor(at / 1000)}
            onInput={({ currentTarget: { value, max } }) =>
              address.filter({ at: value === max ? undefined : timeText(Number(value) * 1000) })
            }
          />
        </div>
        <span class="strong">now</span>
        <input
          class="field"
          type="datetime-local"
          step="1"
          aria-label="Day and time to look at"
          value={localText(at)}
          onChange={(event) => {
            const chosen = Date.parse(event.currentTarget.value);
            if (Number.isFinite(chosen)) step(chosen);
          }}
        />
        <Button onClick={() => step(at - MINUTE_MS)}>1 min back</Button>
        {past !== undefined && (
          <span class="line">
            <Button onClick={() => entry(-1)}>← entry</Button>
            <Button onClick={() => entry(1)}>entry →</Button>
          </span>
        )}
      </div>
      <p class="foot legend soft small">
        <span class="line">
          <i class="bar-sign" aria-hidden="true" />
          {counts === undefined ? 'The record is being read' : eventsTold(counts, window)}
        </span>
        {sealed.length > 0 && (
          <span class="line">
            <i class="sealed" aria-hidden="true" />
            {plural(sealed.length, 'checkpoint')} of the witness, the last at {clock(sealed.at(-1)?.time ?? 0)}
          </span>
        )}
      </p>
    </Panel>
  );
}

/** An hour ago, or the first event of a younger store. */
function firstShown(state: State, now: number): number {
  const hourAgo = now - HOUR_MS;
  const [oldest] = state.slices;
  const isAllKnown = state.countedFrom <= hourAgo && oldest !== undefined;
  return isAllKnown ? Math.max(hourAgo, Math.min(oldest.at, now - SHORTEST_MS)) : hourAgo;
}

/** Bars along the slider: the higher, the more events. */
function Histogram({ counts = [] }: { counts: readonly number[] | undefined }): JSX.Element {
  const most = Math.max(1, ...counts);
  // The bar of a single event is still visible.
  const bar = (count: number, place: number): string =>
    count === 0 ? '' : `M${place} 100V${(94 - (count / most) * 94).toFixed(1)}h0.75V100z`;
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${Math.max(1, counts.length)} 100`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={counts.map(bar).join('')} />
    </svg>
  );
}

function eventsTold(counts: readonly number[], { from, partMs }: Window): string {
  const most = Math.max(0, ...counts);
  if (most === 0) return 'No event in this time';
  const place = counts.lastIndexOf(most);
  return `Events, ${duration(partMs)} in a bar; most, ${count(most)}, at ${clock(from + place * partMs)}`;
}

interface Sealed {
  readonly number: number;
  readonly time: number;
}

/** The checkpoints in this time, the oldest first. */
function useCheckpoints(first: number, last: number): readonly Sealed[] {
  const answer = useAnswer('/v1/witness/checkpoints', String(Math.floor(Date.now() / MINUTE_MS)));
  return items(answer?.['checkpoints'])
    .map((one) => ({ number: Number(object(one)['number']), time: Number(object(one)['time']) }))
    .filter(({ time }) => time >= first && time <= last)
    .slice(-MOST_CHECKPOINTS);
}

/** The time as the input field takes it, in the reader's own time zone. */
function localText(at: number): string {
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, 19);
}
