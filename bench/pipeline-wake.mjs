/**
 * How long after a lock was let go of in one process does a pipeline that waited for it go on in another?
 *
 *     handoff     what is raw: another process waits in the queue of the lock; from the release until it has it
 *     function    a phase that waits until the lock is free, and is a function: until that is called
 *     shell       the same, and is a command: until its first line has come; beside it what starting `/bin/sh -c :` takes
 *
 * In memory both are in this process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'signalbox';
import { Child } from './measure/child.mjs';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { now, ways } from './measure/resumer.mjs';
import { interleaved, median, quantile } from './measure/rounds.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 10 : 60;
/** Until it waits for certain, and has nothing else left to do. */
const AT_REST_MS = 25;
const resumer = fileURLToPath(new URL('measure/resumer.mjs', import.meta.url));

console.log(machine());
console.log(`ms from the release, p50 (p95), ${ROUNDS} rounds`);
await inMemory();
await inFile();
await inEtcd();

async function inMemory() {
  const [box, other] = [await open('memory:bench'), await open('memory:bench')];
  await row('memory:', box, (way) => ways[way](other));
  await Promise.all([box.close(), other.close()]);
}

async function inFile() {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  try {
    await acrossProcesses('file:', `file:${join(directory, 'store')}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function inEtcd() {
  const etcd = await startEtcd();
  if (etcd === undefined) return console.log('  there is no etcd here');
  try {
    await acrossProcesses('etcd:', etcd.url);
  } finally {
    await etcd.stop();
  }
}

async function acrossProcesses(name, url) {
  const box = await open(url);
  const child = await Child.start(process.execPath, [resumer, url]);
  try {
    await row(name, box, async (way) => (await child.ask({ way })).at);
  } finally {
    await child.end();
    await box.close();
  }
}

/** `wait` begins to wait, and resolves with when it went on. */
async function row(name, box, wait) {
  const contenders = { lock: 'lock', function: 'function', shell: 'shell', spawn: 'spawn' };
  const times = await interleaved(contenders, (way) => (way === 'spawn' ? spawned() : wakened(box, way, wait)), {
    rounds: ROUNDS,
    warmUp: 3,
  });
  const told = (way) => `${quantile(times[way], 0.5).toFixed(2)} (${quantile(times[way], 0.95).toFixed(2)})`;
  const ratio = (of, to) => median(times[of].map((each, round) => each / to(round))).toFixed(2);
  const raw = (round) => times.lock[round];
  const rawWithSpawn = (round) => times.lock[round] + times.spawn[round];
  console.log(
    `  ${name.padEnd(8)} handoff ${told('lock')} | function ${told('function')}: ${ratio('function', raw)} × the handoff | ` +
      `shell ${told('shell')}: ${ratio('shell', rawWithSpawn)} × handoff and sh -c : (${told('spawn')})`,
  );
}

async function wakened(box, way, wait) {
  const hold = await box.lock('m').acquire();
  const waiting = wait(way);
  await until(async () =>
    way === 'lock'
      ? (await box.lock('m').inspect()).waiting.length === 1
      : (await box.pipelines.list({ state: 'blocked' })).length === 1,
  );
  await sleep(AT_REST_MS);
  const since = now();
  await hold.release();
  const takes = ((await waiting) - since) / 1e6;
  for (const { id } of await box.pipelines.list({ state: 'done' })) await box.pipelines.forget(id);
  return takes;
}

async function spawned() {
  const since = now();
  await once(spawn('/bin/sh', ['-c', ':'], { stdio: 'ignore' }), 'exit');
  return (now() - since) / 1e6;
}

async function until(isSo) {
  while (!(await isSo())) await sleep(2);
}
