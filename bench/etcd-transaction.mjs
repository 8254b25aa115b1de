/**
 * What does a round trip to etcd cost through our client, compared with other clients? And what does an acquire
 * and a release of a lock that nobody else wants cost, in such round trips?
 */
import { open } from 'signalbox';
import { Child } from './measure/child.mjs';
import { startEtcd } from './measure/etcd.mjs';
import { goPeer } from './measure/go.mjs';
import { machine } from './measure/machine.mjs';
import { rawClients } from './measure/raw-clients.mjs';
import { interleaved, median, quantile, spread } from './measure/rounds.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 3 : 12;
const ROUND_MS = quick ? 200 : 600;
const CALLERS = [1, 64];
/** What the first rounds say is about warming up. */
const ALIKE = { rounds: ROUNDS, warmUp: 2 };

const etcd = await startEtcd();
if (etcd === undefined) {
  console.log('there is no etcd here');
  process.exit();
}
console.log(machine());
const opened = [];
try {
  await rawRows();
  await lockRows();
} finally {
  for (const each of opened) await each.close();
  await etcd.stop();
}

async function rawRows() {
  const contenders = {};
  for (const [name, client] of Object.entries(rawClients)) contenders[name] = inThisProcess(await client(etcd), name);
  const program = goPeer('raw');
  if (program !== undefined) {
    const child = await Child.start(program, [etcd.endpoint]);
    opened.push({ close: () => child.end() });
    contenders['Go'] = (callers, ms) => child.ask({ callers, ms });
  }
  for (const callers of CALLERS) {
    const rounds = await interleaved(contenders, (contender) => contender(callers, ROUND_MS), ALIKE);
    console.log(`one transaction, ${callers} at a time: p50, p95 in µs; per second; µs of the processor for each`);
    for (const [name, measured] of Object.entries(rounds)) {
      const told = (part) =>
        spread(
          measured.map(({ micros }) => quantile(micros, part)),
          0,
        );
      const perSecond = measured.map(({ count, elapsedMs }) => (1000 * count) / elapsedMs);
      const cpu = measured.map(({ cpuMicrosEach }) => cpuMicrosEach);
      const ratio = rounds['Go']?.map(({ micros }, round) => p50(measured[round].micros) / p50(micros));
      const goal = name === 'signalbox' && callers === 1 ? ' (goal ≤ 1.2)' : '';
      console.log(
        `  ${name.padEnd(14)} ${told(0.5)}, ${told(0.95)} | ${spread(perSecond, 0)}/s | ${spread(cpu, 0)}` +
          (ratio === undefined ? '' : ` | p50 ${spread(ratio, 2)} × Go${goal}`),
      );
    }
  }
}

async function lockRows() {
  const { transact } = await prepared(await rawClients.signalbox(etcd), ['raw/unit']);
  const box = await open(etcd.url);
  opened.push(box);
  const lock = box.lock('bench');
  const { Etcd3 } = await import('etcd3');
  const client = new Etcd3({ hosts: `http://${etcd.endpoint}` });
  opened.push({ close: async () => client.close() });
  let number = 0;
  const contenders = {
    'raw transaction': { take: () => transact('raw/unit'), give: async () => {} },
    signalbox: { take: () => lock.acquire(), give: (hold) => hold.release() },
    etcd3: { take: () => client.lock(`etcd3-${number++}`).acquire(), give: (taken) => taken.release() },
  };
  const timed = async ({ take, give }) => {
    const [taken, given] = [[], []];
    for (const end = performance.now() + ROUND_MS; performance.now() < end;) {
      const asked = process.hrtime.bigint();
      const held = await take();
      const letIn = process.hrtime.bigint();
      await give(held);
      taken.push(Number(letIn - asked) / 1000);
      given.push(Number(process.hrtime.bigint() - letIn) / 1000);
    }
    return { taken, given, both: taken.map((micros, i) => micros + given[i]) };
  };
  const rounds = await interleaved(contenders, timed, ALIKE);
  console.log('a lock that nobody else wants: acquire, release, both: p50 in µs, and in raw transactions');
  const unit = rounds['raw transaction'].map(({ taken }) => p50(taken));
  for (const name of ['signalbox', 'etcd3']) {
    const told = ['taken', 'given', 'both'].map((what) => {
      const times = rounds[name].map((measured) => p50(measured[what]));
      return `${spread(times, 0)} = ${median(times.map((micros, round) => micros / unit[round])).toFixed(2)} raw`;
    });
    const goal = name === 'signalbox' ? ' (goal: acquire ≤ 1.1 raw)' : '';
    console.log(`  ${name.padEnd(14)} ${told.join(' | ')}${goal}`);
  }
  const ratio = rounds.etcd3.map(({ both }, round) => p50(both) / p50(rounds.signalbox[round].both));
  console.log(`  etcd3's lock takes ${spread(ratio, 2)} × as long as ours (goal ≥ 1.5)`);
}

/** The same number of callers as in other processes, each with a key of its own. */
function inThisProcess(client, name) {
  opened.push(client);
  const keys = Array.from({ length: Math.max(...CALLERS) }, (_, caller) => `raw/${name}-${caller}`);
  const ready = prepared(client, keys);
  return async (callers, ms) => {
    const { transact } = await ready;
    const micros = [];
    const [begun, cpu] = [performance.now(), process.cpuUsage()];
    const call = async (key) => {
      while (performance.now() < begun + ms) {
        const sent = process.hrtime.bigint();
        await transact(key);
        micros.push(Number(process.hrtime.bigint() - sent) / 1000);
      }
    };
    await Promise.all(keys.slice(0, callers).map(call));
    const { user, system } = process.cpuUsage(cpu);
    const count = micros.length;
    return { count, micros, cpuMicrosEach: (user + system) / count, elapsedMs: performance.now() - begun };
  };
}

async function prepared(client, keys) {
  if (!opened.includes(client)) opened.push(client);
  for (const key of keys) await client.prepare(key);
  return client;
}

function p50(values) {
  return quantile(values, 0.5);
}
