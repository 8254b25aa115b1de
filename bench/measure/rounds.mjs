/**
 * Ours and the peer's, taking turns in one process: these machines are noisy, and only figures measured in turn can be
 * compared. Each round measures both; the report has the median over the rounds, with the spread, and the
 * median of the ratios of each round.
 */

/** Runs `contenders` (name → async (operations) => void) in turns; the last named is the peer that ratios refer to. */
export async function inTurns(contenders, { rounds = 15, operations = 20_000 } = {}) {
  const names = Object.keys(contenders);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -3; round < rounds; round++) {
    // Who begins changes from round to round.
    const order = round % 2 === 0 ? names : names.toReversed();
    for (const name of order) {
      const perOperation = await timed(contenders[name], operations);
      if (round >= 0) times[name].push(perOperation);
      // Timers and I/O get their turn between measurements, not within.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return times;
}

async function timed(work, operations) {
  const start = process.hrtime.bigint();
  await work(operations);
  return Number(process.hrtime.bigint() - start) / operations;
}

/** One line: median and spread of both, and the ratio (above 1: ours takes longer). */
export function row(question, times, ours, peer) {
  const ratios = times[ours].map((time, round) => time / times[peer][round]);
  const told = (name) =>
    `${name} ${us(median(times[name]))} µs (${us(quantile(times[name], 0.1))}–${us(quantile(times[name], 0.9))})`;
  console.log(
    `${question.padEnd(44)} ${told(ours)} | ${told(peer)} | ratio ${median(ratios).toFixed(2)} (${quantile(ratios, 0.1).toFixed(2)}–${quantile(ratios, 0.9).toFixed(2)})`,
  );
}

const us = (nanoseconds) => (nanoseconds / 1000).toFixed(2);
export const median = (values) => quantile(values, 0.5);

export function quantile(values, part) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** The median, and between what it lay. */
export function spread(values, digits) {
  const [low, middle, high] = [quantile(values, 0), median(values), quantile(values, 1)];
  return `${middle.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

/** All of them in every round, and who begins changes: what else the machine does then falls on all of them alike. */
export async function interleaved(contenders, measure, { rounds, warmUp = 0 }) {
  const names = Object.keys(contenders);
  const measured = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await measure(contenders[name]);
      if (round >= 0) measured[name].push(result);
    }
  }
  return measured;
}
