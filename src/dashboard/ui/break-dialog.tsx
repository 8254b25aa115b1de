/**
 * Asks before a lock or semaphore is broken: who loses what, who gets it with which token. The request carries the
 * token of the moment when the dialog opened, so that a hold that was granted since then stays.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Snapshot } from '../live/store.ts';
import { hasChangedHands, ifItChanges, newestToken, willBreak } from '../model/breaking.ts';
import { routeOf } from '../model/needs.ts';
import { unused } from '../model/apply.ts';
import type { Resource } from '../model/types.ts';
import type { AskedDeed } from './app.ts';
import { DeedDialog } from './deed-dialog.tsx';

export function BreakDialog({ snapshot, resource }: { snapshot: Snapshot; resource: string }): JSX.Element {
  const [deed] = useState(() => breaking(snapshot, resource));
  return <DeedDialog snapshot={snapshot} deed={deed} />;
}

function breaking(opened: Snapshot, resource: string): AskedDeed {
  const slash = resource.indexOf('/');
  const kind = resource.startsWith('lock/') ? 'lock' : 'semaphore';
  const now = ({ state }: Snapshot): Resource =>
    state?.resources.get(resource) ?? unused(kind, resource.slice(slash + 1));
  const meant = newestToken(now(opened));
  return {
    title: `Break ${resource}?`,
    will: (snapshot) => willBreak(now(snapshot), meant, snapshot.now),
    changed: (snapshot) => hasChangedHands(now(snapshot), meant),
    token: { meant, note: ifItChanges(now(opened)) },
    ...{ role: 'administrator', method: 'POST', path: `/v1${routeOf(resource)}/break`, body: { token: meant } },
    ...{ reason: 'reason', label: `Break token ${meant}`, keep: 'Keep it', done: `${resource} was broken` },
  };
}
