/**
 * Bugs planted on purpose: the simulator of a source with one line made wrong, to see that it notices. The line has to be
 * there exactly once, so that a mutant cannot silently turn into the real thing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
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
const src = join(root, 'src');

/** Of the source with these edits. `name` is what its stack traces show. */
export async function simulatorOf(name: string, edits: readonly Edit[]): Promise<typeof simulate> {
  const module = await loaded('testing/simulation/simulate.ts', name, edits);
  return (module as { simulate: typeof simulate }).simulate;
}

/** By the paths of modules: functions that are called as CommonJS calls those of its files. */
type Compiled = ReadonlyMap<string, Script>;

let source: Promise<Compiled> | undefined;

/**
 * Loads a module of src with these edits, and all that it imports anew. Every module is compiled once for all mutants,
 * and only those with an edit once more: to bundle and parse the whole source takes longer than most mutants run.
 */
export async function loaded(module: string, name: string, edits: readonly Edit[]): Promise<unknown> {
  const right = await (source ??= compiledSource());
  const wrong = new Map<string, Script>();
  for (const [path, text] of spoiltFiles(edits)) wrong.set(path, await compiledAlone(path, text, name));
  const begun = new Map<string, { exports: unknown }>();
  const load = (path: string): unknown => {
    const earlier = begun.get(path);
    if (earlier !== undefined) return earlier.exports;
    const script = wrong.get(path) ?? right.get(path);
    if (script === undefined) throw new Error(`there is no module ${path}`);
    const begins = { exports: {} };
    begun.set(path, begins);
    const elsewhere = createRequire(path);
    const required = (id: string): unknown => (/^[./]/.test(id) ? load(resolve(dirname(path), id)) : elsewhere(id));
    const run = script.runInThisContext() as (...given: readonly unknown[]) => void;
    run(begins.exports, required, begins, path);
    return begins.exports;
  };
  const found = load(join(src, module));
  const unused = [...wrong.keys()].filter((path) => !begun.has(path));
  if (unused.length > 0) throw new Error(`${module} does not import ${unused.join(', ')}`);
  return found;
}

/** Without programs, which are run and not imported, and without the page, which is for browsers. */
async function compiledSource(): Promise<Compiled> {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/^(bin|cli|dashboard)\/|\b(main|cluster-member|test|d)\.ts$/.test(path))
    .map((path) => join(src, path));
  const chunks = await commonCode(files);
  return new Map(chunks.map(({ fileName, code }) => [join(src, fileName), scriptOf(code, join(src, fileName))]));
}

async function compiledAlone(module: string, text: string, name: string): Promise<Script> {
  const [chunk] = await commonCode([module], {
    name: 'planted',
    load: () => text,
    resolveId: (id, importer) =>
      importer === undefined
        ? module
        : { id: id.startsWith('.') ? resolve(dirname(importer), id) : id, external: true },
  });
  return scriptOf(chunk?.code ?? '', `${module} (${name})`);
}

/** Each module as it is: whichever the others import of it must be there, and be read where it is used. */
async function commonCode(modules: readonly string[], plugin?: Plugin): Promise<readonly OutputChunk[]> {
  const made = await rolldown({
    input: [...modules],
    platform: 'node',
    external: (id) => /^[a-z@]/.test(id),
    makeAbsoluteExternalsRelative: false,
    treeshake: false,
    optimization: { inlineConst: false },
    checks: { circularDependency: false },
    plugins: [plugin],
  });
  const form = { preserveModules: true, preserveModulesRoot: src, entryFileNames: '[name].ts' } as const;
  const { output } = await made.generate({ ...form, format: 'cjs' });
  await made.close();
  return output.filter((one) => one.type === 'chunk');
}

function scriptOf(code: string, filename: string): Script {
  return new Script(`(function (exports, require, module, __filename) {${code}\n})`, { filename });
}

function spoiltFiles(edits: readonly Edit[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const edit of edits) {
    const path = join(src, edit.file);
    texts.set(path, spoilt(texts.get(path) ?? readFileSync(path, 'utf8'), edit));
  }
  return texts;
}

/** Makes one file of a program: to load the three hundred of the source takes longer than to simulate with them. */
export async function bundleOf(program: string, name: string, edits: readonly Edit[]): Promise<string> {
  const wrong = spoiltFiles(edits);
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
