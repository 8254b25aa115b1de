/**
 * What do processes cost that do nothing but wait for a lock, once they have started? Processor time of all of them, as a
 * share of one core; how often each is woken; and how long the lock stays taken after its holder was killed.
 */
import { fork } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { machine } from './measure/machine.mjs';
import { quantile } from './measure/rounds.mjs';

const WAITERS = [30, 200];
const AT_ONCE = 2;
/** In which V8 still compiles and collects what the start left behind. */
const SETTLE_MS = 60_000;
const MEASURED_MS = 20_000;
const KILLS = 12;
/** A bench that does not end is no bench. */
const LIMIT_MS = 600_000;
const program = fileURLToPath(new URL('measure/waiter.mjs', import.meta.url));

console.log(machine());
for (const waiters of WAITERS) await row(waiters);

async function row(waiters) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const limit = AbortSignal.timeout(LIMIT_MS);
  setMaxListeners(0, limit);
  const all = [];
  try {
    await wanting(all, directory, 'let in', limit);
    while (all.length <= waiters) {
      const count = Math.min(AT_ONCE, waiters + 1 - all.length);
      await Promise.all(Array.from({ length: count }, () => wanting(all, directory, 'waiting', limit)));
    }
    await pause(SETTLE_MS, undefined, { signal: limit });
    const before = total(all);
    await pause(MEASURED_MS, undefined, { signal: limit });
    const after = total(all);
    // The kernel counts in hundredths of a second.
    const share = ((after.ticks - before.ticks) * 10) / MEASURED_MS;
    const wakeUps = (after.wakeUps - before.wakeUps) / all.length / (MEASURED_MS / 1000);
    tell(
      `${waiters} processes that wait for a lock, and its holder, share of one core:`,
      `${(share * 100).toFixed(1)} % (goal: 5 % for 200)`,
    );
    tell('each of them is woken, times a second:', wakeUps.toFixed(2));
    const takes = [];
    for (let kill = 0; kill < KILLS; kill++) takes.push(await takeover(all, limit));
    tell(
      `from kill -9 of the holder to the next one of them running, ms, ${KILLS} kills:`,
      `p50 ${quantile(takes, 0.5).toFixed(0)}, longest ${quantile(takes, 1).toFixed(0)} (goal: within 250)`,
    );
    const lost = all.filter((child) => child.exitCode !== null);
    if (lost.length > 0) throw new Error(`${lost.length} of ${waiters} waiting processes have ended by themselves`);
  } finally {
    // All at once: each one's death is news to those that are left.
    const ended = all.filter(isThere).map((child) => once(child, 'exit'));
    for (const child of all) child.kill('SIGKILL');
    await Promise.all(ended);
    rmSync(directory, { recursive: true });
  }
}

/** Kills the holder, which is the first, and puts the next one there. */
async function takeover(all, signal) {
  const over = new AbortController();
  const letIn = Promise.any(
    all
      .slice(1)
      .map((child) =>
        message(child, 'let in', AbortSignal.any([signal, over.signal])).then((said) => ({ child, said })),
      ),
  );
  const killedAt = Number(process.hrtime.bigint());
  all.shift().kill('SIGKILL');
  const { child, said } = await letIn;
  over.abort();
  all.unshift(...all.splice(all.indexOf(child), 1));
  // Those who were told of it too have looked by then.
  await pause(500);
  return (said.at - killedAt) / 1e6;
}

/** A process that wants the lock, and has come as far as this. */
async function wanting(all, directory, stage, signal) {
  // What one of hundreds prints is of no use; its end is reported below.
  const child = fork(program, [`file:${join(directory, 'store')}`], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  child.setMaxListeners(0);
  all.push(child);
  await message(child, stage, signal);
}

async function message(child, kind, signal) {
  const gone = once(child, 'exit', { signal }).then(() => {
    throw new Error('a process that waited has ended');
  });
  for (;;) {
    const [said] = await Promise.race([once(child, 'message', { signal }), gone]);
    if (said.kind === kind) return said;
  }
}

function total(all) {
  const sum = { ticks: 0, wakeUps: 0 };
  for (const { pid } of all) {
    sum.ticks += ticksOf(pid);
    sum.wakeUps += wakeUpsOf(pid);
  }
  return sum;
}

/** In user and in kernel mode, of all threads. */
function ticksOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** How often its main thread has gone to sleep, and so was woken. */
function wakeUpsOf(pid) {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]);
}

function isThere(child) {
  return child.exitCode === null && child.signalCode === null;
}

function tell(what, figure) {
  console.log(`${what.padEnd(72)} ${figure}`);
}
