/** All locks: a map with a cell for each, and a list of any length. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { rebuilt } from '../live/travel.ts';
import { countsOf, type Filter, matching, type Order } from '../model/rows.ts';
import { count, plural } from '../model/time.ts';
import type { Resource } from '../model/types.ts';
import { connection } from '../ui/app.ts';
import { BlockMap, MapLegend } from '../ui/block-map.tsx';
import { useNarrow, WindowedList } from '../ui/list.tsx';
import { Choices, FilterField, ListHead, NoneFits } from '../ui/list-parts.tsx';
import { Nothing, Panel } from '../ui/parts.tsx';
import { useSteadyOrder } from '../ui/steady.ts';
import { TrackHeads, TrackRow } from '../ui/track.tsx';
import { useGitHub } from '../ui/github.ts';
import { LockedIssues } from './github.tsx';

const ORDERS: readonly (readonly [Order, string])[] = [
  ['need', 'Needs you first'],
  ['name', 'Name'],
  ['held', 'Longest held'],
];
const STATES: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ['held', 'Held'],
  ['queue', 'With a queue'],
  ['free', 'Free'],
  ['lost', 'Lost'],
];
const PLACES: readonly (readonly [string, string])[] = [
  ['', 'Everywhere'],
  ['store', 'In the store'],
  ['github', 'On GitHub'],
];
/** With fewer locks than this, the list is map enough. */
const MAP_FROM = 60;

export function Locks({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, route } = snapshot;
  const isNarrow = useNarrow();
  const { q = '', is = '', sort = 'need', where = '' } = route.filters;
  const [order] = ORDERS.find(([one]) => one === sort) ?? ['need'];
  const filter: Filter = { kind: 'lock', text: q, is };
  const rows = useSteadyOrder(snapshot, (of) => matching(of, filter), order, `${q} ${is}`);
  const github = useGitHub(snapshot);
  useEffect(() => () => connection.see([]), []);
  const { all, held, queued, lost } = countsOf(state, 'lock');
  const isFiltered = q !== '' || is !== '';
  // The record does not tell of locks on GitHub.
  const follows = github !== undefined && github.repository !== null && rebuilt(snapshot.past) === undefined;
  const isOnlyGitHub = follows && (where === 'github' || all === 0);
  return (
    <>
      <ListHead title="Locks" deeds={<Choices of={ORDERS} now={order} filter="sort" />}>
        {count(all)} · {count(held)} held · {count(queued)} with a queue
        {lost > 0 && <span class="red strong">· {count(lost)} lost</span>}
        {follows && <span>· {count(github.locks.length)} on GitHub</span>}
      </ListHead>
      {all >= MAP_FROM && !isOnlyGitHub && (
        <Panel title="Block map" aside="one cell per lock, in name order" more={<MapLegend />}>
          <div class="inside">
            <BlockMap state={state} />
          </div>
        </Panel>
      )}
      {(all > 0 || follows) && (
        <div class="tools line spaced">
          <FilterField by="name, holder or token" hint="Name, holder or token (F)" now={q} />
          <Choices of={STATES} now={is} filter="is" />
          {follows && all > 0 && <Choices of={PLACES} now={where} filter="where" />}
        </div>
      )}
      {follows && where !== 'store' && <LockedIssues of={github} filter={{ text: q, is }} isAlone={isOnlyGitHub} />}
      {isOnlyGitHub ? null : all === 0 ? (
        <Nothing in="Locks" title="No lock yet" command="signalbox run --lock main-branch -- sleep 60">
          A lock needs no set-up: the first request makes it, and it stays in this list for a while after its release.
          Hold one while a command runs:
        </Nothing>
      ) : (
        <section class="panel" aria-label="Locks">
          <TrackHeads />
          <WindowedList
            rows={rows}
            heights={[36, 72]}
            keyOf={(one: Resource) => one.resource}
            draw={(one: Resource) => <TrackRow of={one} cars={isNarrow ? 1 : 4} />}
            onSight={(some: readonly Resource[]) => connection.see(some.map(({ resource }) => resource))}
            label="Locks"
          />
          {rows.length === 0 && (
            <NoneFits
              of={plural(all, 'lock')}
              is={is === 'queue' ? 'waited for' : is}
              q={q}
              in="name, holders or tokens"
            />
          )}
          {isFiltered && rows.length > 0 && (
            <p class="foot">
              {count(rows.length)} of {plural(all, 'lock')} {rows.length === 1 ? 'matches' : 'match'}
            </p>
          )}
        </section>
      )}
    </>
  );
}
