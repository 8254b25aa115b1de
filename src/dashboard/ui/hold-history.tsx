/** The holds of the last hour on one line, and the length of the queue under it. */
import type { JSX } from 'preact';
import type { History } from '../model/history.ts';
import { shortened } from '../model/text.ts';
import { clock, duration } from '../model/time.ts';
import { Label } from './signs.tsx';

const WIDTH = 1150;
const MARKS = 6;

interface Props {
  readonly history: History;
  readonly from: number;
  readonly now: number;
  readonly queued: number;
}

export function HoldHistory({ history, from, now, queued }: Props): JSX.Element {
  const x = (at: number): number => Math.max(0, Math.min(WIDTH, ((at - from) / Math.max(1, now - from)) * WIDTH));
  const longest = Math.max(1, queued, ...history.queue.map(({ length }) => length));
  let path = 'M0 84';
  let y = 84;
  for (const { at, length } of history.queue) {
    const next = 84 - (length / longest) * 26;
    path += `H${x(at).toFixed(1)}V${next.toFixed(1)}`;
    y = next;
  }
  const last = queued === 0 ? 84 : 84 - (queued / longest) * 26;
  path += `H${WIDTH}${y === last ? '' : `V${last.toFixed(1)}`}V84Z`;
  return (
    <div class="scrolls" tabIndex={0} role="group" aria-label="History">
      <svg
        class="drawing long"
        viewBox={`0 0 ${WIDTH} 108`}
        role="img"
        aria-label="Holds over time, and the length of the queue"
      >
        <path d={`M0 24h${WIDTH}`} stroke="var(--rail)" stroke-width="2" />
        {history.holds.map((hold) => {
          const [left, right] = [x(hold.from), x(hold.to ?? now)];
          const width = Math.max(2, right - left - 1);
          const isNow = hold.to === undefined;
          const isBad = hold.end === 'forced' || hold.end === 'reclaimed';
          const how = hold.end === undefined ? 'holds it' : hold.end;
          return (
            <g key={hold.token}>
              <rect
                {...{ x: left, y: 12, width, height: 24, rx: 2 }}
                fill={isNow ? 'var(--blue-arm)' : isBad ? 'var(--red-fill)' : 'var(--blue-fill)'}
                stroke={isBad ? 'var(--red)' : 'var(--blue-line)'}
                stroke-dasharray={isBad ? '3 2' : undefined}
              >
                <title>{`${shortened(hold.holder, 200)}, ${duration((hold.to ?? now) - hold.from)}, ${how}`}</title>
              </rect>
              {width > 64 && (
                <Label x={left + 6} y={28} weight={500} fill={isNow ? 'var(--on-blue)' : 'var(--ink)'}>
                  {shortened(hold.holder, Math.floor(width / 7)).replace(/ \(\d+ more\)$/, '')}
                </Label>
              )}
            </g>
          );
        })}
        <path d={path} fill="var(--amber-fill)" stroke="var(--amber)" stroke-width="1.200" />
        <Label {...{ x: 2, y: 50 }}>queue</Label>
        <Label {...{ x: WIDTH - 2, y: 50, anchor: 'end' }}>{queued} now</Label>
        <path d={`M0 84.500h${WIDTH}`} stroke="var(--line2)" />
        {Array.from({ length: MARKS }, (_, mark) => {
          const at = from + ((now - from) * mark) / MARKS;
          return (
            <Label key={mark} x={Math.max(1, x(at))} y={102} anchor={mark === 0 ? 'start' : 'middle'}>
              {now - from > 600_000 ? clock(at).slice(0, 5) : clock(at)}
            </Label>
          );
        })}
        <Label {...{ x: WIDTH, y: 102, anchor: 'end', weight: 600, fill: 'var(--ink)' }}>now</Label>
      </svg>
    </div>
  );
}
