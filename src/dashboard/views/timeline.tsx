/** What happened, the newest first, and the record that vouches for it. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import type { Loaded } from '../live/store.ts';
import { rebuilt } from '../live/travel.ts';
import { routeOf } from '../model/needs.ts';
import { items, object } from '../model/read.ts';
import { kindAndName, shortened } from '../model/text.ts';
import { clock, count, plural } from '../model/time.ts';
import {
  EVENT_KINDS,
  newerThan,
  type Recorded,
  saidOf,
  standingOf,
  timelineOf,
  type Verified,
} from '../model/timeline.ts';
import type { Happening, Trouble } from '../model/types.ts';
import { address, store } from '../ui/app.ts';
import { WindowedList } from '../ui/list.tsx';
import { Choices, FilterField, ListHead } from '../ui/list-parts.tsx';
import { Button, At, CommandLine, Name, Nothing, Panel } from '../ui/parts.tsx';
import { useAnswer, useFollowing, useRecorded } from '../ui/reading.ts';
import { SignalSign } from '../ui/signs.tsx';
import { LookBack } from './look-back.tsx';
import { Traffic } from './overview.tsx';

const KINDS: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ...EVENT_KINDS.map((kind) => [kind, `${kind[0]?.toUpperCase()}${kind.slice(1)}s`] as const),
];
const MOST_RECORDED = 12;

export function Timeline({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, now, route } = snapshot;
  const past = useAnswer('/v1/history');
  const { resource = '', holder = '', kind = '' } = route.filters;
  const key = `${resource}\n${holder}\n${kind}\n${past === undefined}\n${snapshot.past?.at}\n${snapshot.past?.is}`;
  const kept = useRef<{ key: string; rows: readonly Happening[] }>({ key: '', rows: [] });
  // The store may remember later events than the time that is shown.
  const older = rebuilt(snapshot.past) === undefined ? (items(object(past)['events']) as readonly Happening[]) : [];
  const all = timelineOf(state.entries, older, { resource, holder, kind });
  // Rows do not move while the reader has scrolled or points at one.
  const isRead =
    (document.getElementById('main')?.scrollTop ?? 0) > 0 ||
    document.querySelector('main a[data-row]:hover, main a[data-row]:focus-visible') !== null;
  if (!isRead || kept.current.key !== key || kept.current.rows.length === 0) kept.current = { key, rows: all };
  const { rows } = kept.current;
  const newer = newerThan(rows, all);
  const showNewer = (): void => {
    kept.current = { key, rows: all };
    document.getElementById('main')?.scrollTo(0, 0);
    address.filter({});
  };
  const isFiltered = resource !== '' || holder !== '' || kind !== '';
  return (
    <>
      <ListHead title="Timeline">the newest first, at most 500</ListHead>
      <LookBack snapshot={snapshot} />
      <div class="tools line">
        <FilterField by="resource" hint="Resource (F)" name="resource" now={resource} />
        <FilterField by="holder" hint="Holder" name="holder" now={holder} isFirst={false} />
        <Choices of={KINDS} now={kind} filter="kind" />
      </div>
      <div class="grid">
        <Panel
          class="w8"
          title="Events"
          aside={`${count(rows.length)} shown`}
          more={
            newer > 0 && (
              <Button class="small newer" onClick={showNewer}>
                {count(newer)} newer
              </Button>
            )
          }
        >
          <WindowedList
            rows={rows}
            heights={[36, 56]}
            keyOf={({ id }: Happening) => id}
            draw={(one: Happening) => <EventRow of={one} />}
            label="Events"
          />
          {rows.length === 0 &&
            (isFiltered ? (
              <p class="inside soft">
                No event {kind !== '' && `of a ${shortened(kind, 60)} `}
                {resource !== '' && `of “${shortened(resource, 60)}” `}
                {holder !== '' && `by “${shortened(holder, 60)}” `}is remembered.{' '}
                <Button onClick={() => address.filter({ resource: '', holder: '', kind: '' })}>Show all</Button>
              </p>
            ) : rebuilt(snapshot.past) !== undefined ? (
              <p class="inside soft">
                {snapshot.past?.is === 'reading' ? 'The record is being read.' : 'Nothing is recorded up to this time.'}
              </p>
            ) : (
              <Nothing title="Nothing has happened yet" command="signalbox run --lock main-branch -- sleep 60">
                Every grant, wait and release is listed here as it happens. Make the first:
              </Nothing>
            ))}
        </Panel>
        <div class="w4 stack">
          <Traffic state={state} now={now} />
          <Record now={now} troubles={state.troubles} />
        </div>
      </div>
    </>
  );
}

function EventRow({ of }: { of: Happening }): JSX.Element {
  const { sign, words, tail } = saidOf(of);
  const [kind, name] = kindAndName(of.resource);
  // A member that joins or leaves is both actor and resource.
  const isOfItself = kind === 'member' && name === of.holder;
  const inside = (
    <>
      <At at={of.at} class="faint" />
      <SignalSign is={sign} label="" />
      <span class="said">
        <span>
          {of.holder !== '' && <Name of={of.holder} />}
          <span class="soft">{words}</span>
        </span>
        <span>
          {!isOfItself && <Name of={name} kind={kind} />}
          {tail !== '' && <bdi class="faint cut">{shortened(tail, 160)}</bdi>}
        </span>
      </span>
    </>
  );
  // Only things with a page of their own become links.
  return EVENT_KINDS.includes(kind as 'lock') ? (
    <a class="row events" href={`#${routeOf(of.resource)}`} data-row={of.resource}>
      {inside}
    </a>
  ) : (
    <div class="row events">{inside}</div>
  );
}

function Record({ now, troubles }: { now: number; troubles: readonly Trouble[] }): JSX.Element {
  const [witness, setWitness] = useState<Readonly<Record<string, unknown>>>({});
  // Always of now, even while an earlier time is shown.
  useFollowing(String(store.state?.revision), async (over) => setWitness(object(await get('/v1/witness', over))));
  const isOn = witness['isOn'] === true;
  const known = useRecorded(isOn, MOST_RECORDED);
  return (
    <Panel
      title="Record"
      aside={isOn ? plural(Number(object(witness['size'])['entries'] ?? 0), 'entry', 'entries') : ''}
    >
      {troubles
        .filter(({ kind }) => kind === 'damaged')
        .map(({ key, subject, says }) => (
          <p class="note line soft record" key={key}>
            <SignalSign is="danger" label="" />
            <bdi class="grow">{shortened(subject + says, 400)}</bdi>
          </p>
        ))}
      {isOn && <RecordOn now={now} known={known} />}
      {witness['isOn'] === false && (
        <div class="inside soft">
          The witness of this store is off, so there is no record of its changes. The operator of this server can switch
          it on: stop every process that uses the store, then start the server again with ?witness=on at the end of the
          URL of its store, which it prints when it starts.
          <CommandLine>{"signalbox serve --store 'URL?witness=on'"}</CommandLine>
        </div>
      )}
    </Panel>
  );
}

function RecordOn({ now, known }: { now: number; known: readonly Recorded[] }): JSX.Element {
  const [verified, setVerified] = useState<Verified>();
  const [state, setState] = useState<'idle' | 'busy' | { readonly failed: string }>('idle');
  const verify = (): void => {
    if (state === 'busy') return;
    setState('busy');
    verificationOf(known).then(
      (found) => {
        setVerified({ ...found, at: now });
        setState('idle');
      },
      (error: unknown) => setState({ failed: (error as Error).message }),
    );
  };
  const finding = verified?.finding;
  return (
    <>
      <div class="note line soft record">
        <SignalSign is={verified === undefined ? 'unknown' : finding === undefined ? 'clear' : 'danger'} label="" />
        <span class="grow" role="status">
          {typeof state === 'object'
            ? `Could not be verified: ${shortened(state.failed, 200)}`
            : verified === undefined
              ? 'Not verified since this page was opened'
              : finding === undefined
                ? `${plural(verified.entries, 'entry verifies', 'entries verify')} in ${plural(verified.chains, 'chain')}, ${plural(verified.checkpoints, 'checkpoint')}, at ${clock(verified.at)}`
                : `Does not verify: ${shortened(finding.why, 300)}`}
        </span>
        <button type="button" class="button small" aria-disabled={state === 'busy'} onClick={verify}>
          {state === 'busy' ? 'Verifying' : 'Verify'}
        </button>
      </div>
      {known.map((one) => (
        <RecordedRow key={`${one.seq} ${one.resource}`} of={one} standing={standingOf(one, verified)} />
      ))}
    </>
  );
}

/**
 * Verifies the record. The server may answer with a verification that began before the request: then nobody knows which
 * entries it has read.
 */
async function verificationOf(known: readonly Recorded[]): Promise<Omit<Verified, 'at'>> {
  // No known entry was written after this revision.
  const { revision } = object(await get('/v1/witness/entries?limit=1'));
  const found = (await get('/v1/witness/verify')) as Omit<Verified, 'at' | 'covered'> & { readonly revision: number };
  return { ...found, covered: found.revision >= Number(revision) ? known : [] };
}

const STANDING = { clear: 'verified', danger: 'does not verify', unknown: 'not verified' } as const;

function RecordedRow({ of, standing }: { of: Recorded; standing: keyof typeof STANDING }): JSX.Element {
  return (
    <div class="row recorded" title={shortened(of.resource, 300)}>
      <At at={of.time} class="faint" />
      <Name of={kindAndName(of.resource)[1]} />
      <span class="right faint num">{count(of.seq)}</span>
      <code class="faint" title={of.hash}>
        {of.hash.slice(0, 6)}
      </code>
      <SignalSign is={standing} label={STANDING[standing]} />
    </div>
  );
}
