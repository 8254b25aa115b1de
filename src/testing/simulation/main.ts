/**
 * `npm run simulate -- --seeds 1000` or `--seed 42`: runs seeds on all cores, and shows the trace of the first that fails.
 *
 * Each core has its own process, which asks for the next few seeds when it is done with the last. A process that is silent for
 * long is in an endless loop: its seed has failed.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Seeds, type Share, type State, stateIn, type Tally } from './seeds.ts';
import { simulate } from './simulate.ts';
import { type Workload, workloadOf, WORKLOADS } from './workloads.ts';

/** No seed takes this long, however busy the machine. */
const SILENT_MS = 300_000;
/**
 * After this many seeds, a new process takes over, because a few kB of each remain. Not much sooner: a new process is slow
 * until V8 has compiled what runs often.
 */
const SEEDS_PER_PROCESS = 10_000;
const NODE_OPTIONS = ['--max-semi-space-size=32', '--stack-trace-limit=0'];

interface Failed {
  readonly seed: number;
  readonly workload: Workload;
  readonly what: string;
}

type Told = { readonly begins: Omit<Failed, 'what'> } | { readonly share: Share; readonly tally: Tally } | Failed;

const { values } = parsed({
  options: {
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    workload: { type: 'string', multiple: true },
    tasks: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    state: { type: 'string' },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (process.send !== undefined && process.env['SIGNALBOX_SIMULATION'] === 'share') {
  process.on('message', (share) => void runShare(share));
  // The parent gets Ctrl-C as well, and ends this process; if the parent is killed, this process ends too.
  process.on('SIGINT', () => undefined);
  process.on('disconnect', () => process.exit());
} else if (values.help) {
  console.log(`Runs simulated processes on the production code, one run per seed and workload.

  --seeds N        the number of seeds, from --from on (100)
  --from S         the first seed (1)
  --seed S         just this one
  --workload W     what users do: ${Object.keys(WORKLOADS).join(', ')}, or all; may be repeated
                   (without it each seed runs one of them)
  --tasks          the same as --workload tasks
  --jobs N         the number of processes (one for each core)
  --state FILE     keeps in FILE which seed is next and the figures so far, and goes on from there the next time,
                   also after Ctrl-C or kill -9
  --trace          also show what happened in runs that went well; with --seed

Example: npm run simulate -- --seed 42 --workload holds --trace`);
} else process.exitCode = values.seed === undefined ? await runSeeds() : await runOne(whole(values.seed));

function parsed<T extends Parameters<typeof parseArgs>[0]>(config: T): ReturnType<typeof parseArgs<NonNullable<T>>> {
  try {
    return parseArgs(config as NonNullable<T>);
  } catch (error) {
    return refuse((error as Error).message.split('\n')[0] ?? '');
  }
}

/** The workloads that every seed runs; undefined if each seed runs one. */
function workloads(): readonly Workload[] | undefined {
  const named = values.workload ?? (values.tasks ? ['tasks'] : undefined);
  if (named === undefined) return undefined;
  const all = Object.keys(WORKLOADS) as Workload[];
  if (named.includes('all')) return all;
  const unknown = named.find((name) => !(all as string[]).includes(name));
  if (unknown !== undefined) refuse(`${JSON.stringify(unknown)} is no workload; there are ${all.join(', ')} and all`);
  return named as Workload[];
}

async function runOne(seed: number): Promise<number> {
  for (const workload of workloads() ?? [workloadOf(seed)]) {
    const report = await simulate(seed, workload);
    if (report.violation !== undefined || values.trace) console.log(report.trace.join('\n'));
    if (report.violation !== undefined) return told({ seed, workload, what: report.violation.message });
    console.log(`seed ${seed}, ${workload}: ${report.grants} grants, no violation`);
  }
  return 0;
}

function told({ seed, workload, what }: Failed): number {
  console.log(`\nseed ${seed}, ${workload}: ${what}`);
  console.log(`again with: npm run simulate -- --seed ${seed} --workload ${workload}`);
  return 1;
}

async function runSeeds(): Promise<number> {
  const state = earlier();
  const from = state?.next ?? whole(values.from);
  const seeds = new Seeds(from, whole(values.seeds), workloads(), values.state, state?.sum);
  const jobs = values.jobs === undefined ? availableParallelism() : whole(values.jobs);
  process.once('SIGINT', () => {
    console.log(`\n${seeds.told(false)}`);
    process.exit(130);
  });
  const failed = await runBeside(seeds, jobs);
  console.log(seeds.told(failed === undefined));
  if (failed === undefined) return 0;
  // Runs the seed once more, with its trace, unless it never ends.
  if (!failed.what.startsWith('it never ends')) {
    console.log((await simulate(failed.seed, failed.workload)).trace.join('\n'));
  }
  return told(failed);
}

async function run(
  { from, count, workloads }: Share,
  begins: (run: Omit<Failed, 'what'>) => void,
): Promise<Tally | Failed> {
  const tally: Tally = { seeds: count, grants: 0, virtualMs: 0, faults: {} };
  for (let seed = from; seed < from + count; seed++) {
    for (const workload of workloads ?? [workloadOf(seed)]) {
      begins({ seed, workload });
      const { violation, grants, virtualMs, faults } = await simulate(seed, workload, false);
      if (violation !== undefined) return { seed, workload, what: violation.message };
      tally.grants += grants;
      tally.virtualMs += virtualMs;
      for (const [fault, times] of faults) tally.faults[fault] = (tally.faults[fault] ?? 0) + times;
    }
  }
  return tally;
}

/** Runs in this many processes; the first failure ends all of them. */
function runBeside(seeds: Seeds, jobs: number): Promise<Failed | undefined> {
  const children = new Set<ReturnType<typeof fork>>();
  return new Promise((resolve) => {
    let isOver = false;
    const end = (failed: Failed | undefined): void => {
      isOver = true;
      for (const child of children) child.kill('SIGKILL');
      resolve(failed);
    };
    const begin = (): void => {
      if (isOver) return;
      const share = seeds.take();
      if (share === undefined) return void (children.size === 0 && end(undefined));
      const child = fork(fileURLToPath(import.meta.url), {
        execArgv: NODE_OPTIONS,
        env: { ...process.env, SIGNALBOX_SIMULATION: 'share' },
      });
      children.add(child);
      let done = 0;
      let at: Omit<Failed, 'what'> = { seed: share.from, workload: share.workloads?.[0] ?? workloadOf(share.from) };
      const silent = setTimeout(() => end({ ...at, what: `it never ends` }), SILENT_MS);
      child.on('message', (message) => {
        silent.refresh();
        const news = message as Told;
        if ('begins' in news) at = news.begins;
        else if ('what' in news) end(news);
        else {
          seeds.add(news.share, news.tally);
          done += news.tally.seeds;
          const next = done < SEEDS_PER_PROCESS ? seeds.take() : undefined;
          if (next !== undefined) return void child.send(next);
          child.disconnect();
        }
      });
      child.once('exit', (code, signal) => {
        clearTimeout(silent);
        children.delete(child);
        if (code !== 0) end({ ...at, what: `its process ended with ${code ?? signal}` });
        else begin();
      });
      child.send(share);
    };
    for (let job = 0; job < jobs; job++) begin();
  });
}

async function runShare(share: unknown): Promise<void> {
  const result = await run(share as Share, (begins) => process.send?.({ begins } satisfies Told));
  process.send?.(('what' in result ? result : { share: share as Share, tally: result }) satisfies Told);
}

function earlier(): State | undefined {
  try {
    return values.state === undefined ? undefined : stateIn(values.state);
  } catch {
    return refuse(`${values.state} is not a file that --state wrote`);
  }
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  return refuse(`${JSON.stringify(text)} is not a whole number from 1 up`);
}

function refuse(why: string): never {
  console.error(`${why}\nSee npm run simulate -- --help`);
  process.exit(64);
}
