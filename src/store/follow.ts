/** Follows a range of keys until a signal aborts: over broken connections, and past compacted history. */
import type { Clock } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { Changes, KeyRange, Revision, Store, WatchHint } from './contract.ts';

export interface Follower {
  /** Gets every change once, in order. Must neither throw nor wait. */
  changes(changes: Changes): void;
  /** Reads the range again after the history was compacted, and gives the revision of that read. */
  resync(): Promise<Revision>;
}

const RETRY_MS = 50;
const LONGEST_RETRY_MS = 2000;

/** Resolves with the revision after which no change will be missed. `from`: delivers what came after this revision too. */
export async function follow(
  store: Store,
  clock: Clock,
  range: KeyRange,
  follower: Follower,
  signal: AbortSignal,
  hint?: WatchHint,
  from: Revision | 'now' = 'now',
): Promise<Revision> {
  const first = await store.watch(range, from, signal, hint);
  const since = first.since;
  void keepFollowing(store, clock, range, follower, signal, first, hint);
  return since;
}

/** For a watch that listeners share: the first one starts it. If that fails, the next one tries again. */
export function startsOnce(start: () => Promise<unknown>): () => Promise<void> {
  let started: Promise<unknown> | undefined;
  return async () => {
    try {
      await (started ??= start());
    } catch (error) {
      started = undefined;
      throw error;
    }
  };
}

async function keepFollowing(
  store: Store,
  clock: Clock,
  range: KeyRange,
  follower: Follower,
  signal: AbortSignal,
  first: AsyncIterable<Changes> & { readonly since: Revision },
  hint: WatchHint | undefined,
): Promise<void> {
  let watch: AsyncIterable<Changes> = first;
  let delivered = first.since;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const changes of watch) {
        failures = 0;
        delivered = changes.revision;
        follower.changes(changes);
      }
    } catch (error) {
      if (Failure.is(error, 'closed')) return;
      if (Failure.is(error, 'compacted')) delivered = (await resynced(follower, clock, signal)) ?? delivered;
      failures += 1;
    }
    // Pauses before it opens a watch again that broke as soon as it was open.
    if (failures > 1) await pause(clock, failures, signal);
    // Continues after the last delivered revision. Any later revision would skip changes.
    for (;;) {
      if (signal.aborted) return;
      try {
        watch = await store.watch(range, delivered, signal, hint);
        break;
      } catch (error) {
        if (Failure.is(error, 'closed')) return;
        if (Failure.is(error, 'compacted')) delivered = (await resynced(follower, clock, signal)) ?? delivered;
        failures += 1;
        await pause(clock, failures, signal);
      }
    }
  }
}

async function resynced(follower: Follower, clock: Clock, signal: AbortSignal): Promise<Revision | undefined> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await follower.resync();
    } catch (error) {
      if (Failure.is(error, 'closed')) return undefined;
      await pause(clock, failures, signal);
    }
  }
  return undefined;
}

function pause(clock: Clock, failures: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      timer.cancel();
      resolve();
    };
    const timer = clock.timer(Math.min(RETRY_MS * 2 ** failures, LONGEST_RETRY_MS), () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
  });
}
