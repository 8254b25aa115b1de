/**
 * One process among those that want the same lock. The parent says which lock, for how long, how long to hold it and to
 * pause; at the end it gets the times of every turn: asked, let in, gave back. They are of the machine's own clock, which
 * all its processes share, in nanoseconds since it started; that fits into a number for a hundred days.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { contenders } from './contenders.mjs';

const WARM_UP_MS = 150;

const places = JSON.parse(process.argv[2]);
const opened = new Map();

process.on('message', (order) => void obey(order));
process.on('disconnect', () => process.exit());

async function obey(order) {
  if (order.kind === 'close') {
    for (const { close } of opened.values()) await close();
    process.exit();
  }
  if (order.kind === 'open') {
    const contender = await contenders[order.contender](places);
    opened.set(order.contender, contender);
    // The first turns of a process connect, enter a session, compile; they are not what is asked about here.
    for (const end = now() + WARM_UP_MS * 1e6; now() < end;) {
      const giveBack = await contender.take(`warm-up-${process.pid}`);
      await giveBack();
    }
    return process.send({ kind: 'ready' });
  }
  process.send(await takeTurns(opened.get(order.contender), order));
}

async function takeTurns({ take }, { name, until, holdMs, pauseMs }) {
  const turns = [];
  const deadline = new AbortController();
  const over = new Promise((resolve) => setTimeout(resolve, (until - now()) / 1e6, 'over'));
  void over.then(() => deadline.abort());
  let waitingSince;
  while (now() < until) {
    const asked = now();
    waitingSince = asked;
    const taking = take(name, deadline.signal).then(
      async (giveBack) => {
        const letIn = now();
        waitingSince = undefined;
        // A turn that is noticed after the end does not count.
        if (letIn > until) return giveBack();
        if (holdMs > 0) await sleep(holdMs);
        const gaveBack = now();
        turns.push([asked, letIn, gaveBack]);
        await giveBack();
      },
      (error) => {
        if (!deadline.signal.aborted) throw error;
      },
    );
    taking.catch(() => {});
    if ((await Promise.race([taking, over])) === 'over') break;
    if (pauseMs > 0) await sleep(pauseMs);
  }
  return { turns, waitingSince };
}

function now() {
  return Number(process.hrtime.bigint());
}
