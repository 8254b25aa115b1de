// @ts-check
// node claimer.mjs STORE NAME: claims every task that it is told of, with as many claimers at once as the task says, and
// tells its parent what became of it. The claimer that wins completes the task.

import { open } from 'signalbox';

const [url = '', name = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 10_000, requestTimeoutMs: 20_000, maintains: false });

await box.tasks.subscribe(async (notice) => {
  if (notice.why !== 'published') return;
  const { id, data } = notice.task;
  const answers = await Promise.all(
    Array.from({ length: Number(data) }, (_, n) => box.tasks.tryClaim(id, { holder: `${name}.${n}` })),
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
