/** The members as a ring in the order of their ids, and a list with what each owns. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { crewOf, type Leadership, leadershipsOf, type Mate, placeOf } from '../model/crew.ts';
import { routeOf } from '../model/needs.ts';
import { middleCut, shortened, visible } from '../model/text.ts';
import { count, plural } from '../model/time.ts';
import { WindowedList } from '../ui/list.tsx';
import { Heads, ListHead } from '../ui/list-parts.tsx';
import { Facts, Name, Nothing, Panel, Since } from '../ui/parts.tsx';
import { SignalSign } from '../ui/signs.tsx';

/** With more members than this, their names would overlap. */
const MOST_NAMES = 48;
const RADIUS = 148;

export function Members({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, now } = snapshot;
  const crew = crewOf(state, now);
  const live = crew.filter(({ member }) => member !== null);
  const leads = leadershipsOf(state);
  return (
    <>
      <ListHead title="Members">
        {count(live.length)} live · {count(leads.length)} led
        {crew.length > live.length && <span class="red">· {count(crew.length - live.length)} left</span>}
      </ListHead>
      {crew.length === 0 && leads.length === 0 ? (
        <Nothing in="Members" title="No member yet" command="signalbox members join worker-1 -- sleep 600">
          Members see each other come and go, and share assets among them. Join for as long as a command runs:
        </Nothing>
      ) : (
        <div class="grid">
          <Panel class="w5" title="Ring" aside="in id order">
            <Ring crew={crew} />
            <Summary crew={live} leads={leads} />
            <div class="foot">
              <Key look="coordinator" /> coordinator <Key look="leader" /> leader, fenced <Key look="gone" /> left
            </div>
          </Panel>
          <section class="panel w7" aria-label="Members">
            <Heads class="members" left={['Member', 'Role']} right={['Assets', 'Holds', 'Joined']} />
            <WindowedList
              rows={crew}
              heights={[36, 44]}
              keyOf={({ id }: Mate) => id}
              draw={(mate: Mate) => <MateRow of={mate} />}
              label="Members"
            />
          </section>
        </div>
      )}
    </>
  );
}

function MateRow({ of: { id, member, isCoordinator, leads, holds, at } }: { of: Mate }): JSX.Element {
  const names = leads.map(({ name, epoch }) => `${shortened(name, 40)}, ${epoch}`).join('; ');
  return (
    <a class="row members" href={`#${routeOf(`member/${id}`)}`} data-row={`member/${id}`}>
      <span class="line">
        <SignalSign is={member === null ? 'danger' : 'clear'} label="" />
        <Name of={id} />
      </span>
      <span class="cut">
        {member === null && <span class="red">left</span>}
        {isCoordinator && <b class="strong">coordinator </b>}
        {leads.length > 0 && (
          <>
            <b class="strong">leads</b> <span class="soft">{names}</span>
          </>
        )}
      </span>
      <span class="right num spare">{member === null ? '–' : count(member.assets.length)}</span>
      <span class="right num spare">{member === null ? '–' : count(holds)}</span>
      <span class="right soft">{at === null ? '–' : <Since at={at} />}</span>
    </a>
  );
}

function Summary({ crew, leads }: { crew: readonly Mate[]; leads: readonly Leadership[] }): JSX.Element {
  const assets = crew.reduce((sum, { member }) => sum + (member?.assets.length ?? 0), 0);
  const next = crew.find(({ isCoordinator }) => !isCoordinator);
  return (
    <Facts
      of={[
        ['Next to coordinate', next === undefined ? 'nobody' : <Name of={next.id} />],
        ...leads.slice(0, 6).map(({ name, holder, epoch, resource }) => {
          const link = (
            <a class="more" href={`#${routeOf(resource)}`}>
              {shortened(name, 40)}
            </a>
          );
          return [[link, ' is led by'], `${shortened(holder, 60)}, epoch ${count(epoch)}`] as const;
        }),
        ['Assets placed', `${count(assets)} on ${plural(crew.length, 'member')}`, 'num'],
      ]}
    />
  );
}

type Look = 'coordinator' | 'leader' | 'gone' | 'plain';

function lookOf({ member, isCoordinator, leads }: Mate): Look {
  if (member === null) return 'gone';
  if (isCoordinator) return 'coordinator';
  return leads.length > 0 ? 'leader' : 'plain';
}

function Mark({ look }: { look: Look }): JSX.Element {
  switch (look) {
    case 'coordinator':
      return (
        <>
          <rect
            x="-8"
            y="-8"
            width="16"
            height="16"
            rx="3"
            fill="var(--surface)"
            stroke="var(--ink)"
            stroke-width="2"
          />
          <rect x="-3.500" y="-3.500" width="7" height="7" fill="var(--ink)" />
        </>
      );
    case 'leader':
      return (
        <>
          <path d="M0-9L9 0 0 9-9 0z" fill="var(--surface)" stroke="var(--blue-arm)" stroke-width="2" />
          <circle r="2.500" fill="var(--blue-arm)" />
        </>
      );
    case 'gone':
      return <circle r="6" fill="var(--surface)" stroke="var(--red-arm)" stroke-width="1.800" stroke-dasharray="3 2" />;
    case 'plain':
      return <circle r="5" fill="var(--ink2)" stroke="var(--surface)" stroke-width="2" />;
  }
}

function Key({ look }: { look: Look }): JSX.Element {
  return (
    <svg width="20" height="20" viewBox="-10 -10 20 20" aria-hidden="true">
      <Mark look={look} />
    </svg>
  );
}

function Ring({ crew }: { crew: readonly Mate[] }): JSX.Element {
  const isCrowded = crew.length > MOST_NAMES;
  const live = crew.filter(({ member }) => member !== null).length;
  const coordinator = crew.find(({ isCoordinator }) => isCoordinator)?.id;
  const label = `${plural(live, 'live member')}${coordinator === undefined ? '' : `, coordinated by ${visible(coordinator)}`}`;
  return (
    <svg class="ring" viewBox="-290 -200 580 400" role="img" aria-label={label}>
      <circle r={RADIUS} fill="none" stroke="var(--rail)" stroke-width="3" />
      {crew.map((mate, index) => {
        const look = lookOf(mate);
        const { x, y, side } = placeOf(index, crew.length, RADIUS);
        const [outX, outY] = [x * (1 + 18 / RADIUS), y * (1 + (side === 'middle' ? 26 : 18) / RADIUS)];
        if (isCrowded && look === 'plain') {
          return (
            <path
              key={mate.id}
              d={`M${x * 0.96} ${y * 0.96}L${x * 1.05} ${y * 1.05}`}
              stroke="var(--ink2)"
              stroke-width="2"
            >
              <title>{visible(mate.id)}</title>
            </path>
          );
        }
        return (
          <g key={mate.id}>
            <g transform={`translate(${x} ${y})`}>
              <title>{visible(mate.id)}</title>
              <Mark look={look} />
            </g>
            {(!isCrowded || look === 'coordinator' || look === 'leader') && (
              <text x={outX} y={outY + 4} text-anchor={side} class={look}>
                {middleCut(mate.id, 14)}
                {look === 'gone' && ' left'}
              </text>
            )}
          </g>
        );
      })}
      <text class="soft" y="-32" text-anchor="middle">
        live members
      </text>
      <text class="many" y="12" text-anchor="middle">
        {count(live)}
      </text>
    </svg>
  );
}
