// @ts-check
// node claimer.mjs STORE NAME CLAIMERS: claims every task that it is told of, with so many claimers at once, and tells its
// parent what became of it. Whoever wins completes the task.

import { open } from 'signalbox';

const [url = '', name = '', claimers = '1'] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 10_000, requestTimeoutMs: 20_000, maintains: false });

await box.tasks.subscribe(async (notice) => {
  if (notice.why !== 'published') return;
  const { id } = notice.task;
  const answers = await Promise.all(
    Array.from({ length: Number(claimers) }, (_, n) => box.tasks.tryClaim(id, { holder: `${name}.${n}` })),
  );
  for (const answer of answers) {
    if (answer.kind === 'claimed') await answer.claim.complete(answer.claim.holder);
  }
  const told = answers.map((answer) =>
    answer.kind === 'claimed' ? { kind: answer.kind, owner: answer.claim.holder } : answer,
  );
  process.send?.({ id, answers: told });
});
// A first session, so that the first round is like the others.
await box.semaphore('unused').tryAcquire();
process.send?.({ ready: true });
process.on('disconnect', () => void box.close().then(() => process.exit(0)));
