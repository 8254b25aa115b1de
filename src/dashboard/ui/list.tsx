/** A list of any length, of which only the rows in sight are drawn. The page scrolls, not the list. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { inSight } from '../model/rows.ts';

interface WindowProps<T> {
  readonly rows: readonly T[];
  /** The height of a row, and on a narrow page. */
  readonly heights: readonly [number, number];
  readonly keyOf: (row: T) => string;
  readonly draw: (row: T) => JSX.Element | null;
  /** Called with the rows that are drawn, when they change. */
  readonly onSight?: (rows: readonly T[]) => void;
  readonly label: string;
}

export function WindowedList<T>({ rows, heights, keyOf, draw, onSight, label }: WindowProps<T>): JSX.Element {
  const height = heights[useNarrow() ? 1 : 0];
  const list = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ scrolled: 0, height: 900 });
  useLayoutEffect(() => {
    const main = list.current?.closest('main');
    if (main === null || main === undefined) return undefined;
    let isDue = false;
    const look = (): void => {
      isDue = false;
      const { current } = list;
      if (current === null) return;
      const top = current.getBoundingClientRect().top - main.getBoundingClientRect().top;
      setSeen({ scrolled: Math.max(0, -top), height: main.clientHeight - Math.max(0, top) });
    };
    const soon = (): void => {
      if (!isDue) requestAnimationFrame(look);
      isDue = true;
    };
    look();
    main.addEventListener('scroll', soon, { passive: true });
    addEventListener('resize', soon);
    return () => {
      main.removeEventListener('scroll', soon);
      removeEventListener('resize', soon);
    };
  }, []);
  const { first, last } = inSight(rows.length, height, seen.scrolled, Math.max(0, seen.height));
  const drawn = rows.slice(first, last);
  const names = drawn.map(keyOf).join('\n');
  useEffect(() => onSight?.(drawn), [names]);
  return (
    <div
      ref={list}
      style={{ height: `${rows.length * height}px`, position: 'relative' }}
      role="list"
      aria-label={label}
    >
      <div style={{ transform: `translateY(${first * height}px)` }}>
        {drawn.map((row, place) => (
          <div key={keyOf(row)} role="listitem" aria-setsize={rows.length} aria-posinset={first + place + 1}>
            {draw(row)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Whether the page is as narrow as a phone; rows are taller then. */
export function useNarrow(): boolean {
  const query = matchMedia('(max-width: 720px)');
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = (): void => setNarrow(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return isNarrow;
}
