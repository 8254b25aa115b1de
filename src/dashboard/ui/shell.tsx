/** The frame around every view: top bar, strips, side line, tabs. */
import type { ComponentChildren, JSX } from 'preact';
import type { Snapshot } from '../live/store.ts';
import type { Link } from '../model/link.ts';
import type { Matter } from '../model/needs.ts';
import { rate } from '../model/rates.ts';
import type { View } from '../model/route.ts';
import { countsOf } from '../model/rows.ts';
import { visible } from '../model/text.ts';
import { clock, count, duration } from '../model/time.ts';
import { connection, currentTheme, matters, saidLast, setTheme, show, store } from './app.ts';
import { Button, CommandLine, Strip } from './parts.tsx';
import { PastStrip } from './past-strip.tsx';
import { Brand, SignalSign } from './signs.tsx';

interface Station {
  readonly view: View;
  readonly label: string;
  readonly count: (snapshot: Snapshot) => number | undefined;
  /** Another view that is reached from this one. */
  readonly also?: View;
  /** The routes of matters that belong to it begin with this. */
  readonly path: string;
}

const STATIONS: readonly Station[] = [
  { view: 'overview', label: 'Overview', path: '-', count: () => undefined },
  {
    ...{ view: 'locks', label: 'Locks', path: '/locks/', also: 'github' },
    count: ({ state }) => state && countsOf(state, 'lock').all,
  },
  {
    ...{ view: 'semaphores', label: 'Semaphores', path: '/semaphores/' },
    count: ({ state }) => state && countsOf(state, 'semaphore').all,
  },
  {
    ...{ view: 'tasks', label: 'Tasks', path: '/tasks/' },
    count: ({ state }) => state && Object.values(state.counts).reduce((sum, one) => sum + one, 0),
  },
  { view: 'pipelines', label: 'Pipelines', path: '/pipelines/', count: ({ state }) => state?.pipelines.size },
  { view: 'members', label: 'Members', path: '/members/', count: ({ state }) => state?.members.size },
  { view: 'timeline', label: 'Timeline', path: '/timeline', count: () => undefined },
  { view: 'charts', label: 'Charts', path: '/charts', count: () => undefined },
];

export function Shell({ snapshot, children }: { snapshot: Snapshot; children: ComponentChildren }): JSX.Element {
  const isFrozen = snapshot.link.kind === 'reconnecting';
  return (
    <div class={`frame ${isFrozen ? 'frozen' : ''}`}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the board
      </a>
      <TopBar snapshot={snapshot} />
      <div class="strips" role="status">
        <StateStrip snapshot={snapshot} />
      </div>
      <SideLine snapshot={snapshot} />
      <main class="main" id="main" tabIndex={-1}>
        {children}
      </main>
      <Tabs snapshot={snapshot} />
      <div class={saidLast().isShown ? 'toast' : 'unseen'} aria-live="polite">
        {visible(saidLast().what)}
      </div>
    </div>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function TopBar({ snapshot }: { snapshot: Snapshot }): JSX.Element {
  const { state } = snapshot;
  return (
    <header class="top line">
      <a class="brand line" href="#/overview">
        <Brand />
        signalbox
      </a>
      {state !== undefined && (
        <span class="chip line soft small spare">
          store <b class="cut">{state.store.name}</b>
        </span>
      )}
      <LiveChip snapshot={snapshot} />
      <button
        type="button"
        class="find line"
        aria-label="Find a lock, holder, token: search and commands"
        onClick={() => show({ kind: 'palette' })}
      >
        <svg
          width="15"
          height="15"
          viewBox="0 0 16 16"
          fill="none"
          stroke="currentColor"
          stroke-width="1.600"
          aria-hidden="true"
        >
          <circle cx="7" cy="7" r="4.500" />
          <path d="M10.500 10.500L14 14" />
        </svg>
        <span class="grow spare">Find a lock, holder, token</span>
        <kbd class="spare" aria-hidden="true">
          /
        </kbd>
      </button>
      <button
        type="button"
        class="icon"
        aria-label={currentTheme() === 'dark' ? 'Show light' : 'Show dark'}
        title="Dark or light (D)"
        onClick={() => toggleTheme()}
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.600" />
          <path d="M8 2a6 6 0 010 12z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}

export function toggleTheme(): void {
  setTheme(currentTheme() === 'dark' ? 'light' : 'dark');
  store.draw();
}

const LINK_WORDS: Readonly<Record<Link['kind'], string>> = {
  loading: 'loading',
  reconnecting: 'reconnecting',
  refused: 'signed out',
  failed: 'no answer',
  live: 'live',
};

function LiveChip({ snapshot: { state, link, now, past } }: { snapshot: Snapshot }): JSX.Element {
  const isLive = past === undefined && link.kind === 'live' && state !== undefined;
  const perSecond = isLive ? rate(state.slices, 'events', now) : 0;
  const isLost = past === undefined && link.kind === 'reconnecting';
  return (
    <span class="chip line soft small">
      <SignalSign is={isLive ? 'clear' : isLost ? 'caution' : 'unknown'} size={14} label="" />
      <b class="num">{past === undefined ? LINK_WORDS[link.kind] : `at ${clock(past.at)}`}</b>
      {isLive && <span class="num spare">{perSecond >= 10 ? count(perSecond) : perSecond.toFixed(1)} events/s</span>}
    </span>
  );
}

function StateStrip({ snapshot: { link, state, past } }: { snapshot: Snapshot }): JSX.Element | null {
  if (past !== undefined && link.kind !== 'refused') return <PastStrip past={past} />;
  if (link.kind === 'reconnecting') {
    return (
      <Strip look="waits" sign="caution" deed={<Button onClick={() => connection.start()}>Try now</Button>}>
        <b class="strong">Reconnecting.</b> The page shows how it was at {clock(link.heardAt)}; actions are off. It goes
        on from there as soon as the server answers.
      </Strip>
    );
  }
  if (link.kind !== 'failed' || state !== undefined) return null;
  return (
    <Strip look="fails" sign="danger">
      <b class="strong">The server does not answer</b>, for {duration(Date.now() - link.since)}: {link.why}
    </Strip>
  );
}

/** Shown while the server does not answer and nothing is known: what it means, and what to run. */
export function NoAnswer(): JSX.Element {
  return (
    <div class="first-run">
      <h1>No answer yet</h1>
      <p class="lead">
        Locks and waits go on without this page: it only shows them. Look whether the server still runs, and start it
        again:
      </p>
      <CommandLine>signalbox serve</CommandLine>
    </div>
  );
}

function alarmsOf(all: readonly Matter[], path: string): readonly Matter[] {
  return all.filter(({ leads }) => leads.startsWith(path));
}

function SideLine({ snapshot }: { snapshot: Snapshot }): JSX.Element {
  const { state, route } = snapshot;
  const all = matters(snapshot);
  return (
    <aside class="side">
      <nav aria-label="Views">
        {STATIONS.map(({ view, also, label, path, count: counted }) => {
          const number = counted(snapshot);
          const alarms = alarmsOf(all, path);
          const isMild = alarms.every(({ aspect }) => aspect === 'caution');
          return (
            <a
              key={view}
              class="station line"
              href={`#/${view}`}
              aria-current={route.view === view || route.view === also ? 'page' : undefined}
            >
              {label}
              {number !== undefined && <span class="count num faint small">{count(number)}</span>}
              {alarms.length > 0 && (
                <span class={`alarm line small ${isMild ? 'mild' : ''}`}>
                  <SignalSign is={isMild ? 'caution' : 'danger'} size={12} label="needs you:" />
                  {alarms.length}
                </span>
              )}
            </a>
          );
        })}
      </nav>
      <div class="where">
        {state !== undefined && (
          <dl>
            <dt>Engine</dt>
            <dd>{state.store.engine}</dd>
            <dt>Revision</dt>
            <dd class="num">{count(state.revision)}</dd>
            <dt>Role</dt>
            <dd>{state.token.role}</dd>
          </dl>
        )}
        <Button onClick={() => show({ kind: 'keys' })}>
          <kbd>?</kbd> keyboard
        </Button>
      </div>
    </aside>
  );
}

const TABS: readonly View[] = ['overview', 'locks', 'tasks', 'pipelines'];

function Tabs({ snapshot }: { snapshot: Snapshot }): JSX.Element {
  const { route } = snapshot;
  const all = matters(snapshot);
  return (
    <nav class="tabs" aria-label="Views, short">
      {STATIONS.filter(({ view }) => TABS.includes(view)).map(({ view, label }) => (
        <a key={view} href={`#/${view}`} aria-current={route.view === view ? 'page' : undefined}>
          {label}
          {view === 'overview' && all.length > 0 && <span class="alarm">{all.length}</span>}
        </a>
      ))}
      <button
        type="button"
        onClick={() => show({ kind: 'palette' })}
        aria-current={TABS.includes(route.view) ? undefined : 'true'}
      >
        More
      </button>
    </nav>
  );
}
