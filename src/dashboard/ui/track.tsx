/** A resource as a stretch of track: the block section with its holder, the signal, and the queue before it. */
import type { JSX } from 'preact';
import { aspectOf, longest, lostHolds, routeOf } from '../model/needs.ts';
import { count } from '../model/time.ts';
import type { Resource, Waiter } from '../model/types.ts';
import { store } from './app.ts';
import { Name, Since } from './parts.tsx';
import { SignalSign } from './signs.tsx';

interface HeadsProps {
  readonly name?: string;
  /** The word over what is beside the section. */
  readonly beside?: string;
  readonly time?: string;
}

export function TrackHeads({ name = 'Lock', beside = 'At the signal', time = 'Waits' }: HeadsProps): JSX.Element {
  return (
    <div class="heads tracks" aria-hidden="true">
      <span>{name}</span>
      <span class="line">
        <span class="block-head">In the section</span>
        <span>{beside}</span>
      </span>
      <span class="right">{time}</span>
      <span class="right">Token</span>
    </div>
  );
}

export function TrackRow({ of, cars = 1 }: { of: Resource; cars?: number }): JSX.Element | null {
  const { state, now } = store.snapshot;
  if (state === undefined) return null;
  const aspect = aspectOf(state, of, now);
  const oldest = longest(of);
  const waiting = of.waiting.slice(0, cars);
  const rest = of.waiting.length - waiting.length;
  return (
    <a class="row tracks" href={`#${routeOf(of.resource)}`} data-row={of.resource}>
      <span class="line">
        <SignalSign is={aspect} />
        <Name of={of.name} />
      </span>
      <span class="track line">
        <Block of={of} />
        {(of.waiting.length > 0 || of.holds.length === 0) && (
          <span class="signal">
            <SignalSign is={of.holds.length === 0 ? 'clear' : 'danger'} size={14} label="" />
          </span>
        )}
        {waiting.map(({ holder, since }, place) => (
          <span class={`car cut soft small ${place === 0 ? 'first' : ''}`} key={`${holder} ${since}`}>
            <Name of={holder} />
          </span>
        ))}
        {rest > 0 && <span class="beyond soft small">+{count(rest)}</span>}
      </span>
      <LongestWait of={oldest} isLong={aspect === 'caution'} />
      <span class="right mono faint spare">{of.token === 0 ? '' : count(of.token)}</span>
    </a>
  );
}

function Block({ of }: { of: Resource }): JSX.Element {
  const [hold, ...others] = of.holds;
  if (hold === undefined) return <span class="block line free">free</span>;
  const kind = lostHolds(of).length > 0 ? 'lost' : hold.mode === 'shared' ? 'shared' : '';
  return (
    <span class={`block line ${kind}`}>
      <Name of={hold.holder} />
      {others.length > 0 && <span class="soft">+{count(others.length)}</span>}
      <Since at={hold.acquiredAt} />
    </span>
  );
}

/** Shows the longest wait in a queue. */
export function LongestWait({ of, isLong }: { of: Waiter | undefined; isLong: boolean }): JSX.Element {
  if (of === undefined) return <span class="right faint">–</span>;
  return <Since at={of.since} class={`right ${isLong ? 'amber strong' : ''}`} />;
}
