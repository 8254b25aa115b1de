/**
 * What does it cost to claim a task on etcd, and how soon does a worker hear of one, compared with a transaction and a watch of
 * etcd itself through the same client?
 */
import { open } from 'signalbox';
import { openEtcdUrl, Value } from 'signalbox/store';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { interleaved, quantile, spread } from './measure/rounds.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 3 : 12;
const EACH = quick ? 50 : 300;
const WORKERS = 16;
const ALIKE = { rounds: ROUNDS, warmUp: 2 };

const etcd = await startEtcd();
if (etcd === undefined) {
  console.log('there is no etcd here');
  process.exit();
}
console.log(machine());
const [publisher, worker] = [await open(etcd.url), await open(etcd.url)];
const [writer, reader] = [await openEtcdUrl(etcd.url), await openEtcdUrl(etcd.url)];
let tasks = 0;
try {
  await claimRow();
  await throughputRow();
  await noticeRow();
} finally {
  for (const each of [publisher, worker, writer, reader]) await each.close();
  await etcd.stop();
}

async function claimRow() {
  const rounds = await interleaved(
    {
      claim: async () => {
        const ids = await published(EACH);
        const claims = [];
        const micros = await timedEach(ids, async (id) => claims.push(await worker.tasks.claim(id)));
        for (const claim of claims) await claim.complete(null);
        return micros;
      },
      raw: () => timedEach(Array.from({ length: EACH }), () => put('raw')),
    },
    (measure) => measure(),
    ALIKE,
  );
  console.log('claim of a task, one after the other: p50, p95, p99 in µs');
  told(rounds);
  console.log(`  p95 ${ratio(rounds, 0.95)} × that of a raw transaction (goal ≤ 1.3)`);
}

/** Every worker takes the next task there is. */
async function throughputRow() {
  const rounds = await interleaved(
    {
      claim: async () => {
        await published(EACH * 4);
        return perSecond(EACH * 4, async () => {
          const claim = await worker.tasks.claimNext();
          return () => claim.complete(null);
        });
      },
      raw: () => perSecond(EACH * 4, async (caller) => void (await put(`raw-${caller}`))),
    },
    (measure) => measure(),
    ALIKE,
  );
  const part = rounds.claim.map((rate, round) => rate / rounds.raw[round]);
  console.log(
    `claims/s of ${WORKERS} workers ${spread(rounds.claim, 0)}, raw transactions/s ${spread(rounds.raw, 0)}: ` +
      `${spread(part, 2)} of them (goal ≥ 0.8)`,
  );
}

async function noticeRow() {
  let heard = () => {};
  const subscription = await worker.tasks.subscribe(({ why }) => {
    if (why === 'published') heard();
  });
  const watching = new AbortController();
  const watch = await reader.watch({ key: 'watched' }, 'now', watching.signal);
  void (async () => {
    for await (const _ of watch) heard();
  })();
  /** Until a worker hears of it: the answer to the publisher may come later. */
  const measured = async (write) => {
    const micros = [];
    for (let turn = 0; turn < EACH; turn++) {
      const sent = process.hrtime.bigint();
      let at;
      const told = new Promise((resolve) => {
        heard = () => {
          at = process.hrtime.bigint();
          resolve();
        };
      });
      await Promise.all([write(), told]);
      micros.push(Number(at - sent) / 1000);
    }
    return micros;
  };
  const rounds = await interleaved(
    {
      notice: () => measured(() => publisher.tasks.publish(`t-${tasks++}`, {})),
      raw: () => measured(() => put('watched')),
    },
    (measure) => measure(),
    ALIKE,
  );
  watching.abort();
  subscription.unsubscribe();
  console.log('from publishing to the callback of another, one after the other: p50, p95, p99 in µs');
  told(rounds);
  console.log(`  p50 ${ratio(rounds, 0.5)} ×, p95 ${ratio(rounds, 0.95)} × that of a raw watch (goal ≤ 1.3)`);
}

async function published(count) {
  const ids = Array.from({ length: count }, () => `t-${tasks++}`);
  for (let first = 0; first < count; first += 32) {
    await Promise.all(ids.slice(first, first + 32).map((id) => publisher.tasks.publish(id, { work: id })));
  }
  return ids;
}

function put(key) {
  return writer.transaction({
    compare: [{ key, target: 'version', is: '!=', than: Number.MAX_SAFE_INTEGER }],
    success: [{ do: 'put', key, value: Value.text('v') }],
    failure: [],
  });
}

async function timedEach(things, work) {
  const micros = [];
  for (const thing of things) {
    const asked = process.hrtime.bigint();
    await work(thing);
    micros.push(Number(process.hrtime.bigint() - asked) / 1000);
  }
  return micros;
}

/** What has to be done after it is not counted. */
async function perSecond(count, work) {
  const after = [];
  let left = count;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: WORKERS }, async (_, caller) => {
      while (left-- > 0) after.push(await work(caller));
    }),
  );
  const rate = (1000 * count) / (performance.now() - begun);
  for (let first = 0; first < after.length; first += 32) {
    await Promise.all(after.slice(first, first + 32).map((finish) => finish?.()));
  }
  return rate;
}

function told(rounds) {
  for (const [name, measured] of Object.entries(rounds)) {
    const parts = [0.5, 0.95, 0.99].map((part) =>
      spread(
        measured.map((micros) => quantile(micros, part)),
        0,
      ),
    );
    console.log(`  ${name.padEnd(8)} ${parts.join(', ')}`);
  }
}

function ratio({ raw, ...ours }, part) {
  const [measured] = Object.values(ours);
  return spread(
    measured.map((micros, round) => quantile(micros, part) / quantile(raw[round], part)),
    2,
  );
}
