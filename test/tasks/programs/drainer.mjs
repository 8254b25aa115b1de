// @ts-check
// node drainer.mjs STORE NAME: does one task after another until its parent says that it is enough. Tells it of each one
// that the store has confirmed to be complete, and of each that it lost: on a busy machine a lease may end before its time.

import { NotAcquired, open } from 'signalbox';

const [url = '', name = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 4_000, requestTimeoutMs: 60_000 });
const enough = new AbortController();
process.on('message', () => enough.abort());
process.send?.({ ready: true });

while (!enough.signal.aborted) {
  try {
    const claim = await box.tasks.claimNext({ holder: name, signal: enough.signal });
    // Something takes place between claiming and completing, so that it is here that many are killed.
    await new Promise(setImmediate);
    const { kind } = await claim.complete({ by: name, token: claim.token });
    process.send?.(kind === 'completed' ? { completed: claim.id } : { lost: true });
  } catch (error) {
    if (!(error instanceof NotAcquired)) throw error;
    if (error.refusal.kind !== 'aborted') process.send?.({ lost: true });
  }
}
await box.close();
process.disconnect();
