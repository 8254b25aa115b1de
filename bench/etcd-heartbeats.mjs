/** What does it cost to keep a thousand holds on etcd alive? */
import { open } from 'signalbox';
import { openEtcdUrl } from 'signalbox/store';
import { setTimeout as sleep } from 'node:timers/promises';
import { countedStore } from './measure/counted-store.mjs';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';

const quick = process.argv.includes('--quick');
const HOLDS = 1000;
const TTL_MS = 3000;
const PERIODS = quick ? 2 : 10;

const etcd = await startEtcd();
if (etcd === undefined) {
  console.log('there is no etcd here');
  process.exit();
}
console.log(machine());
try {
  const { store, counts } = countedStore(await openEtcdUrl(etcd.url));
  const box = await open(store, { sessionTtlMs: TTL_MS, maintains: false });
  const locks = Array.from({ length: HOLDS }, (_, number) => box.lock(`held-${number}`));
  for (let first = 0; first < HOLDS; first += 50) {
    await Promise.all(locks.slice(first, first + 50).map((lock) => lock.acquire()));
  }
  const [before, cpu] = [{ ...counts }, process.cpuUsage()];
  await sleep((PERIODS * TTL_MS) / 3);
  const { user, system } = process.cpuUsage(cpu);
  const each = (what) => ((counts[what] - before[what]) / PERIODS).toFixed(2);
  console.log(
    `${HOLDS} holds of one process, per renewal period: ${each('renewals')} renewals, ${each('transactions')} ` +
      `transactions, ${((user + system) / 1000 / PERIODS).toFixed(2)} ms of the processor (goal: one renewal)`,
  );
  await box.close();
} finally {
  await etcd.stop();
}
