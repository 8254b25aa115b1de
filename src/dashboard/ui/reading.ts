/** What the board leaves out, read when a page needs it, and again when `changed` does. */
import { useEffect, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import { object } from '../model/read.ts';
import { store } from './app.ts';

type Json = Readonly<Record<string, unknown>>;

/** Undefined until it is there, and where the server refuses it; what was read last stays while it is read again. */
export function useAnswer(path: string, changed = ''): Json | undefined {
  const [found, setFound] = useState<{ readonly path: string; readonly json: Json }>();
  useEffect(() => {
    const over = new AbortController();
    get(path, over.signal).then(
      (answer) => setFound({ path, json: object(answer) }),
      // The page shows what the board knows of it.
      () => undefined,
    );
    return () => over.abort();
  }, [path, changed]);
  return found?.path === path ? found.json : undefined;
}

/** Likewise of a state of now, which is not shown beside the past. */
export function useRead(path: string, changed: string): Json | undefined {
  const json = useAnswer(path, changed);
  return store.snapshot.past === undefined ? json : undefined;
}
