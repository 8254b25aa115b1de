// What is printed in the documentation runs as it is printed, and the stories in examples/ come out as they are told.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../scripts/ensure.mjs';
import { root } from '../house/sources.ts';
import { type Block, blocksOf, type Ended, isProgram, placeOf, type Program, programsOf, run } from './blocks.ts';

/** Recipes are run by test/docs/recipes, whatever they are written in. */
const LANGUAGES = /^(ts|js|sh|json|toml|text|text prints|text like|\w+ recipe \S+)$/;

const pages = ['README.md', 'ARCHITECTURE.md', ...filesIn('docs', '.md')];
const blocks = pages.flatMap((page) => blocksOf(page, readFileSync(join(root, page), 'utf8')));
const examples = filesIn('examples', '.mjs');

beforeAll(() => {
  expect(build(), 'the package could not be built').toBe(0);
});

describe('the documentation', () => {
  let programs: ReadonlyMap<string, Program>;
  beforeAll(() => {
    programs = new Map(programsOf(blocks.filter(isProgram)).map((program) => [placeOf(program.block), program]));
  });

  it('prints its programs as ts or js, and everything else as something that is not run', () => {
    expect(blocks.filter(({ language }) => !LANGUAGES.test(language)).map(placeOf)).toEqual([]);
  });

  it.concurrent.each(blocks.filter(isProgram).map((block) => [placeOf(block), block] as const))(
    'has a program at %s that runs as printed',
    async (place, block) => {
      const { file, problems } = programs.get(place) as Program;
      expect(problems.join('\n'), `${place} does not compile`).toBe('');
      expectWell(place, await run(file), block);
    },
  );
});

describe('the examples', () => {
  it.concurrent.each(examples)('%s comes out as it is told', async (example) => {
    expectWell(example, await run(join(root, example)));
  });
});

describe('the check of the documentation', () => {
  const page = [
    'Text.',
    '',
    '```ts',
    'one();',
    '```',
    'More.',
    '```text prints',
    '1',
    '```',
    '```sh',
    'ls',
    '```',
  ].join('\n');

  it('finds every block, where it is, and what it has to print', () => {
    expect(blocksOf('page.md', page)).toEqual([
      { page: 'page.md', line: 4, language: 'ts', code: 'one();\n', prints: '1\n' },
      { page: 'page.md', line: 8, language: 'text prints', code: '1\n', prints: undefined },
      { page: 'page.md', line: 11, language: 'sh', code: 'ls\n', prints: undefined },
    ]);
  });

  it('names page and line of a block that does not compile, that throws, and that never ends', async () => {
    const block = (line: number, language: string, code: string): Block => {
      return { page: 'check.md', line, language, code, prints: undefined };
    };
    const [wrong, thrower, waiter] = programsOf([
      block(7, 'ts', 'const fine = 1;\nconst wrong: string = fine;\n'),
      block(20, 'ts', "type Gone = 1;\nthrow new Error('oh');\n"),
      block(40, 'js', 'await new Promise(() => {});\n'),
    ]) as [Program, Program, Program];
    expect(wrong.problems).toEqual(["check.md:8: Type 'number' is not assignable to type 'string'."]);
    expect((await run(thrower.file)).stderr).toMatch(/check\.md-20\.ts:21/);
    expect((await run(waiter.file)).exitCode).toBe(13);
  });
});

function expectWell(place: string, { exitCode, stdout, stderr }: Ended, block?: Block): void {
  expect(exitCode, `${place} ended with ${exitCode}\n${stdout}${stderr}`).toBe(0);
  if (block?.prints !== undefined) expect(stdout, `what ${place} prints`).toBe(block.prints);
}

function filesIn(folder: string, extension: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .sort();
}
