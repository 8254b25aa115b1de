/** One cell per lock on one canvas: ten thousand of them at a glance, and each can be opened. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Aspect, aspectOf, routeOf } from '../model/needs.ts';
import { byName, countsOf, matching } from '../model/rows.ts';
import { visible } from '../model/text.ts';
import type { Resource, State } from '../model/types.ts';
import { address, store } from './app.ts';

/** How a lock is drawn in a box of 12 by 12: each state has a shape of its own, so that it can be recognized without colour. */
const CELLS: Readonly<Record<Aspect, { word: string; path: string; colour: string; isOutline?: true }>> = {
  free: { word: 'free', path: 'M0 6h12', colour: '--line2', isOutline: true },
  held: { word: 'held', path: 'M0 0h10v10h-10z', colour: '--blue-arm' },
  shared: { word: 'shared', path: 'M0.5 0.5h9v9h-9z', colour: '--blue-arm', isOutline: true },
  caution: { word: 'long wait', path: 'M0 0l11 5l-11 5z', colour: '--amber-arm' },
  danger: { word: 'lost', path: 'M-1 -1h12v12h-12zM1 0l9 9l-1 1l-9 -9z', colour: '--red-arm' },
};

export function MapLegend(): JSX.Element {
  return (
    <span class="legend soft small">
      {Object.entries(CELLS).map(([is, { word, path, colour, isOutline = false }]) => (
        <span class="line" key={is}>
          <svg viewBox="-1 -1 12 12" width="12" height="12" aria-hidden="true">
            <path
              d={path}
              fill-rule="evenodd"
              {...{ fill: 'none', [isOutline ? 'stroke' : 'fill']: `var(${colour})` }}
            />
          </svg>
          {word}
        </span>
      ))}
    </span>
  );
}

/** The list below is always up to date; the map is for a glance. The clock that ticks every second draws what was skipped. */
const REDRAW_MS = 900;

interface Layout {
  readonly cell: number;
  readonly columns: number;
  readonly rows: number;
}

/** Makes cells as large as a height of about 180 allows, between 6 and 18. */
function layoutOf(count: number, width: number): Layout {
  const ideal = Math.sqrt((width * 180) / Math.max(1, count));
  const cell = Math.max(6, Math.min(18, Math.floor(ideal)));
  const columns = Math.max(1, Math.floor(width / cell));
  return { cell, columns, rows: Math.ceil(count / columns) };
}

export function BlockMap({ state }: { state: State }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const sorted = useRef<readonly Resource[]>([]);
  useEffect(() => {
    const { current } = canvas;
    if (current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const theme = document.documentElement.dataset['theme'];
  const drawn = useRef({ at: 0, how: '' });
  useEffect(() => {
    const { current } = canvas;
    if (current === null || width === 0) return;
    const how = `${width} ${theme}`;
    if (drawn.current.how === how && performance.now() - drawn.current.at < REDRAW_MS) return;
    drawn.current = { at: performance.now(), how };
    // Names come and go rarely, so the order is kept as long as they are the same.
    const known = sorted.current.flatMap(({ resource }) => state.resources.get(resource) ?? []);
    const isSame = known.length === sorted.current.length && known.length === countsOf(state, 'lock').all;
    sorted.current = isSame ? known : matching(state, { kind: 'lock', text: '', is: '' }).toSorted(byName);
    draw(current, sorted.current, width, state);
  });
  const at = (event: MouseEvent): Resource | undefined => {
    const { cell, columns } = layoutOf(sorted.current.length, width);
    const place = Math.floor(event.offsetY / cell) * columns + Math.floor(event.offsetX / cell);
    return event.offsetX < columns * cell ? sorted.current[place] : undefined;
  };
  const { rows, cell } = layoutOf(sorted.current.length || state.resources.size, width || 1000);
  return (
    <canvas
      ref={canvas}
      class="block-map"
      style={{ height: `${rows * cell}px` }}
      role="img"
      aria-label="A cell for each lock; the list below has the same locks"
      onClick={(event) => {
        const one = at(event);
        if (one !== undefined) address.go(routeOf(one.resource));
      }}
      onMouseMove={(event) => {
        const one = at(event);
        event.currentTarget.title = one === undefined ? '' : titleOf(one);
      }}
    />
  );
}

function titleOf(one: Resource): string {
  const [hold] = one.holds;
  return `${visible(one.name)}: ${hold === undefined ? 'free' : `held by ${visible(hold.holder)}`}`;
}

function draw(canvas: HTMLCanvasElement, locks: readonly Resource[], width: number, state: State): void {
  const { cell, columns, rows } = layoutOf(locks.length, width);
  const scale = devicePixelRatio || 1;
  const size = [Math.floor(width * scale), Math.floor(rows * cell * scale)] as const;
  if (size[0] !== canvas.width || size[1] !== canvas.height) [canvas.width, canvas.height] = size;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, rows * cell);
  // The colour of an element is resolved for its theme; a variable is not.
  const colourOf = (is: Aspect): string => {
    canvas.style.color = `var(${CELLS[is].colour})`;
    return getComputedStyle(canvas).color;
  };
  const held = colourOf('held');
  const colours = { held, shared: held, caution: colourOf('caution'), danger: colourOf('danger') };
  const { now } = store.snapshot;
  const inner = Math.max(3, cell - 3);
  context.fillStyle = colourOf('free');
  for (let row = 0; row < rows; row++)
    context.fillRect(0, row * cell + inner / 2, Math.min(columns, locks.length - row * columns) * cell, 1);
  locks.forEach((one, place) => {
    const is = aspectOf(state, one, now);
    if (is === 'free') return;
    const [x, y] = [(place % columns) * cell, Math.floor(place / columns) * cell];
    context.fillStyle = context.strokeStyle = colours[is];
    // Nearly all locks are held or free: rectangles are faster than paths, and stay sharp when they are small.
    if (is === 'held') context.fillRect(x, y, inner, inner);
    else if (is === 'shared') context.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
    else {
      context.save();
      context.translate(x, y);
      context.scale(inner / 10, inner / 10);
      context.fill(new Path2D(CELLS[is].path), 'evenodd');
      context.restore();
    }
  });
}
