/** Chooses a time: every view then shows what was held at that time, rebuilt from the record. */
import type { JSX } from 'preact';
import type { Snapshot } from '../live/store.ts';
import { clock, duration } from '../model/time.ts';
import { timeText } from '../model/travel.ts';
import { address, store } from '../ui/app.ts';
import { Panel } from '../ui/parts.tsx';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export function LookBack({ snapshot: { past, now } }: { snapshot: Snapshot }): JSX.Element {
  const last = past === undefined ? now : Math.max(Date.now(), past.at);
  const hourAgo = last - HOUR_MS;
  const first = Math.min(past?.begins ?? hourAgo, past?.at ?? last);
  const at = past?.at ?? now;
  const step = (to: number | undefined): void => void (to !== undefined && address.goTo(Math.min(to, last)));
  const entry = (by: 1 | -1): void => step(store.travel.stepFrom(at, by));
  return (
    <Panel
      class="spaced"
      title={past === undefined ? 'Look back' : `Held at ${clock(at)}`}
      aside={past === undefined ? 'what was held at a time, in every view' : `${duration(last - at)} ago`}
    >
      <div class="inside look-back">
        <span class="faint num">{clock(first)}</span>
        <input
          type="range"
          aria-label="Time to look at"
          aria-valuetext={past === undefined ? 'now' : clock(at)}
          min={Math.floor(first / 1000)}
          max={Math.ceil(last / 1000)}
          value={Math.floor(at / 1000)}
          onInput={(event) => address.filter({ at: timeText(Number(event.currentTarget.value) * 1000) })}
        />
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
        <button type="button" class="button small" onClick={() => step(at - MINUTE_MS)}>
          1 min back
        </button>
        {past !== undefined && (
          <span class="line">
            <button type="button" class="button small" onClick={() => entry(-1)}>
              ← entry
            </button>
            <button type="button" class="button small" onClick={() => entry(1)}>
              entry →
            </button>
          </span>
        )}
      </div>
    </Panel>
  );
}

/** As the field takes it, in the reader's own time. */
function localText(at: number): string {
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS);
  return shifted.toISOString().slice(0, 19);
}
