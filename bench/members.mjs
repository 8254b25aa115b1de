/**
 * What does membership cost with 10, 100 and 1,000 members: to join, to leave, to look up, to hear of a change, to do nothing?
 * And how long until the others see that a member was killed?
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open } from 'signalbox';
import { TestCluster } from 'signalbox/testing';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { quantile } from './measure/rounds.mjs';

const SIZES = [10, 100, 1000];
const CHANGES = 40;
const IDLE_MS = 3000;
const LOOK_UPS = 20_000;

console.log(machine());
const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
const etcd = await startEtcd();
try {
  const stores = { memory: 'memory:members', file: `file:${join(directory, 'store')}` };
  if (etcd !== undefined) stores.etcd = `etcd://${etcd.endpoint}`;
  for (const [engine, url] of Object.entries(stores)) for (const size of SIZES) await row(engine, url, size);
  await kills('file', stores.file, 5, 15_000);
  if (stores.etcd !== undefined) {
    await kills('etcd', stores.etcd, 5, 2000);
    await kills('etcd', stores.etcd, 2, 15_000);
  }
} finally {
  await etcd?.stop();
  rmSync(directory, { recursive: true });
}

async function row(engine, url, size) {
  const clock = countingClock();
  const [one, other] = [await open(url, { maintains: false, clock }), await open(url, { maintains: false, clock })];
  const memberships = [];
  for (let n = 0; n < size; n++) {
    const joined = await one.members.join(`m${n}`, { host: `host-${n}` }, { assets: [`asset-${n}`], keepAlive: false });
    memberships.push(joined.membership);
  }
  const before = heap();
  const members = await other.members.follow();
  const bytes = heap() - before;
  const timers = clock.pending();
  let heard = () => {};
  let changes = 0;
  members.onChange(() => {
    changes += 1;
    heard(process.hrtime.bigint());
  });
  const times = { join: [], leave: [], heard: [] };
  for (let n = 0; n < CHANGES / 2; n++) {
    let membership;
    const joining = await noticed(async () => ({ membership } = await one.members.join(`late${n}`)));
    const leaving = await noticed(() => membership.leave());
    times.join.push(joining.took);
    times.leave.push(leaving.took);
    times.heard.push(joining.heard, leaving.heard);
  }
  const looked = timePer(LOOK_UPS, (n) => members.ownersOf(`asset-${n % size}`));
  const coordinator = timePer(LOOK_UPS, () => members.coordinator());
  const placed = timePer(Math.min(LOOK_UPS, 2_000_000 / size), (n) => members.ownerOf(`key-${n}`));
  const idle = process.cpuUsage();
  await sleep(IDLE_MS);
  const { user, system } = process.cpuUsage(idle);
  const p50 = (list) => quantile(list, 0.5).toFixed(2);
  console.log(
    `${engine.padEnd(7)}${String(size).padStart(5)} members, ms: join p50 ${p50(times.join)}, leave ${p50(times.leave)}, ` +
      `change to listener ${p50(times.heard)} (p95 ${quantile(times.heard, 0.95).toFixed(2)}, goal 10); ` +
      `deliveries per change ${changes / CHANGES}; µs: coordinator ${coordinator.toFixed(3)}, ownersOf ${looked.toFixed(2)}, ` +
      `ownerOf ${placed.toFixed(1)}; idle ${((user + system) / IDLE_MS / 10).toFixed(2)} % of a core, ` +
      `${Math.round(bytes / size)} bytes per member, ${timers} timers for all of them`,
  );
  members.stop();
  await Promise.all([one.close(), other.close()]);

  async function noticed(work) {
    const told = new Promise((resolve) => (heard = resolve));
    const begun = process.hrtime.bigint();
    await work();
    const took = Number(process.hrtime.bigint() - begun) / 1e6;
    return { took, heard: Number((await told) - begun) / 1e6 };
  }
}

async function kills(engine, url, count, sessionTtlMs) {
  const box = await open(url, { maintains: false });
  const members = await box.members.follow();
  const takes = [];
  for (let n = 0; n < count; n++) {
    const cluster = await new TestCluster({ processes: 1, store: url, sessionTtlMs }).start();
    const left = new Promise((resolve) => {
      members.onChange((change) => change.left.length > 0 && resolve(process.hrtime.bigint()));
    });
    const killed = process.hrtime.bigint();
    process.kill(cluster.processes[0].pid, 'SIGKILL');
    takes.push(Number((await left) - killed) / 1e6);
    await cluster.stop();
  }
  members.stop();
  await box.close();
  console.log(
    `${engine}: from kill -9 to left, session ${sessionTtlMs / 1000} s, ${count} kills, ms: ` +
      `p50 ${quantile(takes, 0.5).toFixed(0)}, longest ${quantile(takes, 1).toFixed(0)}`,
  );
}

/** The system's, which counts the timers that are set. */
function countingClock() {
  let pending = 0;
  return {
    now: () => Date.now(),
    monotonic: () => Number(process.hrtime.bigint()) / 1e6,
    timer(delayMs, call) {
      pending += 1;
      let isOver = false;
      const over = () => {
        if (!isOver) pending -= 1;
        isOver = true;
      };
      const handle = setTimeout(() => {
        over();
        call();
      }, delayMs).unref();
      return {
        cancel() {
          over();
          clearTimeout(handle);
        },
      };
    },
    afterOthers: (call) => void setImmediate(call),
    pending: () => pending,
  };
}

function timePer(times, work) {
  const begun = process.hrtime.bigint();
  for (let n = 0; n < times; n++) work(n);
  return Number(process.hrtime.bigint() - begun) / times / 1000;
}

/** Of what is still used: a collection that has yet to come would make it less than nothing. */
function heap() {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
