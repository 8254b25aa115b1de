/** All semaphores, each with its slots. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { aspectOf, longest, routeOf } from '../model/needs.ts';
import { matching } from '../model/rows.ts';
import { usedOf } from '../model/slots.ts';
import { count, plural } from '../model/time.ts';
import type { Resource } from '../model/types.ts';
import { connection } from '../ui/app.ts';
import { WindowedList } from '../ui/list.tsx';
import { FilterField, Heads, ListHead, NoneFits } from '../ui/list-parts.tsx';
import { Name, Nothing } from '../ui/parts.tsx';
import { LongestWait } from '../ui/track.tsx';
import { SignalSign } from '../ui/signs.tsx';
import { useSteadyOrder } from '../ui/steady.ts';
import { SlotStrip } from './slots.tsx';

export function Semaphores({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, route } = snapshot;
  const { q = '' } = route.filters;
  const all = matching(state, { kind: 'semaphore', text: '', is: '' });
  const rows = useSteadyOrder(snapshot, (of) => matching(of, { kind: 'semaphore', text: q, is: '' }), 'need', q);
  useEffect(() => () => connection.see([]), []);
  const used = all.reduce((sum, one) => sum + usedOf(one), 0);
  const slots = all.reduce((sum, { capacity }) => sum + capacity, 0);
  const waiting = all.reduce((sum, one) => sum + one.waiting.length, 0);
  return (
    <>
      <ListHead title="Semaphores">
        {count(all.length)} · {count(used)} of {plural(slots, 'slot')} in use · {count(waiting)} waiting
      </ListHead>
      {all.length === 0 ? (
        <Nothing in="Semaphores" title="No semaphore yet" command="signalbox run --sem gpu=2 --capacity 8 -- sleep 60">
          A semaphore lets a number of holders in at once, by weight. The first to ask names the capacity:
        </Nothing>
      ) : (
        <>
          <div class="tools line">
            <FilterField by="name, holder or token" hint="Name, holder or token (F)" now={q} />
          </div>
          <section class="panel" aria-label="Semaphores">
            <Heads class="semaphores" left={['Semaphore', 'Slots']} right={['In use', 'Waiting', 'Longest']} />
            <WindowedList
              rows={rows}
              heights={[40, 64]}
              keyOf={(one: Resource) => one.resource}
              draw={(one: Resource) => <SemaphoreRow of={one} snapshot={snapshot} />}
              onSight={(some: readonly Resource[]) => connection.see(some.map(({ resource }) => resource))}
              label="Semaphores"
            />
            {rows.length === 0 && <NoneFits of={plural(all.length, 'semaphore')} q={q} in="name, holders or tokens" />}
          </section>
        </>
      )}
    </>
  );
}

function SemaphoreRow({ of, snapshot: { state, now } }: { of: Resource; snapshot: Loaded }): JSX.Element {
  const aspect = aspectOf(state, of, now);
  return (
    <a class="row semaphores" href={`#${routeOf(of.resource)}`} data-row={of.resource}>
      <span class="line">
        <SignalSign is={aspect} />
        <Name of={of.name} />
        {of.isDrained && <span class="amber">drained</span>}
      </span>
      <SlotStrip of={of} />
      <span class="right num">
        <b class="middling">{count(usedOf(of))}</b>
        <span class="faint">/{count(of.capacity)}</span>
      </span>
      <span class={`right num ${of.waiting.length === 0 ? 'faint' : ''} spare`}>
        {of.waiting.length === 0 ? '–' : count(of.waiting.length)}
      </span>
      <LongestWait of={longest(of)} isLong={aspect === 'caution'} />
    </a>
  );
}
