/**
 * Bugs planted on purpose: the simulator of a source with one line made wrong, to see that it notices. The line has to be
 * there exactly once, so that a mutant cannot silently turn into the real thing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { simulate, Workload } from '../../src/testing/simulation/simulate.ts';

export interface Edit {
  readonly file: string;
  readonly right: string;
  readonly wrong: string;
}

export interface Mutant extends Edit {
  /** What a user would suffer. */
  readonly name: string;
  /** No bug, but it makes what the bug is about happen more often. */
  readonly oftener?: readonly Edit[];
  /** The seed that showed it when it was last searched for. */
  readonly shownBy: number;
  /** The workload that shows it; by default each seed runs the one of its turn. */
  readonly workload?: Workload;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

export async function simulatorOf(name: string, edits: readonly Edit[]): Promise<typeof simulate> {
  const file = await bundleOf('src/testing/simulation/simulate.ts', `mutants/${name.replaceAll(/\W+/g, '-')}`, edits);
  const module = (await import(pathToFileURL(file).href)) as { simulate: typeof simulate };
  return module.simulate;
}

/** Makes one file of a program: to load the three hundred of the source takes longer than to simulate with them. */
export async function bundleOf(program: string, name: string, edits: readonly Edit[]): Promise<string> {
  const wrong = new Map<string, string>();
  for (const { file, ...edit } of edits) {
    const path = join(root, 'src', file);
    wrong.set(path, spoilt(wrong.get(path) ?? readFileSync(path, 'utf8'), { file, ...edit }));
  }
  const made = await rolldown({
    input: join(root, program),
    platform: 'node',
    external: (id) => /^[a-z@]/.test(id),
    plugins: [{ name: 'planted', load: (id) => wrong.get(id) ?? null }],
  });
  const file = join(root, '.cache', `${name}.mjs`);
  await made.write({ file, format: 'esm', codeSplitting: false });
  await made.close();
  return file;
}

function spoilt(source: string, { file, right, wrong }: Edit): string {
  const places = source.split(right).length - 1;
  if (places !== 1) throw new Error(`${file} has ${places} places like «${right}», not one`);
  return source.replace(right, () => wrong);
}

/**
 * The seed that shows the bug, and what it shows; undefined if none does. The seed that is remembered is tried first:
 * every search goes through hundreds of runs. A change of the source may have shifted the schedules; then the search
 * finds another one, and says which to remember.
 */
export async function caught(
  mutant: Mutant,
  seeds: number,
  workload?: Workload,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
  const { name, oftener = [], shownBy } = mutant;
  const run = await simulatorOf(name, [mutant, ...oftener]);
  const { violation } = await run(shownBy, workload, false);
  if (violation !== undefined) return { seed: shownBy, violation: violation.message };
  const found = await firstViolation(run, seeds, workload);
  if (found !== undefined) console.warn(`seed ${shownBy} shows it no longer; remember ${found.seed} for: ${name}`);
  return found;
}

export async function firstViolation(
  run: typeof simulate,
  seeds: number,
  workload?: Workload,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    const { violation } = await run(seed, workload, false);
    if (violation !== undefined) return { seed, violation: violation.message };
  }
  return undefined;
}
