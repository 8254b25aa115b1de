/** The events of one resource: the page asks once for those before it was opened, and the stream brings the rest. */
import { useEffect, useRef } from 'preact/hooks';
import { pastEvents } from '../live/api.ts';
import { rebuilt } from '../live/travel.ts';
import { continued } from '../model/history.ts';
import { HOUR_MS } from '../model/time.ts';
import type { Happening, State } from '../model/types.ts';
import { store } from './app.ts';

interface Kept {
  readonly of: string;
  readonly events: readonly Happening[];
  /** Whether the events before the page was opened are among them. */
  readonly hasPast: boolean;
}

export function usePast(state: State, resource: string, now: number): readonly Happening[] {
  const look = rebuilt(store.snapshot.past);
  const kept = useRef<Kept>({ of: '', events: [], hasPast: false });
  if (kept.current.of !== resource) kept.current = { of: resource, events: [], hasPast: false };
  // The stream's own list has the events of all resources, so those of this one soon drop out of it.
  const fresh = look === undefined ? state.entries : [];
  kept.current = { ...kept.current, events: continued(kept.current.events, fresh, resource) };
  const isLive = store.link.kind === 'live';
  useEffect(() => {
    if (!isLive || kept.current.hasPast) return undefined;
    const over = new AbortController();
    const query = `resource=${encodeURIComponent(resource)}&since=${Math.floor(now - HOUR_MS)}`;
    pastEvents(query, over.signal).then(
      ({ events }) => {
        const all = continued(events, kept.current.events.toReversed(), resource);
        kept.current = { of: resource, events: all, hasPast: true };
        store.draw();
      },
      // If that fails, the drawing begins when the page was opened, until the page is live again and asks once more.
      () => undefined,
    );
    return () => over.abort();
  }, [resource, isLive]);
  return look === undefined ? kept.current.events : store.travel.eventsOf(resource, look.at);
}
