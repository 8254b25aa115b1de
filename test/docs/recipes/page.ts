/**
 * The recipes of docs/shell.md and docs/agents.md. A block whose fence says `recipe NAME` is one, whatever its language; it is run as it is
 * printed. A block marked `text like` shows what the recipe before it prints, up to times, numbers, names of runs, people, directories and machines.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../house/sources.ts';
import { type Block, blocksOf } from '../blocks.ts';

export interface Recipe {
  readonly name: string;
  readonly block: Block;
  /** What the page shows of it, up to the next recipe. */
  readonly shows: readonly string[];
}

export const PAGE = 'docs/shell.md';
/** All that have recipes. */
export const PAGES = [PAGE, 'docs/agents.md'];

export function pageText(page = PAGE): string {
  return readFileSync(join(root, page), 'utf8');
}

export function recipesOf(blocks: readonly Block[]): readonly Recipe[] {
  const recipes: (Recipe & { shows: string[] })[] = [];
  for (const block of blocks) {
    const name = /^\S+ recipe (\S+)$/.exec(block.language)?.[1];
    if (name !== undefined) recipes.push({ name, block, shows: [] });
    else if (block.language === 'text like') recipes.at(-1)?.shows.push(block.code);
  }
  return recipes;
}

export function recipe(name: string): Recipe {
  const all = PAGES.flatMap((page) => recipesOf(blocksOf(page, pageText(page))));
  const found = all.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no page has a recipe ${name}`);
  return found;
}

/** What stays the same each time that it is printed. */
export function shapeOf(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\brun:[\w.-]+:\d+:[0-9a-f]+/g, 'RUN')
    .replace(/\bpid \d+ on \S+/g, 'PID')
    .replace(/· \S+ in [^·\n]+?(?= ·|$)/gm, '· PERSON')
    .replace(/· on \S+/g, '· HOST')
    .replace(/\buser:\S+/g, 'USER')
    .replace(/\d+ (ms|s|min|h|d)\b/g, 'DURATION')
    .replace(/\d+/g, 'N')
    .replace(/[ \t]+/g, ' ')
    .trim();
}
