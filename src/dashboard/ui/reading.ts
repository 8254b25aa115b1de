/** Reads what the board leaves out when a page needs it, and again when `changed` changes. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import { followRecord } from '../live/record.ts';
import { type Json, object } from '../model/read.ts';
import type { Recorded } from '../model/timeline.ts';
import { rebuilt } from '../live/travel.ts';
import { store } from './app.ts';

/** Undefined until the answer is there, and if the server refuses; during another reading, the last answer stays. */
export function useAnswer(path: string, changed = ''): Json | undefined {
  const [found, setFound] = useState<{ readonly path: string; readonly json: Json }>();
  useEffect(() => {
    const over = new AbortController();
    get(path, over.signal).then(
      (answer) => setFound({ path, json: object(answer) }),
      // The page then shows what the board knows.
      () => undefined,
    );
    return () => over.abort();
  }, [path, changed]);
  return found?.path === path ? found.json : undefined;
}

/** The same for a state of now, which is not shown beside the past. */
export function useRead(path: string, changed: string): Json | undefined {
  const json = useAnswer(path, changed);
  return rebuilt(store.snapshot.past) === undefined ? json : undefined;
}

const SHORTEST_PAUSE_MS = 1_000;
/** A pause lasts this many times as long as the read before it: the server spends at most a tenth of its time on this page. */
const PAUSES = 10;

/**
 * Reads at once, and again after `changed` changes: one reading at a time, with a pause before the next, so that many
 * changes in a row cost one reading.
 */
export function useFollowing(changed: string, read: (over: AbortSignal) => Promise<void>): void {
  const [done, setDone] = useState<{ readonly upTo: string; readonly pauseMs: number }>();
  const latest = useRef({ changed, read });
  latest.current = { changed, read };
  const isBehind = done?.upTo !== changed;
  useEffect(() => {
    if (!isBehind) return undefined;
    const over = new AbortController();
    const begin = async (): Promise<void> => {
      const { changed: upTo, read: readNow } = latest.current;
      const began = performance.now();
      // If the server refuses, the last answer stays.
      await readNow(over.signal).catch(() => undefined);
      const pauseMs = Math.max(SHORTEST_PAUSE_MS, PAUSES * (performance.now() - began));
      if (!over.signal.aborted) setDone({ upTo, pauseMs });
    };
    const timer = setTimeout(() => void begin(), done?.pauseMs ?? 0);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [isBehind, done]);
}

/** The newest entries of the record, the newest first, as they were when the page was last drawn. */
export function useRecorded(isOn: boolean, most: number): readonly Recorded[] {
  const rows = useRef<readonly Recorded[]>([]);
  // A browser opens few connections to one server: a hidden page leaves this one to others.
  const isFollowed = isOn && !document.hidden && store.link.kind === 'live';
  useEffect(() => {
    if (!isFollowed) return undefined;
    const over = new AbortController();
    void followRecord(most, over.signal, (newest) => (rows.current = newest));
    return () => over.abort();
  }, [isFollowed, most]);
  return rows.current;
}
