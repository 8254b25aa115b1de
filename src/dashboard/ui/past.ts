/** The events of one resource: those before this page was opened are asked for once, the rest come with the stream. */
import { useEffect, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import { items, object } from '../model/read.ts';
import type { Happening, State } from '../model/types.ts';
import { store } from './app.ts';

const HOUR_MS = 3_600_000;

export function usePast(state: State | undefined, resource: string, now: number): readonly Happening[] {
  const { past: look } = store.snapshot;
  const [past, setPast] = useState<{ of: string; events: readonly Happening[] }>({ of: '', events: [] });
  useEffect(() => {
    const over = new AbortController();
    const path = `/v1/history?resource=${encodeURIComponent(resource)}&since=${Math.floor(now - HOUR_MS)}`;
    get(path, over.signal).then(
      (answer) => setPast({ of: resource, events: items(object(answer)['events']) as readonly Happening[] }),
      // Without it, the drawing begins when the page was opened.
      () => undefined,
    );
    return () => over.abort();
  }, [resource]);
  if (look !== undefined) return store.travel.eventsOf(resource, look.at);
  const known = past.of === resource ? past.events : [];
  const ids = new Set(known.map(({ id }) => id));
  const fresh = (state?.entries ?? []).filter((event) => event.resource === resource && !ids.has(event.id));
  return [...known, ...fresh.toReversed()];
}
