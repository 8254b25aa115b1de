/** Signals: the shape carries the meaning, the colour repeats it. */
import type { ComponentChildren, JSX } from 'preact';
import type { Aspect } from '../model/needs.ts';

export type Sign = Aspect | 'clear' | 'pending' | 'unknown';

const WORDS: Readonly<Record<Sign, string>> = {
  free: 'free',
  clear: 'clear',
  held: 'held',
  shared: 'shared',
  caution: 'long wait',
  danger: 'at danger',
  pending: 'pending',
  unknown: 'not live',
};

export function SignalSign({ is, size = 16, label }: { is: Sign; size?: number; label?: string }): JSX.Element {
  const said = label ?? WORDS[is];
  const name = said === '' ? { 'aria-hidden': true as const } : { role: 'img' as const, 'aria-label': said };
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" {...name}>
      {shape(is)}
    </svg>
  );
}

function Post(): JSX.Element {
  return <path d="M2 1h2v14H2z" fill="var(--ink3)" />;
}

function shape(is: Sign): JSX.Element {
  switch (is) {
    case 'danger':
      return (
        <>
          <Post />
          <path d="M3 3h12v5H3z" fill="var(--red-arm)" />
          <path d="M10.600 3.800h2v3.400h-2z" fill="var(--stripe)" />
        </>
      );
    case 'caution':
      return (
        <>
          <Post />
          <path d="M3 3h12l-2.500 2.500L15 8H3z" fill="var(--amber-arm)" />
          <path d="M9.200 3L7 5.500 9.200 8h2L9 5.500 11.200 3z" fill="#1a1408" />
        </>
      );
    case 'free':
    case 'clear':
      return (
        <>
          <Post />
          <g transform="rotate(-45 3.500 8)">
            <path d="M3 5.800h11.500v4.600H3z" fill="var(--green-arm)" />
            <path d="M10.400 6.600h1.800v3h-1.800z" fill="var(--stripe)" />
          </g>
        </>
      );
    case 'held':
    case 'shared':
      return (
        <>
          <path d="M0 8h16" stroke="var(--rail)" stroke-width="2" />
          <rect
            {...{ x: 2.7, y: 4, width: 10.6, height: 8, rx: 1.5, stroke: 'var(--blue-arm)', 'stroke-width': 1.4 }}
            fill={is === 'held' ? 'var(--blue-arm)' : 'var(--surface)'}
          />
          {is === 'shared' && <path d="M5 12l5-8M8.500 12L13 5" stroke="var(--blue-arm)" stroke-width="1.5" />}
        </>
      );
    case 'pending':
    case 'unknown':
      return (
        <circle
          {...{ cx: 8, cy: 8, r: 4.6, fill: 'none', stroke: 'var(--ink3)', 'stroke-width': 1.6 }}
          stroke-dasharray={is === 'unknown' ? '2 2' : '0'}
        />
      );
  }
}

/** The arm on the post for one matter. */
export function LongArm({ is }: { is: 'danger' | 'caution' }): JSX.Element {
  return (
    <svg class="arm" width="36" height="16" viewBox="0 0 36 16" aria-hidden="true">
      {is === 'danger' ? (
        <>
          <rect x="0" y="2" width="33" height="11" rx="1" fill="var(--red-arm)" />
          <path d="M23 3.500h4v8h-4z" fill="var(--stripe)" />
        </>
      ) : (
        <>
          <path d="M0 2h33l-5 5.500 5 5.500H0z" fill="var(--amber-arm)" />
          <path d="M21 2l-5 5.500 5 5.500h4l-5-5.500L25 2z" fill="#1a1408" />
        </>
      )}
      <circle cx="1" cy="7.500" r="3" fill="var(--ink3)" />
    </svg>
  );
}

/** The signal before the queue, at full size. */
export function TallSignal({ isClear }: { isClear: boolean }): JSX.Element {
  return (
    <svg
      width="46"
      height="92"
      viewBox="0 0 46 92"
      role="img"
      aria-label={isClear ? 'signal clear' : 'signal at danger'}
    >
      <path d="M6 6h4v86H6z" fill="var(--ink3)" />
      <circle cx="8" cy="4" r="4" fill="var(--ink3)" />
      <g transform={isClear ? 'rotate(-45 8 18)' : undefined}>
        <rect x="8" y="12" width="34" height="12" rx="1" fill={isClear ? 'var(--green-arm)' : 'var(--red-arm)'} />
        <path d="M30 13.500h4.500v9H30z" fill="var(--stripe)" />
      </g>
      <circle cx="8" cy="18" r="3.400" fill="var(--surface)" stroke="var(--ink3)" stroke-width="1.600" />
    </svg>
  );
}

/** The end of an arrow, for `marker-end` in the same drawing. */
export function ArrowTip({ id, fill }: { id: string; fill: string }): JSX.Element {
  return (
    <defs>
      <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
        <path d="M0 0l8 4-8 4z" fill={fill} />
      </marker>
    </defs>
  );
}

interface LabelProps {
  readonly x: number;
  readonly y: number;
  readonly size?: number;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly weight?: number;
  readonly fill?: string;
  readonly children: ComponentChildren;
}

/** A text in a drawing. */
export function Label({ size = 11, anchor = 'start', weight = 400, fill = 'var(--ink2)', ...rest }: LabelProps) {
  return <text {...rest} fill={fill} font-size={size} font-weight={weight} text-anchor={anchor} />;
}

export function Brand(): JSX.Element {
  return (
    <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <path d="M4 2h2.600v19H4z" fill="var(--ink)" />
      <path d="M5 4h15v6H5z" fill="var(--red-arm)" />
      <path d="M14.500 5h2.400v4h-2.400z" fill="#fff" />
      <path d="M1 19.800h20" stroke="var(--ink)" stroke-width="2" />
    </svg>
  );
}
