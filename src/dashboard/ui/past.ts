/** The events of one resource: those before this page was opened are asked for once, the rest come with the stream. */
import { useEffect, useState } from 'preact/hooks';
import { pastEvents } from '../live/api.ts';
import type { Happening, State } from '../model/types.ts';

const HOUR_MS = 3_600_000;

export function usePast(state: State | undefined, resource: string, now: number): readonly Happening[] {
  const [past, setPast] = useState<{ of: string; events: readonly Happening[] }>({ of: '', events: [] });
  useEffect(() => {
    const over = new AbortController();
    const query = `resource=${encodeURIComponent(resource)}&since=${Math.floor(now - HOUR_MS)}`;
    pastEvents(query, over.signal).then(
      (events) => setPast({ of: resource, events }),
      // Without it, the drawing begins when the page was opened.
      () => undefined,
    );
    return () => over.abort();
  }, [resource]);
  const known = past.of === resource ? past.events : [];
  const ids = new Set(known.map(({ id }) => id));
  const fresh = (state?.entries ?? []).filter((event) => event.resource === resource && !ids.has(event.id));
  return [...known, ...fresh.toReversed()];
}
