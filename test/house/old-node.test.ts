// Node 20 runs the source as it is written here, but for its types.

import { describe, expect, it } from 'vitest';
import { isTest, lineOf, parse, type Source, sourcesUnder, walk } from './sources.ts';

/** `using` and `await using` are syntax errors there. */
function usings(source: Source): string[] {
  const found: string[] = [];
  // To parse all of them takes seconds, and few have the word.
  if (!/\busing\b/.test(source.text)) return found;
  walk(parse(source), (node) => {
    const { kind } = node as { readonly kind?: unknown };
    if (node.type !== 'VariableDeclaration' || (kind !== 'using' && kind !== 'await using')) return;
    found.push(`${source.path}:${lineOf(source, node)} has ${kind}; write try and finally`);
  });
  return found;
}

describe('the source', () => {
  it('has no syntax that Node 20 does not know', () => {
    expect(
      sourcesUnder('src')
        .filter((source) => !isTest(source))
        .flatMap(usings),
    ).toEqual([]);
  });

  it('is seen to have it', () => {
    const text = 'export async function f(box) {\n  await using hold = box;\n  using other = hold;\n}\n';
    expect(usings({ path: 'a.ts', text })).toEqual([
      'a.ts:2 has await using; write try and finally',
      'a.ts:3 has using; write try and finally',
    ]);
  });
});
