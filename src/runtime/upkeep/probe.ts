/** Tries out whether a store works: writes a key, watches, reads and deletes it. No other process notices. */
import { Failure } from '../../failure.ts';
import { always, readRange } from '../../store/index.ts';
import { encode, PROBES } from '../layout.ts';
import type { Runtime } from '../runtime.ts';

/** How fast the store answers. */
export interface Probe {
  /** The time of one read. */
  readonly readMs: number;
  /** The time of one write. */
  readonly writeMs: number;
  /** From the write until the watch delivered it; undefined if it did not within two seconds. */
  readonly wakeMs: number | undefined;
}

/** The key is on a lease, so that it goes even if this process ends first. */
const LEASE_MS = 10_000;
const LONGEST_WAKE_MS = 2000;

export async function probed(watcher: Runtime, writer: Runtime): Promise<Probe> {
  watcher.refuseIfClosed();
  writer.refuseIfClosed();
  const { clock, store } = watcher;
  const key = PROBES + watcher.options.newId();
  const over = new AbortController();
  const since = (): (() => number) => {
    const begun = clock.monotonic();
    return () => clock.monotonic() - begun;
  };
  try {
    const watch = await store.watch({ key }, 'now', AbortSignal.any([over.signal, watcher.stopped]));
    const lease = await writer.store.grantLease(LEASE_MS, writer.stopped);
    const sinceWrite = since();
    const heard = firstOf(watch).then((came) => (came ? sinceWrite() : undefined));
    // If the write fails too, its error is thrown, and nothing awaits this one.
    heard.catch(() => undefined);
    const put = always([{ do: 'put', key, value: encode(null), lease: lease.id }]);
    await writer.store.transaction(put, writer.stopped);
    const writeMs = sinceWrite();
    const timer = clock.timer(LONGEST_WAKE_MS, () => over.abort());
    const wakeMs = await heard;
    timer.cancel();
    const sinceRead = since();
    const { count } = await readRange(store, { key }, watcher.stopped);
    const readMs = sinceRead();
    if (count !== 1)
      throw new Failure('corrupt', 'the store did not return the key that was just written to it; it cannot be used');
    await writer.store.revokeLease(lease.id, writer.stopped);
    return { readMs, writeMs, wakeMs };
  } finally {
    over.abort();
  }
}

async function firstOf(watch: AsyncIterable<unknown>): Promise<boolean> {
  for await (const _ of watch) return true;
  return false;
}
