// What the checks of this folder share: the files of the repository, and the imports of one of them.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

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
}

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export function sourcesUnder(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
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

export function parse(source: Source): ts.SourceFile {
  return ts.createSourceFile(source.path, source.text, ts.ScriptTarget.ESNext, true);
}

export function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}

export function importsOf(source: Source): Import[] {
  const file = parse(source);
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    const specifier = specifierIn(node);
    if (specifier !== undefined) {
      const target = /^\.\.?(\/|$)/.test(specifier) ? posix.join(posix.dirname(source.path), specifier) : undefined;
      found.push({ specifier, line: lineOf(file, node), target });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function specifierIn(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return textOf(node.moduleSpecifier);
  if (ts.isImportTypeNode(node)) return ts.isLiteralTypeNode(node.argument) ? textOf(node.argument.literal) : undefined;
  if (ts.isExternalModuleReference(node)) return textOf(node.expression);
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return textOf(node.arguments[0]);
  return undefined;
}

function textOf(node: ts.Node | undefined): string | undefined {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined;
}
