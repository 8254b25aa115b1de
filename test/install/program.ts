// A program of a user, in strict TypeScript: it is only checked.
import { Failure, type Hold, NotAcquired, open, type Signalbox } from 'signalbox';
import { durationMs } from 'signalbox/core';
import { openEmbedded, type Store } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';

export async function deploy(box: Signalbox): Promise<number> {
  try {
    return await box.lock('deploy').run((hold: Hold) => hold.token, { waitMs: 1000 });
  } catch (error) {
    if (error instanceof NotAcquired) return error.refusal.kind.length;
    throw Failure.is(error, 'unavailable') ? new Error(error.message) : error;
  }
}

export async function coordinate(): Promise<void> {
  await using box = await open('memory:', { clock: new TestClock() });
  const store: Store = await openEmbedded('store');
  await store.close();
  await deploy(box);
}

export const minute: number | undefined = durationMs('1m');
