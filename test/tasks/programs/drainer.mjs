// @ts-check
// node drainer.mjs STORE NAME: does one task after another until there is none for a while. Tells its parent of each one
// that the store has confirmed to be complete, and of each that it lost: on a busy machine a lease may end before its time.

import { NotAcquired, open } from 'signalbox';

const [url = '', name = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 2_000, requestTimeoutMs: 20_000 });
process.send?.({ ready: true });

for (;;) {
  try {
    const claim = await box.tasks.claimNext({ holder: name, waitMs: 6_000 });
    // Something takes place between claiming and completing, so that it is here that many are killed.
    await new Promise(setImmediate);
    const { kind } = await claim.complete({ by: name, token: claim.token });
    process.send?.(kind === 'completed' ? { completed: claim.id } : { lost: true });
  } catch (error) {
    if (!(error instanceof NotAcquired)) throw error;
    if (error.refusal.kind === 'timed-out') break;
    process.send?.({ lost: true });
  }
}
await box.close();
process.disconnect();
