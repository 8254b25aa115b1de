// What the checks of this folder share: the files of the repository, and the imports of one of them.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'rolldown/utils';

/** A file by its path from the repository's root, with forward slashes: `src/core/lock.ts`. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** One module that a file asks for, by `import`, `export … from`, a type, or a call. */
export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** The path it leads to, if it is relative. */
  readonly target: string | undefined;
  /** Nothing is left of it when the program runs. */
  readonly isType: boolean;
}

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export function sourcesUnder(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) =>
      relative(root, join(root, folder, path))
        .split(sep)
        .join('/'),
    )
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

export function isTest(source: Source): boolean {
  return source.path.endsWith('.test.ts');
}

/** A node of a file's syntax tree, as ESTree names it. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [part: string]: unknown;
}

export function parse({ path, text }: Source): SyntaxNode {
  const { program, errors } = parseSync(path, text, { lang: path.endsWith('x') ? 'tsx' : 'ts', sourceType: 'module' });
  if (errors.length > 0)
    throw new Error(`${path} cannot be parsed: ${errors.map(({ message }) => message).join(', ')}`);
  return program as unknown as SyntaxNode;
}

/** Calls `visit` with every node of a tree, each after the node that it is a part of. */
export function walk(
  node: SyntaxNode,
  visit: (node: SyntaxNode, parents: readonly SyntaxNode[]) => void,
  parents: readonly SyntaxNode[] = [],
): void {
  visit(node, parents);
  const above = [node, ...parents];
  for (const part of Object.values(node)) {
    for (const child of Array.isArray(part) ? part : [part]) if (isNode(child)) walk(child, visit, above);
  }
}

export function isNode(part: unknown): part is SyntaxNode {
  return typeof part === 'object' && part !== null && typeof (part as Partial<SyntaxNode>).type === 'string';
}

export function lineOf({ text }: Source, { start }: SyntaxNode): number {
  return text.slice(0, start).split('\n').length;
}

/** Several checks ask for those of the same file, and to parse it takes longer than to check it. */
const known = new WeakMap<Source, readonly Import[]>();

export function importsOf(source: Source): readonly Import[] {
  const imports = known.get(source) ?? findImports(source);
  known.set(source, imports);
  return imports;
}

function findImports(source: Source): readonly Import[] {
  const found: Import[] = [];
  walk(parse(source), (node) => {
    const specifier = specifierIn(node);
    if (specifier === undefined) return;
    const target = /^\.\.?(\/|$)/.test(specifier) ? posix.join(posix.dirname(source.path), specifier) : undefined;
    const isType = (node['importKind'] ?? node['exportKind']) === 'type' || node.type === 'TSImportType';
    found.push({ specifier, line: lineOf(source, node), target, isType });
  });
  return found;
}

function specifierIn(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return textOf(node['source']);
    case 'TSExternalModuleReference':
      return textOf(node['expression']);
    default:
      return undefined;
  }
}

function textOf(part: unknown): string | undefined {
  if (!isNode(part)) return undefined;
  if (part.type === 'Literal') return typeof part['value'] === 'string' ? part['value'] : undefined;
  const [text, ...more] = part.type === 'TemplateLiteral' ? (part['quasis'] as { value: { cooked: string } }[]) : [];
  return more.length === 0 ? text?.value.cooked : undefined;
}
