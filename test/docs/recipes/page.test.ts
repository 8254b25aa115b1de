// docs/shell.md as a whole: nothing on it is left untried, and nothing is named that does not exist.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../../src/cli/exit-code.ts';
import { wholeProgram } from '../../../src/cli/program.ts';
import { root } from '../../house/sources.ts';
import { blocksOf, placeOf } from '../blocks.ts';
import { everyCommand, hasOption, shellCodeOf, unknownIn } from './named-commands.ts';
import { PAGE, PAGES, pageText, recipesOf, shapeOf } from './page.ts';

const blocks = blocksOf(PAGE, pageText());
const pages = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))].map((name) =>
  name === 'README.md' ? name : `docs/${name}`,
);

describe(PAGE, async () => {
  const program = await wholeProgram();

  it('has only recipes to copy, each under a name of its own, and shows only what is compared', () => {
    expect(blocks.filter(({ language }) => !/ (recipe \S+|like)$/.test(language)).map(placeOf)).toEqual([]);
    const names = recipesOf(blocks).map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });

  it('has no recipe that is not tried', () => {
    const here = join(root, 'test', 'docs', 'recipes');
    const tests = readdirSync(here).filter((name) => name.endsWith('.test.ts'));
    const text = tests.map((name) => readFileSync(join(here, name), 'utf8')).join('\n');
    const everywhere = PAGES.flatMap((page) => recipesOf(blocksOf(page, pageText(page))));
    const untried = everywhere.filter(({ name }) => !new RegExp(`(try|keep|text|tryMany)\\(.*'${name}'`).test(text));
    expect(untried.map(({ name }) => name)).toEqual([]);
    const uncompared = recipesOf(blocks).filter(
      ({ name, shows }) => shows.length > 0 && !text.includes(`recipe('${name}').shows`),
    );
    expect(uncompared.map(({ name }) => name)).toEqual([]);
  });

  it('lists every exit code but that of a bug', () => {
    const codes = Object.values(EXIT).filter((code) => code !== EXIT.internal);
    expect(codes.filter((code) => !pageText().includes(`\n| ${code} |`))).toEqual([]);
  });

  it('names in passing only options that some command has', () => {
    const named = [...pageText().matchAll(/`(--?[a-z-]+)[^`]*`/g)].map(([, option]) => option as string);
    const ofOthers = ['-e', '-j'];
    const unknown = named.filter((option) => !everyCommand(program).some((command) => hasOption(command, option)));
    expect(unknown.filter((option) => !ofOthers.includes(option))).toEqual([]);
  });

  it.each(pages)('as every page calls only commands that exist, with options that they have: %s', (page) => {
    expect(unknownIn(shellCodeOf(page, readFileSync(join(root, page), 'utf8')), program)).toEqual([]);
  });
});

describe('the check of the recipes', async () => {
  const program = await wholeProgram();

  it.each([
    ['signalbox run --lock a --no-wait -- git push --force', []],
    ['x=$(signalbox lock acquire a --holder b) || signalbox who --nobody', ['--nobody']],
    ['signalbox lock steal a', ['steal']],
    ['signalbox run --sem "a=$1/6" \\\n  --wiat 2m -- true', ['--wiat']],
    ['signalbox explode', ['explode']],
    ['signalbox lock renew a --ttl 5m --shared', ['--shared']],
  ])('finds in %j what does not exist', (text, unknown) => {
    expect(unknownIn(text, program).map((problem) => problem.split(': ').at(-1))).toEqual(unknown);
  });

  it('finds the recipes, and what the page shows of each', () => {
    const page = [
      '```sh recipe one',
      'true',
      '```',
      '```text like',
      'a 12 s',
      '```',
      '```make recipe two',
      'x:',
      '```',
    ];
    const found = recipesOf(blocksOf('page.md', page.join('\n')));
    expect(found.map(({ name, shows }) => [name, shows])).toEqual([
      ['one', ['a 12 s\n']],
      ['two', []],
    ]);
  });

  it('compares what is printed up to times, numbers and names of runs, and not more', () => {
    const one = 'lock/a  held by run:vm:12:ab0f  for 12 s since 2030-01-02T03:04:05.678Z';
    expect(shapeOf(one)).toBe(
      shapeOf('lock/a held by run:build-3:4711:c0ffee for 300 ms since 2031-01-02T03:04:05.1Z'),
    );
    expect(shapeOf(one)).not.toBe(shapeOf(one.replace('held', 'left')));
  });
});
