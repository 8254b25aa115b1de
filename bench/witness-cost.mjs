/**
 * What does the witness cost? An acquire and release with it and without it, on each engine, in turns; the bytes of an entry; and the
 * size of a store that keeps a short record while it is changed 20,000 times (WITNESS_CHANGES=100000 for more).
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'signalbox';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { inTurns, row } from './measure/rounds.mjs';

const CHANGES = Number(process.env['WITNESS_CHANGES'] ?? 20_000);
const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
const engines = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ['memory', 'file', 'etcd'];

console.log(machine());
const etcd = engines.includes('etcd') ? await startEtcd() : undefined;
try {
  for (const engine of engines) if (engine !== 'growth') await cost(engine);
  await growth();
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
  const [on, off] = boxes.map((box) => async (/** @type {number} */ operations) => {
    const lock = box.lock('bench');
    for (let i = 0; i < operations; i++) await (await lock.acquire()).release();
  });
  const operations = { memory: 10_000, file: 2000, etcd: 150 }[engine];
  row(
    `acquire+release on ${engine}`,
    await inTurns({ witness: on, without: off }, { operations }),
    'witness',
    'without',
  );
  const { entries, bytes } = await boxes[0].witness.size();
  console.log(`bytes per entry: ${Math.round(bytes / entries)}`);
  for (const box of boxes) await box.close();
}

/** Locks, and tasks that come and go: chains must not pile up either. */
async function growth() {
  const box = await open(`file:${join(directory, 'growth')}`, { witness: true, maintains: false });
  await box.witness.configure({ mostEntries: 2000, checkpointMs: 0 });
  const steps = 10;
  const sizes = [];
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < CHANGES / steps / 4; i++) {
      await (await box.lock(`branch-${i % 50}`).acquire()).release();
      const id = `${step}-${i}`;
      await box.tasks.publish(id, {});
      await box.tasks.forget(id);
      if (i % 250 === 249) await box.maintain();
    }
    for (let round = 0; round < 2; round++) await box.maintain();
    sizes.push(Math.round(bytesIn(join(directory, 'growth')) / 1024));
  }
  const { finding, entries } = await box.witness.verify();
  console.log(
    `store after each tenth of ${CHANGES} changes, in KiB: ${sizes.join(' ')} (${entries} entries left; ${finding?.why ?? 'verifies'})`,
  );
  await box.close();
}

function bytesIn(/** @type {string} */ path) {
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}
