/**
 * Asks before a lock or semaphore is broken: who loses what, who gets it with which token. The request carries the
 * token of the moment when the dialog opened, so that a hold that was granted since then stays.
 */
import type { Snapshot } from '../live/store.ts';
import { hasChangedHands, ifItChanges, newestToken, willBreak } from '../model/breaking.ts';
import { unused } from '../model/apply.ts';
import { kindAndName } from '../model/text.ts';
import type { Kind, Resource } from '../model/types.ts';
import { ask, store } from './app.ts';

export function askToBreak(resource: string): void {
  const [kind, name] = kindAndName(resource);
  const now = ({ state }: Snapshot): Resource => state?.resources.get(resource) ?? unused(kind as Kind, name);
  const opened = now(store.snapshot);
  const meant = newestToken(opened);
  ask({
    title: `Break ${resource}?`,
    will: (snapshot) => willBreak(now(snapshot), meant, snapshot.now),
    changed: (snapshot) => hasChangedHands(now(snapshot), meant),
    token: { meant, note: ifItChanges(opened) },
    ...{ resource, action: 'break', body: { token: meant }, needsReason: true },
    ...{ label: `Break token ${meant}`, keep: 'Keep it', done: `${resource} was broken` },
  });
}
