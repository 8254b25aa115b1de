/** A deadlock that was broken: the cycle, who was refused, and how to keep it from coming back. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { routeOf } from '../model/needs.ts';
import { kindAndName, middleCut, shortened } from '../model/text.ts';
import { plural } from '../model/time.ts';
import type { Deadlock } from '../model/types.ts';
import { address, dismiss } from '../ui/app.ts';
import { Button, CommandLine, Name, Nothing, Panel, Since } from '../ui/parts.tsx';
import { PageHead } from '../ui/page-head.tsx';
import { ArrowTip, Label } from '../ui/signs.tsx';
import { shellWord } from './lock.tsx';

export function OneDeadlock({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state } = snapshot;
  const of = state.deadlocks.find(({ id }) => id === name);
  if (of === undefined) {
    return (
      <Panel title="Deadlock">
        <h1 class="unseen">Deadlock</h1>
        <Nothing title="This deadlock is no longer known" command="signalbox events tail lock:deadlock --since 1h">
          The page keeps those of the last hour. The store may still remember it:
        </Nothing>
      </Panel>
    );
  }
  const settle = (): void => {
    dismiss(`deadlock ${of.id}`);
    address.go('/overview');
  };
  const resources = [...new Set(of.cycle.map(({ resource }) => resource))];
  const flags = resources.map((one) => {
    const [kind, name] = kindAndName(one);
    return `--${kind === 'lock' ? 'lock' : 'sem'} ${shellWord(name)}`;
  });
  return (
    <>
      <PageHead
        sign="caution"
        title="Deadlock, broken"
        under={
          <span>
            <Since at={of.at} /> ago · <Name of={of.victim} /> was refused, nobody else lost anything
          </span>
        }
      >
        <Button class="main-deed" onClick={settle}>
          Settled
        </Button>
      </PageHead>
      <div class="grid">
        <Panel class="w7 tall" title="The cycle" aside={`${plural(of.cycle.length, 'wait')}, read along the arrows`}>
          <CycleDrawing of={of} />
        </Panel>
        <div class="w5 stack">
          <Panel title="What happened">
            {of.cycle.map(({ holder, resource, blockedBy }) => (
              <a class="row cycle" key={`${holder} ${resource}`} href={`#${routeOf(resource)}`} data-row={resource}>
                <span class={holder === of.victim ? 'red strong' : ''}>
                  <bdi>{shortened(holder, 60)}</bdi> waited for <bdi>{shortened(resource, 60)}</bdi>, held by{' '}
                  <bdi>{shortened(blockedBy, 60)}</bdi>
                </span>
              </a>
            ))}
          </Panel>
          <Panel title="How to prevent it">
            <div class="inside">
              <p class="soft">
                They took the same resources in a different order. Take them together, so that nobody ever holds just
                one:
              </p>
              <CommandLine>{`signalbox run ${flags.join(' ')} -- …`}</CommandLine>
            </div>
          </Panel>
        </div>
      </div>
    </>
  );
}

const SIZE = { width: 150, height: 46 };
const STOPS = {
  holder: { says: 'waits for', isVictim: false, rx: 23, fill: 'var(--raised)', stroke: 'var(--line2)' },
  victim: { says: 'waits for, refused', isVictim: true, rx: 23, fill: 'var(--red-fill)', stroke: 'var(--red)' },
  resource: { says: 'held by', isVictim: false, rx: 3, fill: 'var(--blue-fill)', stroke: 'var(--blue-line)' },
} as const;

/** Holders and resources in turn around a circle. */
function CycleDrawing({ of }: { of: Deadlock }): JSX.Element {
  const stops = of.cycle.slice(0, 6).flatMap(({ holder, resource }) => [
    { label: holder, ...(holder === of.victim ? STOPS.victim : STOPS.holder) },
    { label: resource, ...STOPS.resource },
  ]);
  const [centre, radius] = [
    { x: 320, y: 170 },
    { x: 220, y: 120 },
  ];
  const at = (place: number): { x: number; y: number } => {
    const angle = (place / stops.length) * 2 * Math.PI - (3 * Math.PI) / 4;
    return { x: centre.x + radius.x * Math.cos(angle), y: centre.y + radius.y * Math.sin(angle) };
  };
  const told = of.cycle.map(
    ({ holder, resource, blockedBy }) => `${holder} waits for ${resource}, held by ${blockedBy}`,
  );
  return (
    <div class="scrolls inside" tabIndex={0} role="group" aria-label="The cycle">
      <svg
        class="drawing"
        viewBox="0 0 640 340"
        role="img"
        aria-label={`${told.join('; ')}. ${of.victim} was refused.`}
      >
        <ArrowTip id="step" fill="context-stroke" />
        {stops.map(({ says, isVictim: isCut }, place) => {
          const [one, other] = [at(place), at((place + 1) % stops.length)];
          const [dx, dy] = [other.x - one.x, other.y - one.y];
          const long = Math.hypot(dx, dy);
          const reach = Math.min(
            (SIZE.width / 2 + 6) / Math.abs(dx / long || 1e-9),
            (SIZE.height / 2 + 6) / Math.abs(dy / long || 1e-9),
          );
          const [ux, uy] = [(dx / long) * reach, (dy / long) * reach];
          return (
            <g key={place}>
              <path
                {...{ 'stroke-width': 2, 'marker-end': 'url(#step)', stroke: isCut ? 'var(--red)' : 'var(--ink3)' }}
                d={`M${one.x + ux} ${one.y + uy}L${other.x - ux} ${other.y - uy}`}
                stroke-dasharray={isCut ? '5 4' : undefined}
              />
              <text
                {...{
                  x: (one.x + other.x) / 2,
                  y: (one.y + other.y) / 2 + (Math.abs(dy) > Math.abs(dx) ? 4 : -8),
                  'font-size': 12,
                  'text-anchor': 'middle',
                }}
                {...{ 'paint-order': 'stroke', stroke: 'var(--surface)', 'stroke-width': 5 }}
                fill={isCut ? 'var(--red)' : 'var(--ink2)'}
                font-weight={isCut ? 600 : 400}
              >
                {says}
              </text>
            </g>
          );
        })}
        {stops.map(({ label, isVictim, rx, fill, stroke }, place) => {
          const { x, y } = at(place);
          return (
            <g key={place} transform={`translate(${x - SIZE.width / 2} ${y - SIZE.height / 2})`}>
              <rect
                {...{ ...SIZE, rx, fill, stroke }}
                stroke-width={isVictim ? 1.8 : 1.2}
                stroke-dasharray={isVictim ? '5 3' : undefined}
              />
              <Label
                {...{ x: SIZE.width / 2, y: isVictim ? 20 : 28, anchor: 'middle', size: 13 }}
                {...{ weight: 600, fill: 'var(--ink)' }}
              >
                {middleCut(label, 19)}
              </Label>
              {isVictim && <Label {...{ x: SIZE.width / 2, y: 36, anchor: 'middle', size: 11.5 }}>refused</Label>}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
