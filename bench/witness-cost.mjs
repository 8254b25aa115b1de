/**
 * What does the witness cost? An acquire and release with it and without it, on each engine, in turns, as time that passes and as time of
 * the processor, which a busy machine changes less; the bytes of an entry; and the size of a store that keeps a short record while
 * it is changed 100,000 times (20,000 with --quick). An engine may be named, or `growth`: node bench/witness-cost.mjs file
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'signalbox';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { inTurns, median, row } from './measure/rounds.mjs';

const isQuick = process.argv.includes('--quick');
const CHANGES = isQuick ? 20_000 : 100_000;
const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
const named = process.argv.slice(2).filter((arg) => !arg.startsWith('-'));
const parts = named.length > 0 ? named : ['memory', 'file', 'etcd', 'growth'];

console.log(machine());
const etcd = parts.includes('etcd') ? await startEtcd() : undefined;
try {
  for (const part of parts) await (part === 'growth' ? growth() : cost(part));
} finally {
  await etcd?.stop();
  rmSync(directory, { recursive: true, force: true });
}

function urlOf(/** @type {string} */ engine, /** @type {string} */ name) {
  if (engine === 'file') return `file:${join(directory, name)}`;
  return engine === 'etcd' ? `etcd://127.0.0.1:${etcd?.port}/${name}` : 'memory:';
}

async function cost(/** @type {string} */ engine) {
  const boxes = await Promise.all(
    [true, false].map((witness) => open(urlOf(engine, witness ? 'on' : 'off'), { witness, maintains: false })),
  );
  /** Of the processor, in microseconds for each operation; with the witness, and without. */
  const spent = boxes.map(() => /** @type {number[]} */ ([]));
  const [on, off] = boxes.map((box, which) => async (/** @type {number} */ operations) => {
    const lock = box.lock('bench');
    const before = process.cpuUsage();
    for (let i = 0; i < operations; i++) await (await lock.acquire()).release();
    const { user, system } = process.cpuUsage(before);
    spent[which].push((user + system) / operations);
  });
  const operations = { memory: 10_000, file: 2000, etcd: 150 }[engine];
  row(
    `acquire+release on ${engine}`,
    await inTurns({ witness: on, without: off }, { operations, ...(isQuick && { rounds: 7 }) }),
    'witness',
    'without',
  );
  const [withIt, without] = spent.map(median);
  const ratio = (withIt / without).toFixed(2);
  console.log(
    `  of the processor: witness ${withIt.toFixed(1)} µs | without ${without.toFixed(1)} µs | ratio ${ratio}`,
  );
  const { entries, bytes } = await boxes[0].witness.size();
  console.log(`  bytes per entry: ${Math.round(bytes / entries)}`);
  for (const box of boxes) await box.close();
}

/**
 * Locks, and tasks that come and go: chains must not pile up either. Above `mostEntries` maintenance deletes all that its checkpoint
 * covers, so the record goes up and down between none and that many, and a bit more until the next round of maintenance.
 */
async function growth() {
  const box = await open(`file:${join(directory, 'growth')}`, { witness: true, maintains: false });
  await box.witness.configure({ mostEntries: 2000, checkpointMs: 0 });
  const steps = 10;
  const sizes = [];
  let [most, trims] = [0, 0];
  const keep = async () => {
    const before = (await box.witness.size()).entries;
    await box.maintain();
    most = Math.max(most, before);
    if ((await box.witness.size()).entries < before) trims += 1;
  };
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < CHANGES / steps / 4; i++) {
      await (await box.lock(`branch-${i % 50}`).acquire()).release();
      const id = `${step}-${i}`;
      await box.tasks.publish(id, {});
      await box.tasks.forget(id);
      if (i % 250 === 249) await keep();
    }
    for (let round = 0; round < 2; round++) await keep();
    sizes.push(Math.round(bytesIn(join(directory, 'growth')) / 1024));
  }
  const { finding, entries } = await box.witness.verify();
  const [before, after] = [sizes.slice(0, steps / 2), sizes.slice(steps / 2)].map((some) => Math.max(...some));
  console.log(
    `store after each tenth of ${CHANGES} changes, in KiB: ${sizes.join(' ')} (at most ${most} entries, trimmed ${trims} times, ${entries} since the last; ` +
      `${finding?.why ?? 'verifies'}); ` +
      `largest of the second half by that of the first: ${(after / before).toFixed(2)}`,
  );
  await box.close();
}

function bytesIn(/** @type {string} */ path) {
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}
