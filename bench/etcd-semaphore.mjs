/**
 * How often can slots of one semaphore on etcd be taken and given back by many processes, and how many of their writes
 * get in each other's way?
 */
import { fileURLToPath } from 'node:url';
import { Contest } from './measure/contest.mjs';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { spread } from './measure/rounds.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 2 : 7;
const ROUND_MS = quick ? 500 : 2000;
/** Processes, workers in each, and the capacity: too small for all, and, last, large enough for all. */
const SIZES = [
  [8, 2, 4],
  [8, 8, 4],
  [8, 2, 32],
];
const program = fileURLToPath(new URL('measure/etcd-contender.mjs', import.meta.url));

const etcd = await startEtcd();
if (etcd === undefined) {
  console.log('there is no etcd here');
  process.exit();
}
console.log(machine());
console.log('acquire+release/s; the share of the worker that came off worst (1 is fair); % of the writes that found');
console.log('something else than expected, and of these: that wrote nothing and had to be made again');
try {
  for (const [processes, workers, capacity] of SIZES) await row(processes, workers, capacity);
} finally {
  await etcd.stop();
}

async function row(processes, workers, capacity) {
  const contest = await Contest.open(processes, process.execPath, [program, etcd.url, workers]);
  const measured = [];
  for (let round = -1; round < ROUNDS; round++) {
    const result = await contest.run({ kind: 'semaphore', capacity }, ROUND_MS);
    if (round >= 0) measured.push(result);
  }
  await contest.close();
  const of = (value, digits) => spread(measured.map(value), digits);
  const part = (what) => of(({ used }) => (100 * used[what]) / used.writes, 1);
  const tooMany = measured.some(({ most }) => most > capacity) ? `  !! more than ${capacity} were in` : '';
  console.log(
    `  ${`${processes}×${workers}`.padEnd(5)} capacity ${String(capacity).padEnd(3)} ${of((round) => round.perSecond, 0)}/s | ` +
      `worst ${of((round) => round.worst, 2)} | ${part('otherwise')} % | ${part('inVain')} % (goal < 10)${tooMany}`,
  );
}
