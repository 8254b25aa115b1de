/** `npm run simulate -- --seeds 1000` or `--seed 42`: runs seeds, and shows the trace of the first that fails. */
import { parseArgs } from 'node:util';
import { simulate } from './simulate.ts';

const { values } = parsed({
  options: {
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    tasks: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) {
  console.log(`Runs simulated processes on the production code, one run per seed.

  --seeds N    so many runs, from --from on (100)
  --from S     the first seed (1)
  --seed S     just this one
  --tasks      workers that publish, claim and finish tasks; otherwise they use locks and semaphores
  --trace      also show what happened in runs that went well

Example: npm run simulate -- --seed 42 --trace`);
} else {
  const first = whole(values.seed ?? values.from);
  const count = values.seed === undefined ? whole(values.seeds) : 1;
  process.exitCode = await runSeeds(first, count);
}

function parsed<T extends Parameters<typeof parseArgs>[0]>(config: T): ReturnType<typeof parseArgs<NonNullable<T>>> {
  try {
    return parseArgs(config as NonNullable<T>);
  } catch (error) {
    console.error(`${(error as Error).message.split('\n')[0]}\nSee npm run simulate -- --help`);
    process.exit(64);
  }
}

async function runSeeds(first: number, count: number): Promise<number> {
  let grants = 0;
  let virtualMs = 0;
  for (let seed = first; seed < first + count; seed++) {
    const report = await simulate(seed, values.tasks ? 'tasks' : 'holds');
    grants += report.grants;
    virtualMs += report.virtualMs;
    if (report.violation !== undefined || values.trace) console.log(report.trace.join('\n'));
    if (report.violation !== undefined) {
      console.log(`\nseed ${seed}: ${report.violation.message}`);
      console.log(`again with: npm run simulate -- --seed ${seed}${values.tasks ? ' --tasks' : ''}`);
      return 1;
    }
    if ((seed - first + 1) % 100 === 0) console.log(`${seed - first + 1} of ${count} seeds, ${grants} grants`);
  }
  const hours = (virtualMs / 3_600_000).toFixed(1);
  console.log(`${count} seeds, ${grants} grants, ${hours} virtual hours: no violation`);
  return 0;
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`${JSON.stringify(text)} is not a whole number from 1 up\nSee npm run simulate -- --help`);
  process.exit(64);
}
