/** What the board leaves out, read when a page needs it, and again when `changed` does. */
import { useEffect, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import { object } from '../model/read.ts';
import { store } from './app.ts';

type Json = Readonly<Record<string, unknown>>;

/** Undefined until it is there; what was read last stays while it is read again. */
export function useRead(path: string, changed: string): Json | undefined {
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
  // What is read is of now.
  return found?.path === path && store.snapshot.past === undefined ? found.json : undefined;
}
