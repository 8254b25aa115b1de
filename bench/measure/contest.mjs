/** Processes that all want the same, and what their reports say about it. */
import { Child } from './child.mjs';
import { quantile } from './rounds.mjs';

/** They have time to hear of it, so that all begin at once. */
const HEAD_START_MS = 50;

/** Names are not used twice. */
let runs = 0;

export class Contest {
  #children;

  constructor(children) {
    this.#children = children;
  }

  static async open(processes, program, args) {
    return new Contest(await Promise.all(Array.from({ length: processes }, () => Child.start(program, args))));
  }

  async run(order, ms) {
    const until = Date.now() + HEAD_START_MS + ms;
    const name = `contest-${process.pid}-${runs++}`;
    const reports = await Promise.all(this.#children.map((child) => child.ask({ ...order, name, until })));
    return summary(reports, ms);
  }

  async close() {
    await Promise.all(this.#children.map((child) => child.end()));
  }
}

/**
 * perSecond   how often a contender was let in
 * worst       what the worker that came off worst had of what would have been its fair share
 * most        how many were inside together, at most; unknown for contenders that do not report when they were in
 * used        transactions, all processes together
 */
function summary(reports, ms) {
  const turns = reports.flatMap((report) => report.turns);
  const total = turns.reduce((sum, each) => sum + each, 0);
  const waits = reports.flatMap((report) => report.waits);
  const used = {};
  for (const report of reports) {
    for (const [what, count] of Object.entries(report.used ?? {})) used[what] = (used[what] ?? 0) + count;
  }
  return {
    perSecond: (1000 * total) / ms,
    worst: (Math.min(...turns) * turns.length) / total,
    p50: quantile(waits, 0.5) / 1000,
    p99: quantile(waits, 0.99) / 1000,
    most: mostAtOnce(reports.flatMap((report) => report.stays ?? [])),
    used,
  };
}

function mostAtOnce(stays) {
  if (stays.length === 0) return undefined;
  // A contender that leaves in the very moment in which another comes has left.
  const steps = stays.flatMap(([from, to]) => [
    [from, 1],
    [to, -1],
  ]);
  steps.sort(([at, step], [otherAt, otherStep]) => at - otherAt || step - otherStep);
  let [inside, most] = [0, 0];
  for (const [, step] of steps) most = Math.max(most, (inside += step));
  return most;
}
