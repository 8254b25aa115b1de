/** The dashboard: everything in the store, live, in a browser. */
import { render, type JSX } from 'preact';
import type { Loaded, Snapshot } from './live/store.ts';
import { connection, setTheme, useSnapshot } from './ui/app.ts';
import { listenToKeys } from './ui/keyboard.ts';
import { Overlays } from './ui/overlay.tsx';
import { Blank } from './ui/parts.tsx';
import { NoAnswer, Shell } from './ui/shell.tsx';
import { ROUTES } from './views/index.tsx';
import { SignIn } from './views/sign-in.tsx';

function Page(): JSX.Element {
  const snapshot = useSnapshot();
  return (
    <>
      <Shell snapshot={snapshot}>
        <Content snapshot={snapshot} />
      </Shell>
      <Overlays snapshot={snapshot} />
    </>
  );
}

function Content({ snapshot }: { snapshot: Snapshot }): JSX.Element {
  const { link, route } = snapshot;
  if (link.kind === 'refused') return <SignIn why={link.why} />;
  if (link.kind === 'failed') return <NoAnswer />;
  const { list: List, one: One } = ROUTES[route.view];
  document.title = route.name === undefined ? `${route.view} · signalbox` : `${route.name.slice(0, 80)} · signalbox`;
  if (!isLoaded(snapshot)) return <Blank />;
  if (route.name !== undefined && One !== undefined)
    return <One key={route.name} snapshot={snapshot} name={route.name} />;
  return <List snapshot={snapshot} />;
}

function isLoaded(snapshot: Snapshot): snapshot is Loaded {
  return snapshot.state !== undefined;
}

const root = document.getElementById('page');
if (root !== null) {
  setTheme();
  render(<Page />, root);
  listenToKeys();
  connection.start();
}
