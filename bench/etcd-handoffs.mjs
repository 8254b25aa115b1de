/**
 * How often can a lock on etcd change hands when many want it, and does everybody get their share? Beside it etcd's own
 * recipe, by its own client.
 */
import { fileURLToPath } from 'node:url';
import { Contest } from './measure/contest.mjs';
import { startEtcd } from './measure/etcd.mjs';
import { goPeer } from './measure/go.mjs';
import { machine } from './measure/machine.mjs';
import { interleaved, median, spread } from './measure/rounds.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 2 : 7;
const ROUND_MS = quick ? 500 : 2000;
/** Processes, workers in each, and how many times the recipe's rate is wanted. */
const SIZES = [
  [1, 1],
  [1, 16, 5],
  [4, 4, 5],
  [8, 8, 1.5],
];
const ours = fileURLToPath(new URL('measure/etcd-contender.mjs', import.meta.url));

const etcd = await startEtcd();
if (etcd === undefined) {
  console.log('there is no etcd here');
  process.exit();
}
const recipe = goPeer('handoffs');
console.log(machine());
console.log('handoffs/s; the share of the worker that came off worst (1 is fair); p50, p99 of the wait in ms');
try {
  for (const [processes, workers, goal] of SIZES) await row(processes, workers, goal);
} finally {
  await etcd.stop();
}

async function row(processes, workers, goal) {
  const contests = { signalbox: await Contest.open(processes, process.execPath, [ours, etcd.url, workers]) };
  if (recipe !== undefined) contests["Go's recipe"] = await Contest.open(processes, recipe, [etcd.endpoint, workers]);
  const rounds = await interleaved(contests, (contest) => contest.run({ kind: 'lock' }, ROUND_MS), {
    rounds: ROUNDS,
    warmUp: 1,
  });
  for (const contest of Object.values(contests)) await contest.close();
  const size = `${processes}×${workers}`;
  for (const [name, measured] of Object.entries(rounds)) {
    const of = (what, digits) =>
      spread(
        measured.map((round) => round[what]),
        digits,
      );
    const together = measured.some(({ most = 1 }) => most > 1) ? '  !! two had it at once' : '';
    console.log(
      `  ${size.padEnd(5)} ${name.padEnd(12)} ${of('perSecond', 0)}/s | worst ${of('worst', 2)} | ` +
        `${of('p50', 2)}, ${of('p99', 1)} ms${writesFor(measured)}${together}`,
    );
  }
  const peer = rounds["Go's recipe"];
  if (peer === undefined) return;
  const ratio = rounds.signalbox.map(({ perSecond }, round) => perSecond / peer[round].perSecond);
  console.log(
    `  ${''.padEnd(5)} signalbox is ${spread(ratio, 2)} × the recipe${goal === undefined ? '' : ` (goal ≥ ${goal})`}`,
  );
}

/** How many transactions a handoff took. */
function writesFor(measured) {
  if (measured[0].used.transactions === undefined) return '';
  const each = measured.map(({ used, perSecond }) => used.transactions / ((perSecond * ROUND_MS) / 1000));
  return ` | ${median(each).toFixed(2)} transactions each`;
}
