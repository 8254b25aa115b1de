/**
 * One process of several that want one lock, or slots of one semaphore, on etcd.
 *
 *     etcd-contender.mjs URL WORKERS
 *
 * Each order, {"kind": "lock", "name": "x", "until": unix time in ms}, is answered with how often each worker had it
 * until then, when (by the clock that all processes of the machine share), and what that took in transactions.
 */
import { open } from 'signalbox';
import { openEtcdUrl } from 'signalbox/store';
import { countedStore } from './counted-store.mjs';
import { takeOrders } from './orders.mjs';

const [url, workers] = [process.argv[2], Number(process.argv[3])];
const { store, counts } = countedStore(await openEtcdUrl(url));
const box = await open(store);
// The session is there before anything is measured.
await (await box.lock(`warm-up-${process.pid}`).acquire()).release();

await takeOrders(
  async ({ kind, name, until, capacity }) => {
    const wanted = kind === 'lock' ? box.lock(name) : box.semaphore(name, { capacity });
    const before = { ...counts };
    const waits = [];
    const stays = [];
    const over = AbortSignal.timeout(until - Date.now());
    const turns = await Promise.all(
      Array.from({ length: workers }, async () => {
        let count = 0;
        while (Date.now() < until) {
          const asked = now();
          const hold = await wanted.acquire({ signal: over }).catch((error) => {
            if (!over.aborted) throw error;
          });
          if (hold === undefined) return count;
          const letIn = now();
          if (Date.now() < until) {
            count += 1;
            waits.push((letIn - asked) / 1000);
            stays.push([letIn, now()]);
          }
          await hold.release();
        }
        return count;
      }),
    );
    const used = Object.fromEntries(Object.entries(counts).map(([what, count]) => [what, count - before[what]]));
    return { turns, waits, stays, used };
  },
  () => box.close(),
);

function now() {
  return Number(process.hrtime.bigint());
}
