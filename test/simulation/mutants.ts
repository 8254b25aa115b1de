/**
 * Bugs planted on purpose: a copy of the source with one line made wrong, to see that the simulator notices. The line
 * has to be there exactly once, so that a mutant cannot silently turn into the real thing.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
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
  readonly oftener?: Edit;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

export async function simulatorOf(name: string, edits: readonly Edit[]): Promise<typeof simulate> {
  const copy = join(root, '.cache/mutants', name.replaceAll(/\W+/g, '-'));
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { recursive: true });
  cpSync(join(root, 'src'), copy, { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
  for (const edit of edits) spoil(copy, edit);
  const module = (await import(pathToFileURL(join(copy, 'testing/simulation/simulate.ts')).href)) as {
    simulate: typeof simulate;
  };
  return module.simulate;
}

function spoil(copy: string, { file, right, wrong }: Edit): void {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  const places = source.split(right).length - 1;
  if (places !== 1) throw new Error(`${file} has ${places} places like «${right}», not one`);
  writeFileSync(
    path,
    source.replace(right, () => wrong),
  );
}

/** The first seed that shows the bug, and what it shows; undefined if none does. */
export async function caught(
  mutant: Mutant,
  seeds: number,
  workload?: Workload,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
  const { name, oftener } = mutant;
  const run = await simulatorOf(name, oftener === undefined ? [mutant] : [mutant, oftener]);
  return firstViolation(run, seeds, workload);
}

export async function firstViolation(
  run: typeof simulate,
  seeds: number,
  workload?: Workload,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    const { violation } = await run(seed, workload);
    if (violation !== undefined) return { seed, violation: violation.message };
  }
  return undefined;
}
