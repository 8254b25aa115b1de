/** What does it cost to put a command under a lock, compared with starting Node at all? */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureOtherNode } from '../scripts/nodes.mjs';
import { driverOf, machine } from './measure/machine.mjs';
import { median, quantile } from './measure/rounds.mjs';

const ROUNDS = 60;
const WARM_UP = 5;

const root = fileURLToPath(new URL('..', import.meta.url));
const { bin = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const command = join(root, typeof bin === 'string' ? bin : (bin.signalbox ?? 'dist/cli/main.js'));
if (!existsSync(command)) {
  console.error(`there is no ${command} yet`);
  process.exit(1);
}

// On both drivers of SQLite: each by a Node that uses it, and beside a bare start of the same Node.
const other = ensureOtherNode();
console.log(machine());
for (const node of other === undefined ? [process.execPath] : [process.execPath, other]) measure(node);

function measure(node) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const store = `file:${join(directory, 'store')}`;
  const contenders = {
    'signalbox run --lock x -- true': [command, 'run', '--store', store, '--lock', 'x', '--', 'true'],
    'signalbox --version': [command, '--version'],
    'node -e 0': ['-e', '0'],
  };
  const names = Object.keys(contenders);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const ms = run(node, contenders[name]);
        if (round >= 0) times[name].push(ms);
      }
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
  console.log(driverOf(node));
  const bare = times['node -e 0'];
  for (const name of names) {
    const [low, high] = [quantile(times[name], 0.1), quantile(times[name], 0.9)];
    const ratio = median(times[name].map((ms, round) => ms / bare[round]));
    const goal = name === names[0] ? ' (goal ≤ 1.5)' : '';
    console.log(
      `  ${name.padEnd(32)} ${median(times[name]).toFixed(1)} ms (${low.toFixed(1)}–${high.toFixed(1)}), ${ratio.toFixed(2)} × bare Node${goal}`,
    );
  }
}

/** By Node itself, as the first line of an installed command has it; so the two differ by nothing else. */
function run(node, args) {
  const start = process.hrtime.bigint();
  const { status, stderr } = spawnSync(node, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return ms;
}
