/**
 * A re-entry rests on its outer hold. If that one is another process's, nobody writes to us when it ends: so its
 * record is followed for as long as the re-entry lasts.
 */
import type { Hold } from '../core/index.ts';
import type { KeyValue, ReadResult } from '../store/index.ts';
import { follow } from './follow.ts';
import { holdsOf } from './held-records.ts';
import { anchorKey } from './layout.ts';
import type { Held } from './holdings.ts';
import type { Runtime } from './runtime.ts';
import { readEach } from './stored.ts';

const RETRY_MS = 500;

export function followOuter(runtime: Runtime, recordKey: string, outer: Hold, inner: Held, signal: AbortSignal): void {
  const { store, clock } = runtime;
  const seen = (pair: KeyValue | undefined): void => {
    // A record that cannot be read proves nothing, so the hold does not count as there any more.
    const holds = pair === undefined ? [] : readEach([pair], holdsOf).flat();
    if (!holds.some(({ id }) => id === outer.id)) inner.lose({ why: 'released-elsewhere' });
  };
  const look = async (): Promise<number> => {
    const result = await store.transaction({ compare: [], success: [{ do: 'read', key: recordKey }], failure: [] });
    seen((result.results[0] as ReadResult).pairs[0]);
    return result.revision;
  };
  const record = {
    changes: ({ changes }: { changes: readonly { kind: string; pair?: KeyValue }[] }) => seen(changes.at(-1)?.pair),
    resync: look,
  };
  // Where the outer one dies, its lease says so first.
  const lease = {
    changes: ({ changes }: { changes: readonly { kind: string }[] }) => {
      if (changes.at(-1)?.kind === 'delete') inner.lose({ why: 'expired' });
    },
    resync: look,
  };
  const begin = (): void => {
    if (signal.aborted || runtime.session === undefined) return;
    Promise.all([
      follow(store, clock, { key: recordKey }, record, signal),
      follow(store, clock, { key: anchorKey(outer.lease) }, lease, signal),
    ])
      .then(look)
      // Our own session tells if the store stays out of reach.
      .catch(() => clock.timer(RETRY_MS, begin));
  };
  begin();
}
