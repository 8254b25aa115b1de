import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification, type Vite } from 'vitest/node';
import { compiled } from './scripts/compile-source.mjs';

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

// Where it is set, Node reads and parses every certificate of the system at each start, which takes thrice as long as the
// rest of starting. Tests start Node thousands of times, and talk to nobody but this machine.
delete process.env['NODE_EXTRA_CA_CERTS'];

/**
 * Files that take long come first: one that came last would keep all but one of the workers waiting for it. Of these, those
 * that wait most (seconds less processor time, as TEST_TIMES tells): what computes fills their gaps.
 */
const SLOW = [
  'test/end-to-end/pipeline.test',
  'test/pipelines/kill',
  'test/end-to-end/looking',
  'test/simulation/planted',
  'test/differential/differential',
  'test/end-to-end/run-orphans',
  'test/etcd/network',
  'test/end-to-end/by-hand',
  'test/docs/examples',
  'test/embedded/beliefs',
  'test/end-to-end/through-a-server',
  'test/end-to-end/stumbles',
  'test/pitfalls/etcd-cluster',
  'test/docs/recipes/git',
  'test/pipelines/driver-trouble',
  'test/members/lead',
  'test/embedded/kill',
  'test/tasks/processes',
  'test/pitfalls/etcd',
  'test/dashboard/',
  'test/adapters/git',
  'test/etcd/',
  'test/end-to-end/',
  'test/contract/',
  'test/server/',
  'test/github/processes',
  'test/witness/',
  'test/docs/',
  'test/members/',
  'test/pipelines/',
  'test/pitfalls/',
  'test/security/',
  'test/adapters/',
  'test/embedded/clocks',
  'test/simulation/',
  'test/mcp/',
  'src/core/semaphore.test',
  'src/core/lock.test',
  'src/core/manager/laws',
  'src/core/pipeline/laws',
  'src/core/guard/properties',
  'src/core/deadlock/deadlock.test',
  'test/runtime/',
  'test/scenarios/',
  'test/github/',
];

/**
 * What all random tests begin with: the same each time, so that no change fails for a reason that is older than itself.
 * SIGNALBOX_SEED=random searches anew, and says with what; SIGNALBOX_SEED=NUMBER does the same again.
 */
function seedOfThisRun(): number {
  const asked = process.env['SIGNALBOX_SEED'] ?? '1';
  if (asked !== 'random') return Number(asked);
  const seed = randomInt(2 ** 31);
  console.log(`The random tests search anew: SIGNALBOX_SEED=${seed} does the same again.`);
  return seed;
}

/**
 * COMPILED_SOURCE=true, as `npm test` sets it once scripts/compile-source.mjs has run: Node itself imports the modules of src. To
 * run one file, and to find what depends on a change, vitest compiles them as it goes.
 */
const isCompiled = process.env['COMPILED_SOURCE'] === 'true';

const fromCompiled: Vite.Plugin = {
  name: 'compiled-source',
  enforce: 'pre',
  resolveId(id, importer) {
    const path = id.startsWith('.') && importer !== undefined ? resolve(dirname(importer), id) : id;
    const file = join(compiled, relative(source(''), path).replace(/\.ts$/, '.js'));
    return path.startsWith(source('')) && path.endsWith('.ts') && existsSync(file) ? file : undefined;
  },
};

class SlowFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = SLOW.findIndex((slow) => moduleId.includes(slow));
      return place < 0 ? SLOW.length : place;
    };
    return Promise.resolve([...files].sort((one, other) => rank(one) - rank(other)));
  }
}

export default defineConfig({
  plugins: isCompiled ? [fromCompiled] : [],
  resolve: {
    // Tests and printed examples import the package by its own name and get the source, not the last build.
    alias: [
      { find: /^signalbox$/, replacement: source('index.ts') },
      {
        find: /^signalbox\/(core|store|client|github|metrics|opentelemetry|testing)$/,
        replacement: source('$1/index.ts'),
      },
    ],
  },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    setupFiles: ['test/support/seed.ts', 'test/support/processor-time.ts'],
    reporters: ['default'],
    server: { deps: { external: [/\/\.cache\//] } },
    // Most tests wait for processes and leases more than they compute, so there are more of them than cores. A number,
    // because vitest takes more than 100 % for 100 %.
    maxWorkers: 4 * availableParallelism(),
    // Files share the modules that they import: to load them anew for each takes longer than most files themselves.
    isolate: false,
    sequence: { sequencer: SlowFirst },
    // Nothing is measured here: on a busy machine everything takes longer, and is right all the same.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 300_000 } },
    env: {
      SIGNALBOX_SEED: String(seedOfThisRun()),
      // What the command line keeps for its next start is kept here, and not with whoever runs the tests.
      XDG_CACHE_HOME: fileURLToPath(new URL('./.cache', import.meta.url)),
      // A server of etcd that may use several cores spends a quarter of its time looking for work on the others.
      GOMAXPROCS: '1',
    },
  },
});
