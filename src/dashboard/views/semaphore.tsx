/** One semaphore: which holder has which slots, who waits for how many, and what would let them in. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { unused } from '../model/apply.ts';
import { whyNotUndrained } from '../model/breaking.ts';
import { fits, letterOf, rangesOf, runsOf, usedOf } from '../model/slots.ts';
import { shortened } from '../model/text.ts';
import { count, duration, plural } from '../model/time.ts';
import type { Resource } from '../model/types.ts';
import { ask, type AskedDeed, whyNot } from '../ui/app.ts';
import { CommandLine, Deed, Name, Note, Panel, Since } from '../ui/parts.tsx';
import { ResourceHead, useSight } from '../ui/resource-head.tsx';
import { SignalSign } from '../ui/signs.tsx';
import { leaseLeft, shellWord } from './lock.tsx';

/** With more slots than this, the strip becomes a grid of small cells. */
const MOST_IN_STRIP = 64;
const MOST_IN_GRID = 4_096;
/** With no more slots than this, each is wide enough for a name. */
const FEW_SLOTS = 8;
/** More would leave no room for the words beside them. */
const MOST_WANTED_CELLS = 8;

export function OneSemaphore({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state, now } = snapshot;
  const resource = `semaphore/${name}`;
  useSight(resource);
  const of = state.resources.get(resource) ?? unused('semaphore', name);
  const used = usedOf(of);
  const wanted = usedOf({ holds: of.waiting });
  const not = whyNot(snapshot, 'administrator');
  return (
    <>
      <ResourceHead
        of={of}
        snapshot={snapshot}
        says={
          <span class="num">
            {count(used)} of {plural(of.capacity, 'slot')} in use
          </span>
        }
        wanted={` for ${plural(wanted, 'slot')}`}
        then={of.isDrained && <span class="amber strong">· drained</span>}
        breaks={{ label: 'Break…', nobody: 'Nobody holds slots' }}
      >
        <Deed label="Resize…" not={not} onClick={() => ask(resizing(of))} />
        <Deed
          label={of.isDrained ? 'Undo drain…' : 'Drain…'}
          not={of.capacity === 0 ? 'It was never used' : (not ?? whyNotUndrained(of))}
          onClick={() => ask(of.isDrained ? undoing(of) : draining(of))}
        />
      </ResourceHead>
      {of.drained !== null && <DrainNote of={of.drained} />}
      <div class="grid">
        <Panel
          title="Slots"
          aside={of.capacity === 0 ? 'none yet' : `numbered 0 to ${of.capacity - 1}; a holder keeps its numbers`}
        >
          <Slots of={of} />
        </Panel>
        <Panel class="w7 tall" title="Holders" aside={of.holds.length === 0 ? 'none' : count(of.holds.length)}>
          <Holders of={of} now={now} />
        </Panel>
        <Panel
          class="w5 tall"
          title="Queue"
          aside={of.waiting.length === 0 ? 'empty' : of.isDrained ? 'drained' : `${count(freeIn(of))} free`}
        >
          <Waiting of={of} />
        </Panel>
      </div>
    </>
  );
}

/** How many slots are free; none of a drained semaphore. */
function freeIn(of: Resource): number {
  return of.isDrained ? 0 : Math.max(0, of.capacity - usedOf(of));
}

function resizing(of: Resource): AskedDeed {
  return {
    title: `Resize ${of.resource}?`,
    will: [
      { sign: 'held', text: 'Nobody loses a slot: a capacity below what is in use takes effect as holders leave.' },
      { sign: 'clear', text: 'An event records the new capacity; so does the witness, where it is on.' },
    ],
    ...{ resource: of.resource, action: 'settings', method: 'PUT', body: { fromCapacity: of.capacity } },
    number: { field: 'capacity', label: 'Slots from now on', now: of.capacity },
    ...{ label: 'Resize', done: `${of.resource} was resized` },
  };
}

/** Tells every reader why the semaphore grants nothing. */
function DrainNote({ of: { by, at, reason } }: { of: NonNullable<Resource['drained']> }): JSX.Element {
  return (
    <Note sign="caution" class="panel spaced">
      Drained by <Name of={by} /> <Since at={at} /> ago: <bdi>{shortened(reason, 400)}</bdi>. Requests wait, and holders
      keep what they have.
    </Note>
  );
}

function draining(of: Resource): AskedDeed {
  const { holds, waiting } = of;
  return {
    title: `Drain ${of.resource}?`,
    will: [
      {
        sign: 'danger',
        text: `Nothing new is granted until you undo it: ${whoWaits(waiting.length)}, tries are refused.`,
      },
      {
        sign: 'held',
        text:
          holds.length === 0
            ? 'Nobody holds slots now.'
            : `${plural(holds.length, 'holder keeps what it has', 'holders keep what they have')}.`,
      },
      { sign: 'clear', text: 'An event records who did it and why; so does the witness, where it is on.' },
    ],
    ...{ resource: of.resource, action: 'drain', body: {}, needsReason: true },
    ...{ label: 'Drain', done: `${of.resource} is drained` },
  };
}

function whoWaits(waiting: number): string {
  return waiting === 0
    ? 'who asks from now on waits'
    : `${plural(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'} on`;
}

/** Carries the revision of the drain on screen, so that a newer drain by another administrator stays. */
function undoing({ resource, waiting, drained }: Resource): AskedDeed {
  return {
    title: `Undo the drain of ${resource}?`,
    will: [
      {
        sign: 'clear',
        text: waiting.length === 0 ? 'Nobody waits.' : `${plural(waiting.length, 'request')} can be served, in order.`,
      },
      { sign: 'held', text: `It was drained by ${drained?.by ?? 'an administrator'}: ${drained?.reason ?? ''}` },
    ],
    ...{ resource, action: 'undrain', body: { revision: drained?.revision ?? 0 } },
    ...{ label: 'Undo', done: `${resource} grants slots again` },
  };
}

function Slots({ of }: { of: Resource }): JSX.Element {
  if (of.capacity === 0) {
    return (
      <div class="inside">
        <p class="soft">It was never used. The first to ask names the capacity:</p>
        <CommandLine>{`signalbox run --sem ${shellWord(of.name)}=1 --capacity 4 -- sleep 60`}</CommandLine>
      </div>
    );
  }
  if (of.capacity > MOST_IN_STRIP) return <SlotGrid of={of} />;
  return (
    <div class="inside scrolls" tabIndex={0} role="group" aria-label={`Slots 0 to ${of.capacity - 1}`}>
      <div class="strip-of-slots" style={{ gridTemplateColumns: `repeat(${of.capacity}, minmax(0, 1fr))` }}>
        {Array.from({ length: of.capacity }, (_, slot) => (
          <span class="no" key={slot}>
            {slot}
          </span>
        ))}
        {runsOf(of).map(({ first, length, place, of: all }) => {
          const hold = place === undefined ? undefined : of.holds[place];
          if (hold === undefined || place === undefined) {
            return (
              <span class="slot free" key={first} style={{ gridColumn: `${first + 1} / span ${length}` }}>
                {length === 1 && of.capacity > 24 ? '' : of.isDrained ? 'drained' : 'free'}
              </span>
            );
          }
          const isLost = hold.isStale;
          return (
            <span
              key={first}
              class={`slot ${isLost ? 'lost' : ''}`}
              style={{ gridColumn: `${first + 1} / span ${length}` }}
              title={`${shortened(hold.holder, 200)}, ${plural(hold.weight, 'slot')}`}
            >
              <span class="line">
                <b class={`letter ${isLost ? 'lost' : ''}`}>{letterOf(place)}</b>
                {(length > 1 || of.capacity <= FEW_SLOTS) && <Name of={hold.holder} class="middling" />}
              </span>
              <span class="cut soft">
                {isLost
                  ? 'stale'
                  : length === 1 && all === 1
                    ? '1 slot'
                    : length < all
                      ? `${length} of its ${all}`
                      : `weight ${all}`}
              </span>
            </span>
          );
        })}
      </div>
    </div>
  );
}

function SlotGrid({ of }: { of: Resource }): JSX.Element {
  const taken = new Set(of.holds.flatMap(({ slots }) => slots));
  const shown = Math.min(of.capacity, MOST_IN_GRID);
  return (
    <div class="inside">
      <div class="cells" role="img" aria-label={`${usedOf(of)} of ${of.capacity} slots in use`}>
        {Array.from({ length: shown }, (_, slot) => (
          <i key={slot} class={taken.has(slot) ? 'used' : ''} />
        ))}
      </div>
      {shown < of.capacity && <p class="soft">and {count(of.capacity - shown)} more</p>}
    </div>
  );
}

function Holders({ of, now }: { of: Resource; now: number }): JSX.Element {
  if (of.holds.length === 0) return <p class="inside soft">Nobody has a slot.</p>;
  return (
    <>
      <div class="heads holders">
        <span />
        <span>Holder</span>
        <span class="right">Weight</span>
        <span>Slots</span>
        <span class="right">Held</span>
        <span class="right spare">Lease</span>
      </div>
      {of.holds.slice(0, 200).map((hold, place) => {
        const left = leaseLeft(hold, now);
        return (
          <div
            class="row holders"
            key={hold.token}
            title={hold.reason === null ? undefined : shortened(hold.reason, 400)}
          >
            <b class={hold.isStale ? 'red strong' : 'blue strong'}>{letterOf(place)}</b>
            <span class="line">
              <Name of={hold.holder} class="middling" />
              {hold.isStale && (
                <span class="red line">
                  <SignalSign is="danger" size={14} label="" />
                  stale
                </span>
              )}
            </span>
            <span class="right middling">{count(hold.weight)}</span>
            <span class="num cut">{rangesOf(hold.slots)}</span>
            <Since at={hold.acquiredAt} class="right" />
            <span class="right soft num spare">
              {hold.isStale ? 'ended' : left === undefined ? '–' : duration(left.ms)}
            </span>
          </div>
        );
      })}
      {of.holds.length > 200 && <p class="foot">and {count(of.holds.length - 200)} more</p>}
    </>
  );
}

function Waiting({ of }: { of: Resource }): JSX.Element {
  if (of.waiting.length === 0) return <p class="inside soft">Nobody stands at the signal.</p>;
  const free = freeIn(of);
  return (
    <>
      {of.waiting.slice(0, 100).map((waiter, place) => (
        <div class="row wants" key={`${waiter.holder} ${waiter.since}`}>
          <span class="faint">{place + 1}</span>
          <span class="wants-who">
            <Name of={waiter.holder} class="middling" />
            <span class="soft small cut">{fits(of, place)}</span>
          </span>
          <span class="line">
            {waiter.weight <= MOST_WANTED_CELLS && (
              <span class="cells" aria-hidden="true">
                {Array.from({ length: waiter.weight }, (_, cell) => (
                  <i key={cell} class={place === 0 && cell < free ? 'used' : ''} />
                ))}
              </span>
            )}
            <b class="middling num">{count(waiter.weight)}</b>
          </span>
          <Since at={waiter.since} class="right" />
        </div>
      ))}
      {of.waiting.length > 100 && <p class="foot">and {count(of.waiting.length - 100)} more</p>}
    </>
  );
}
