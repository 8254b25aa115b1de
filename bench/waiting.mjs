/** What do processes cost that do nothing but wait for a lock? Processor time of all of them, as a share of one core. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { machine } from './measure/machine.mjs';

const WAITERS = [30, 200];
const SETTLE_MS = 10_000;
const MEASURED_MS = 20_000;
const program = fileURLToPath(new URL('measure/waiter.mjs', import.meta.url));

console.log(machine());
for (const waiters of WAITERS) await row(waiters);

async function row(waiters) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const all = [];
  try {
    all.push(await wanting(directory, 'let in'));
    while (all.length <= waiters) all.push(await wanting(directory, 'waiting'));
    await pause(SETTLE_MS);
    const before = all.reduce((sum, child) => sum + ticksOf(child.pid), 0);
    await pause(MEASURED_MS);
    const used = all.reduce((sum, child) => sum + ticksOf(child.pid), 0) - before;
    // The kernel counts in hundredths of a second.
    const share = (used * 10) / MEASURED_MS;
    console.log(
      `${waiters} processes that wait for a lock, and its holder, share of one core:`.padEnd(72) +
        ` ${(share * 100).toFixed(1)} % (goal: 5 % for 200)`,
    );
  } finally {
    for (const child of all) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(directory, { recursive: true });
  }
}

async function wanting(directory, stage) {
  const child = fork(program, [`file:${join(directory, 'store')}`]);
  for (;;) {
    const [said] = await once(child, 'message', { signal: AbortSignal.timeout(60_000) });
    if (said.kind === stage) return child;
  }
}

/** In user and in kernel mode. */
function ticksOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
