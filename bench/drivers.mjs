/** How many transactions does a `file:` store do in a second, on each driver of SQLite? */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureOtherNode } from '../scripts/nodes.mjs';
import { driverOf, machine } from './measure/machine.mjs';
import { spread } from './measure/rounds.mjs';

const ROUNDS = 7;
const program = fileURLToPath(new URL('measure/transactions.mjs', import.meta.url));

console.log(machine());
const other = ensureOtherNode();
const nodes = other === undefined ? [process.execPath] : [process.execPath, other];
const measured = new Map(nodes.map((node) => [node, []]));
for (let round = 0; round < ROUNDS; round++) {
  // Who begins changes from round to round.
  for (const node of round % 2 === 0 ? nodes : nodes.toReversed()) measured.get(node).push(measure(node));
}
for (const [node, rounds] of measured) {
  const told = Object.keys(rounds[0]).map(
    (name) =>
      `${name} ${spread(
        rounds.map((round) => round[name]),
        0,
      )}/s`,
  );
  console.log(`${driverOf(node).padEnd(28)} ${told.join(' | ')}`);
}

/** In a process and a store of its own. */
function measure(node) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  try {
    const { status, stdout, stderr } = spawnSync(node, [program, directory], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
