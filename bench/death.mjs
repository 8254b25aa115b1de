/** How long does a lock stay taken after its holder was killed without warning, when another process waits for it? */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machine } from './measure/machine.mjs';
import { quantile } from './measure/rounds.mjs';

const KILLS = 30;
const WAITERS = [1, 8];
const program = fileURLToPath(new URL('measure/waiter.mjs', import.meta.url));

console.log(machine());
for (const waiters of WAITERS) await row(waiters);

async function row(waiters) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const queue = [];
  const takes = [];
  try {
    let holder = await wanting(directory, 'let in');
    for (let kill = 0; kill < KILLS; kill++) {
      while (queue.length < waiters) queue.push(await wanting(directory, 'waiting'));
      // First come, first served.
      const next = queue.shift();
      const letIn = message(next, 'let in');
      const killedAt = Number(process.hrtime.bigint());
      holder.kill('SIGKILL');
      takes.push(((await letIn).at - killedAt) / 1e6);
      holder = next;
    }
    queue.push(holder);
  } finally {
    for (const each of queue) await killed(each);
    rmSync(directory, { recursive: true });
  }
  const [p50, most] = [quantile(takes, 0.5), quantile(takes, 1)];
  console.log(
    `from kill -9 of the holder to the next one of ${waiters} running, ms, ${KILLS} kills:`.padEnd(72) +
      ` p50 ${p50.toFixed(1)}, longest ${most.toFixed(1)} (goal: within 250)`,
  );
}

/** A process that wants the lock, and has come as far as this. */
async function wanting(directory, stage) {
  const child = fork(program, [`file:${join(directory, 'store')}`]);
  await message(child, stage);
  return child;
}

/** Waits for it, but not for ever. */
async function message(child, kind) {
  const signal = AbortSignal.timeout(60_000);
  for (;;) {
    const [said] = await once(child, 'message', { signal });
    if (said.kind === kind) return said;
  }
}

async function killed(child) {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
