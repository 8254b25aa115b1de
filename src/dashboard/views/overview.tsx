/** What needs a person first; then what is held and who waits, traffic, semaphores and pipelines. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import type { Values } from '../model/chart.ts';
import { type Matter, routeOf } from '../model/needs.ts';
import { partsOf, quantileOf, rate, total, windowAt } from '../model/rates.ts';
import { byName, countsOf, matching } from '../model/rows.ts';
import { usedOf } from '../model/slots.ts';
import { count, plural, span } from '../model/time.ts';
import type { Pipeline, State } from '../model/types.ts';
import { address, connection, copy, dismiss, matters, whyNot } from '../ui/app.ts';
import { askToBreak } from '../ui/breaking.ts';
import { Button, Name, Panel, Since, Spark } from '../ui/parts.tsx';
import { LongArm, SignalSign } from '../ui/signs.tsx';
import { useSteadyOrder } from '../ui/steady.ts';
import { TrackHeads, TrackRow } from '../ui/track.tsx';
import { FirstRun } from './first-run.tsx';
import { PhaseStrip } from './pipelines.tsx';
import { SlotStrip } from './slots.tsx';

const MOST_ROWS = 14;
/** More would push the locks off the screen; a button shows the others. */
const FEW_MATTERS = 6;
const MOST_MATTERS = 200;

export function Overview({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state } = snapshot;
  const isEmpty =
    state.resources.size === 0 && state.tasks.size === 0 && state.pipelines.size === 0 && state.members.size === 0;
  if (isEmpty) return <FirstRun />;
  return (
    <div class="stack">
      <h1 class="unseen">Overview</h1>
      <NeedsYou snapshot={snapshot} />
      <div class="grid">
        <HeldAndWaiting snapshot={snapshot} />
        <div class="w4 stack">
          <Traffic state={state} now={snapshot.now} />
          <SomeSemaphores state={state} />
          <SomePipelines state={state} />
        </div>
      </div>
    </div>
  );
}

function NeedsYou({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const all = matters(snapshot);
  const { state, route } = snapshot;
  const isWhole = route.filters['needs'] === 'all';
  // A line that says `1 more` takes as much room as the row that it replaces.
  const isLong = all.length > FEW_MATTERS + 1;
  const shown = all.slice(0, isWhole || !isLong ? MOST_MATTERS : FEW_MATTERS);
  if (all.length === 0) {
    const locks = countsOf(state, 'lock');
    return (
      <section class="panel clear line" aria-label="Needs you">
        <SignalSign is="clear" size={20} label="" />
        <b>All clear</b>
        <span class="soft cut">
          {count(locks.held)} of {plural(locks.all, 'lock')} held,{' '}
          {locks.waiters === 0 ? 'nobody waits' : `${count(locks.waiters)} waiting, none for long`}
        </span>
      </section>
    );
  }
  return (
    <section class="panel needs">
      <header class="line">
        <h2>Needs you</h2>
        <span class="faint small">{plural(all.length, 'matter')}, worst first</span>
        <span class="more soft small spare" aria-hidden="true">
          <kbd>N</kbd> next <kbd>↵</kbd> open
        </span>
      </header>
      <ol>
        {shown.map((matter) => (
          <MatterRow key={matter.key} matter={matter} snapshot={snapshot} />
        ))}
      </ol>
      {isLong && (
        <p class="foot">
          <span>{all.length > shown.length && moreTold(all.slice(shown.length))}</span>
          <Button class="small more" onClick={() => address.filter({ needs: isWhole ? undefined : 'all' })}>
            {isWhole ? 'Show fewer' : `Show all ${count(all.length)}`}
          </Button>
        </p>
      )}
    </section>
  );
}

/** `41 more: Stuck guard 2, Long wait 39`, in the order of urgency. */
function moreTold(rest: readonly Matter[]): string {
  const counts = new Map<string, number>();
  for (const { title } of rest) counts.set(title, (counts.get(title) ?? 0) + 1);
  return `${count(rest.length)} more: ${[...counts].map(([title, many]) => `${title} ${count(many)}`).join(', ')}`;
}

function MatterRow({ matter, snapshot }: { matter: Matter; snapshot: Loaded }): JSX.Element {
  const { title, aspect, sentence, cost, since, action, leads, breaks, copies, key, isDismissable = false } = matter;
  const mayBreak = breaks !== undefined && whyNot(snapshot, 'administrator') === undefined;
  const onClick = (): void => {
    if (copies !== undefined) void copy(copies, 'Command');
    else if (mayBreak) askToBreak(breaks);
    else address.go(leads);
  };
  return (
    <li>
      <LongArm is={aspect} />
      <span class={`kind ${aspect === 'danger' ? 'red' : 'amber'}`}>{title}</span>
      <span class="says cut soft">
        {sentence.map((part, place) =>
          place % 2 === 0 ? (
            <b key={place}>
              <bdi>{short(part)}</bdi>
            </b>
          ) : (
            <bdi key={place}>{short(part)}</bdi>
          ),
        )}
      </span>
      <span class="cost soft small">
        {cost}
        {isDismissable && (
          <Button title="It stays on the timeline" onClick={() => dismiss(key)}>
            Dismiss
          </Button>
        )}
      </span>
      <span class="age right">{since !== undefined && <Since at={since} />}</span>
      <button type="button" class="button" data-matter={key} onClick={onClick}>
        {breaks !== undefined && !mayBreak ? 'See lock' : action}
      </button>
    </li>
  );
}

function short(text: string): string {
  return text.length > 160 ? `${text.slice(0, 120)}…${text.slice(-24)}` : text;
}

function HeldAndWaiting({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const rows = useSteadyOrder(snapshot, (of) => matching(of, { kind: 'lock', text: '', is: '' }), 'need');
  const shown = rows.slice(0, MOST_ROWS);
  const names = shown.map(({ resource }) => resource).join('\n');
  useEffect(() => connection.see(shown.map(({ resource }) => resource)), [names]);
  const rest = rows.slice(MOST_ROWS);
  const free = rest.filter(({ holds }) => holds.length === 0).length;
  return (
    <Panel
      class="w8 tall"
      title="Held and waiting"
      aside="longest wait first"
      leads={['locks', `All ${plural(rows.length, 'lock')}`]}
    >
      {rows.length === 0 ? (
        <p class="inside soft">No lock was ever held here.</p>
      ) : (
        <>
          <TrackHeads />
          {shown.map((one) => (
            <TrackRow key={one.resource} of={one} />
          ))}
        </>
      )}
      {rest.length > 0 && (
        <p class="foot">
          {count(rest.length)} more: {count(free)} free, {count(rest.length - free)} held
        </p>
      )}
    </Panel>
  );
}

function Figure({ label, value, of }: { label: string; value: string; of: Values }): JSX.Element {
  const [, number = value, unit = ''] = /^([\d.]+) ?(ms|s|\/s)$/.exec(value) ?? [];
  return (
    <div>
      <div class="soft small">{label}</div>
      <div class="figure">
        {number}
        <small>{unit}</small>
      </div>
      <Spark of={of} label={`${label} over the last 4 minutes`} />
    </div>
  );
}

const TRAFFIC_MS = 240_000;
const TRAFFIC_PARTS = 48;

export function Traffic({ state: { slices }, now }: { state: State; now: number }): JSX.Element {
  const parts = partsOf(slices, windowAt(now, TRAFFIC_MS, TRAFFIC_PARTS));
  const whole = total(parts);
  const often = (label: string, what: 'grants' | 'events'): JSX.Element => (
    <Figure label={label} value={`${rate(slices, what, now).toFixed(1)}/s`} of={parts.map((part) => part[what])} />
  );
  const long = (label: string, what: 'waits' | 'holds'): JSX.Element => {
    const usual = quantileOf(whole[what], 0.95);
    const value = usual === undefined ? '–' : span(usual);
    return <Figure label={label} value={value} of={parts.map((part) => quantileOf(part[what], 0.95))} />;
  };
  return (
    <Panel title="Traffic" aside="last 4 min" leads={['charts', 'Charts']}>
      <div class="figures">
        {often('Grants', 'grants')}
        {often('Events', 'events')}
        {long('Wait, p95', 'waits')}
        {long('Hold, p95', 'holds')}
      </div>
    </Panel>
  );
}

function SomeSemaphores({ state }: { state: State }): JSX.Element {
  const all = matching(state, { kind: 'semaphore', text: '', is: '' });
  const fullest = [...all]
    .sort(
      (one, other) => other.waiting.length - one.waiting.length || usedOf(other) - usedOf(one) || byName(one, other),
    )
    .slice(0, 5);
  return (
    <Panel title="Semaphores" aside="slots in use" leads={['semaphores', `All ${count(all.length)}`]}>
      {fullest.map((one) => (
        <a class="row sems" href={`#${routeOf(one.resource)}`} key={one.resource} data-row={one.resource}>
          <Name of={one.name} />
          <SlotStrip of={one} />
          <span class="right">
            <b class="middling">{count(usedOf(one))}</b>
            <span class="faint">/{count(one.capacity)}</span>
          </span>
        </a>
      ))}
      {all.length === 0 && <p class="inside soft">None is in use.</p>}
    </Panel>
  );
}

const UNDER_WAY: readonly Pipeline['state'][] = ['blocked', 'running', 'pending'];

function SomePipelines({ state }: { state: State }): JSX.Element {
  const all = [...state.pipelines.values()];
  const now = all
    .filter((one) => UNDER_WAY.includes(one.state))
    .sort((one, other) => UNDER_WAY.indexOf(one.state) - UNDER_WAY.indexOf(other.state))
    .slice(0, 5);
  return (
    <Panel title="Pipelines" aside="under way" leads={['pipelines', `All ${count(all.length)}`]}>
      {now.map((one) => (
        <a class="row lines" href={`#${routeOf(`pipeline/${one.id}`)}`} key={one.id} data-row={`pipeline/${one.id}`}>
          <Name of={one.id} />
          <PhaseStrip of={one} />
          <span class={`right cut ${one.state === 'blocked' ? 'red' : 'soft'}`}>
            {one.state === 'running' ? (one.phase ?? 'running') : one.state}
          </span>
        </a>
      ))}
      {now.length === 0 && <p class="inside soft">None is under way.</p>}
    </Panel>
  );
}
