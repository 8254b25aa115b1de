/** One lock: its holders, its queue, who waits for whom, and its history. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { unused } from '../model/apply.ts';
import { historyOf } from '../model/history.ts';
import { aspectOf, lostHolds } from '../model/needs.ts';
import { shortened } from '../model/text.ts';
import { count, duration, HOUR_MS, plural, span } from '../model/time.ts';
import type { Hold, Resource, State } from '../model/types.ts';
import { graphOf } from '../model/waits.ts';
import { HoldHistory } from '../ui/hold-history.tsx';
import { At, CommandLine, Facts, Name, Note, Panel, Since } from '../ui/parts.tsx';
import { usePast } from '../ui/past.ts';
import { ResourceHead, useSight } from '../ui/resource-head.tsx';
import { TallSignal } from '../ui/signs.tsx';
import { WaitGraph } from '../ui/wait-graph.tsx';

export function OneLock({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state, now } = snapshot;
  const resource = `lock/${name}`;
  useSight(resource);
  const past = usePast(state, resource, now);
  const of = state.resources.get(resource) ?? unused('lock', name);
  const history = historyOf(past, now - HOUR_MS, now, of.holds);
  const from = Math.max(now - HOUR_MS, (history.holds[0]?.from ?? now - 60_000) - 5_000);
  const ended = history.holds.filter(({ to }) => to !== undefined).length;
  const isLost = lostHolds(of).length > 0;
  const word = isLost ? 'Lost, waits for you' : of.holds.length === 0 ? 'Free' : `Held, ${of.holds[0]?.mode ?? ''}`;
  return (
    <>
      <ResourceHead
        of={of}
        snapshot={snapshot}
        says={<span class={isLost ? 'red strong' : ''}>{word}</span>}
        breaks={{ label: 'Break lock…', nobody: 'Nobody holds it' }}
      />
      <div class="grid">
        <Section of={of} state={state} now={now} median={history.median} />
        <HoldFacts of={of} now={now} />
        <Queue of={of} />
        <Panel
          class="w7 tall"
          title="Who waits for whom"
          aside={of.waiting.length === 0 ? 'nobody waits' : 'read along the arrows'}
        >
          {of.waiting.length === 0 && of.holds.length === 0 ? (
            <p class="inside soft">Nobody holds it and nobody waits.</p>
          ) : (
            <WaitGraph graph={graphOf(state, of)} />
          )}
        </Panel>
        <Panel
          title="History"
          aside={`last ${duration(now - from)} · ${plural(ended, 'hold')} ended${history.median === undefined ? '' : ` · median ${span(history.median)} · longest ${span(history.longest ?? 0)}`}`}
        >
          <div class="inside">
            {history.holds.length === 0 ? (
              <p class="soft">Nothing in the last hour, or the store has forgotten it.</p>
            ) : (
              <HoldHistory history={history} from={from} now={now} queued={of.waiting.length} />
            )}
          </div>
        </Panel>
      </div>
    </>
  );
}

/** The part of the lease that is left, ticking between two reads. */
export function leaseLeft({ lease }: Hold, now: number): { readonly part: number; readonly ms: number } | undefined {
  if (lease === null) return undefined;
  const ms = Math.max(0, lease.remainingMs - (now - lease.readAt));
  return { ms, part: lease.ttlMs === 0 ? 0 : Math.min(1, ms / lease.ttlMs) };
}

interface SectionProps {
  readonly of: Resource;
  readonly state: State;
  readonly now: number;
  readonly median: number | undefined;
}

function Section({ of, state, now, median }: SectionProps): JSX.Element {
  const [hold, ...others] = of.holds;
  const isLost = lostHolds(of).length > 0;
  const look = hold === undefined ? 'free' : isLost ? 'lost' : hold.mode === 'shared' ? 'shared' : '';
  const left = hold === undefined ? undefined : leaseLeft(hold, now);
  const shown = of.waiting.slice(0, 3);
  const rest = of.waiting.length - shown.length;
  return (
    <Panel class="w8 tall" title="The section" aside="granted in this order">
      <div class="section-box">
        <div class="section">
          <div class={`big ${look}`}>
            <div class="who">
              <span class="cut">
                {hold === undefined ? <span class="faint">free</span> : <Name of={hold.holder} />}
                {others.length > 0 && <span class="soft"> +{count(others.length)}</span>}
              </span>
              {hold !== undefined && <Since at={hold.acquiredAt} />}
            </div>
            {hold !== undefined && (
              <div>
                <div class="line soft small lease-line">
                  <span>lease</span>
                  <span class="num">
                    {hold.isStale ? 'ended' : left === undefined ? 'renewed' : `${duration(left.ms)} left`}
                  </span>
                </div>
                <div class="lease">
                  <i style={{ width: `${hold.isStale ? 0 : (left?.part ?? 1) * 100}%` }} />
                </div>
              </div>
            )}
          </div>
          <div class="post">
            <TallSignal isClear={hold === undefined} />
          </div>
          {shown.map(({ holder, since }, place) => (
            <div class={`wagon small spare ${place === 0 ? 'first' : ''}`} key={`${holder} ${since}`}>
              <Name of={holder} class="middling" />
              <Since at={since} class="soft" />
            </div>
          ))}
          {rest > 0 && (
            <div class="wagon small soft spare beyond">
              <span class="middling">+{count(rest)}</span>
              <span>more</span>
            </div>
          )}
          {of.waiting.length > 0 && <span class="narrow-only">{count(of.waiting.length)} waiting</span>}
        </div>
      </div>
      <Why of={of} state={state} now={now} median={median} />
    </Panel>
  );
}

function Why({ of, state, now, median }: SectionProps): JSX.Element {
  const [hold] = of.holds;
  const aspect = aspectOf(state, of, now);
  if (hold === undefined) {
    return (
      <Note sign="clear">
        Free. The next to ask gets it with a token above <b>{count(of.token)}</b>.
      </Note>
    );
  }
  if (aspect === 'danger') {
    return (
      <Note sign="danger">
        The lease ended and this lock is set to <b>alert</b>: it changes hands only when an administrator breaks it.
      </Note>
    );
  }
  const { root } = graphOf(state, of);
  const times = median === undefined || median < 1 ? undefined : (now - hold.acquiredAt) / median;
  return (
    <Note sign={aspect === 'caution' ? 'caution' : 'held'}>
      {root === undefined ? (
        'Nobody waits.'
      ) : (
        <>
          Everyone here waits, in the end, for{' '}
          <b>
            <bdi>{shortened(root, 80)}</bdi>
          </b>
          .
        </>
      )}
      {median !== undefined && ` The median hold of this lock is ${span(median)}`}
      {times !== undefined && times >= 2 && `; this one is ${times < 10 ? times.toFixed(1) : count(times)}× that`}
      {median !== undefined && '.'}
    </Note>
  );
}

function HoldFacts({ of, now }: { of: Resource; now: number }): JSX.Element {
  const [hold] = of.holds;
  if (hold === undefined) {
    return (
      <Panel class="w4 tall" title="This hold">
        <div class="inside">
          <p class="soft">Nobody holds it. Hold it while a command runs:</p>
          <CommandLine>{`signalbox run --lock ${shellWord(of.name)} -- sleep 60`}</CommandLine>
        </div>
      </Panel>
    );
  }
  const used =
    hold.maxHoldMs === null
      ? ''
      : `, ${Math.min(999, Math.round(((now - hold.acquiredAt) / hold.maxHoldMs) * 100))}% used`;
  const { session } = hold;
  const place = session === null ? '' : [session.user, session.host].filter((one) => one !== null).join('@');
  const pid = typeof session?.pid === 'number' ? `, pid ${session.pid}` : '';
  return (
    <Panel
      class="w4 tall"
      title="This hold"
      aside={of.holds.length > 1 ? `the first of ${count(of.holds.length)} readers` : undefined}
    >
      <Facts
        of={[
          ['Token', count(hold.token), 'mono'],
          ['Acquired', <At at={hold.acquiredAt} />],
          ['Health', hold.health],
          ['Max hold', hold.maxHoldMs === null ? 'no limit' : `${duration(hold.maxHoldMs)}${used}`],
          ['When stale', of.onStale],
          place !== '' && ['Where', shortened(`${place}${pid}`, 120)],
          typeof session?.directory === 'string' && ['Directory', shortened(session.directory, 200)],
          ['Reason', hold.reason === null ? '–' : shortened(hold.reason, 400), 'whole'],
          hold.metadata !== null && ['Metadata', shortened(JSON.stringify(hold.metadata), 2000), 'whole'],
        ]}
      />
    </Panel>
  );
}

const MOST_IN_QUEUE = 200;

function Queue({ of }: { of: Resource }): JSX.Element {
  return (
    <Panel
      class="w5 tall"
      title="Queue"
      aside={of.waiting.length === 0 ? 'empty' : `${count(of.waiting.length)}, by priority and arrival`}
    >
      {of.waiting.length === 0 ? (
        <p class="inside soft">Nobody stands at the signal.</p>
      ) : (
        <>
          <div class="heads queue">
            <span>#</span>
            <span>Holder</span>
            <span class="right spare">Priority</span>
            <span class="right spare">Mode</span>
            <span class="right">Waits</span>
          </div>
          {of.waiting.slice(0, MOST_IN_QUEUE).map(({ holder, priority, mode, since, reason }, place) => (
            <div
              class="row queue"
              key={`${holder} ${since}`}
              title={reason === null ? undefined : shortened(reason, 400)}
            >
              <span class="faint">{place + 1}</span>
              <Name of={holder} class="middling" />
              <span class={`right spare ${priority === 0 ? 'faint' : 'strong'}`}>{priority}</span>
              <span class="right spare soft">{mode === 'shared' ? 'shared' : 'excl.'}</span>
              <Since at={since} class="right" />
            </div>
          ))}
          {of.waiting.length > MOST_IN_QUEUE && <p class="foot">and {count(of.waiting.length - MOST_IN_QUEUE)} more</p>}
        </>
      )}
    </Panel>
  );
}

/** Quotes a text so that a shell takes it for one word. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
