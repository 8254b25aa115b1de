/** The processes that want one lock, and what the times they report say about it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('contender.mjs', import.meta.url));

export class Fleet {
  #processes;
  #runs = 0;

  constructor(size, places) {
    this.#processes = Array.from({ length: size }, () => fork(program, [JSON.stringify(places)]));
  }

  /** Nothing is loaded or connected while time is measured. */
  async open(contender) {
    await Promise.all(this.#processes.map((each) => ask(each, { kind: 'open', contender })));
  }

  /** All of them at once, for `ms`. */
  async run(contender, { ms, holdMs, pauseMs }) {
    const begin = Number(process.hrtime.bigint());
    const order = { kind: 'run', contender, name: `bench-${this.#runs++}`, until: begin + ms * 1e6, holdMs, pauseMs };
    const answers = await Promise.all(this.#processes.map((each) => ask(each, order)));
    return summary(answers, ms, order.until);
  }

  async close() {
    for (const each of this.#processes) if (each.connected) each.send({ kind: 'close' });
    const alive = this.#processes.filter((each) => each.exitCode === null && each.signalCode === null);
    await Promise.all(alive.map((each) => once(each, 'exit')));
  }
}

async function ask(child, order) {
  // Whichever comes first, the other one need not be listened for any more.
  const answered = new AbortController();
  const died = once(child, 'exit', answered).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`);
  });
  died.catch(() => {});
  try {
    const message = once(child, 'message', answered);
    child.send(order);
    const [answer] = await Promise.race([message, died]);
    return answer;
  } finally {
    answered.abort();
  }
}

/** A release this shortly before the end of a run says nothing about contenders that were not let in any more. */
const TOO_LATE_MS = 100;

/**
 * handoffs   for every release while others waited: how long, in ms, until the first of these was let in. A process that
 *            came later and got in first does not count: for the waiting ones, the lock was not free. Where none of them
 *            was let in before the end of the run, the time until then, which is too little.
 * perSecond  how often it went from one process to another
 * turns      how often it was taken, also by the process that had just released it
 * overlaps   how often two had it at once
 */
function summary(reports, ms, until) {
  const turns = reports.flatMap((report, owner) =>
    report.turns.map(([asked, letIn, gaveBack]) => ({ owner, asked, letIn, gaveBack })),
  );
  turns.sort((one, other) => one.letIn - other.letIn);
  const inVain = reports.map(({ waitingSince }, owner) => ({ owner, asked: waitingSince ?? Infinity }));
  const handoffs = [];
  let changes = 0;
  let overlaps = 0;
  turns.forEach(({ owner, gaveBack }, i) => {
    const next = turns[i + 1];
    if (next !== undefined && next.letIn < gaveBack) overlaps++;
    if (next !== undefined && next.owner !== owner) changes++;
    const waited = (other) => other.owner !== owner && other.asked < gaveBack;
    const letIn = turns.slice(i + 1).find(waited)?.letIn;
    const leftMs = (until - gaveBack) / 1e6;
    if (letIn !== undefined) handoffs.push((letIn - gaveBack) / 1e6);
    else if (leftMs > TOO_LATE_MS && inVain.some(waited)) handoffs.push(leftMs);
  });
  return { handoffs, perSecond: (1000 * changes) / ms, turns: turns.length, overlaps };
}
