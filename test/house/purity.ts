// What keeps `src/core` pure: a decision may depend on its arguments only, because the runtime runs it again on newer
// state after losing a race, and the simulator runs it under a time and a chance of its own.

import ts from 'typescript';
import { importsOf, isTest, lineOf, parse, type Source } from './sources.ts';

const CORE = 'src/core/';

/** What a test beside a machine may import besides core itself. */
const TEST_PACKAGES = /^(vitest|fast-check|node:.+)$/;

const FORBIDDEN_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'a clock': ['Date', 'performance', 'Temporal', 'Intl'],
    'a timer': [
      ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'],
      ...['queueMicrotask', 'scheduler', 'AbortSignal', 'AbortController', 'Atomics'],
    ],
    randomness: ['crypto', 'Crypto', 'WeakRef', 'FinalizationRegistry'],
    'the network': [
      'fetch',
      'WebSocket',
      'EventSource',
      'XMLHttpRequest',
      'BroadcastChannel',
      'MessageChannel',
      'Worker',
    ],
    'the process': ['process', 'console', 'Buffer', 'require', '__dirname', '__filename'],
    'every global at once': ['globalThis', 'global', 'window', 'self', 'eval', 'Function'],
    'a later turn': ['Promise', 'PromiseLike'],
  }).flatMap(([what, names]) => names.map((name) => [name, what] as const)),
);

/** Every reason why this file of `src/core` is not pure, with its line; none if it is. */
export function impurities(source: Source): string[] {
  const imports = strayImports(source);
  return isTest(source) ? imports : [...imports, ...effects(source)];
}

function strayImports(source: Source): string[] {
  return importsOf(source)
    .filter(({ target, specifier }) => {
      if (target !== undefined) return !target.startsWith(CORE);
      return !(isTest(source) && TEST_PACKAGES.test(specifier));
    })
    .map(({ specifier, line }) => `${source.path}:${line} imports ${specifier}, which is outside core`);
}

function effects(source: Source): string[] {
  const file = parse(source);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const effect = effectOf(node);
    if (effect !== undefined) found.push(`${source.path}:${lineOf(file, node)} ${effect}`);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function effectOf(node: ts.Node): string | undefined {
  if (ts.isIdentifier(node)) return effectOfName(node);
  if (ts.isAwaitExpression(node) || node.kind === ts.SyntaxKind.AwaitKeyword) return 'awaits';
  if (node.kind === ts.SyntaxKind.AsyncKeyword) return 'is async';
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return 'imports at run time';
  if (ts.isMetaProperty(node) && node.keywordToken === ts.SyntaxKind.ImportKeyword)
    return 'asks where it is (import.meta)';
  if (ts.isVariableDeclarationList(node)) return effectOfVariables(node);
  return undefined;
}

function effectOfName(name: ts.Identifier): string | undefined {
  if (isMemberName(name)) {
    return /^(localeCompare|toLocale\w+)$/.test(name.text)
      ? `depends on the machine's locale (${name.text})`
      : undefined;
  }
  if (name.text === 'Math') return effectOfMath(name);
  const what = FORBIDDEN_NAMES.get(name.text);
  return what === undefined ? undefined : `touches ${what} (${name.text})`;
}

/** `Math` is pure but for one member; taken apart or passed on, it may be that one. */
function effectOfMath(math: ts.Identifier): string | undefined {
  const { parent } = math;
  if (ts.isPropertyAccessExpression(parent) && parent.expression === math) {
    return parent.name.text === 'random' ? 'touches randomness (Math.random)' : undefined;
  }
  return 'may touch randomness (Math other than as Math.name)';
}

function effectOfVariables(list: ts.VariableDeclarationList): string | undefined {
  if ((list.flags & ts.NodeFlags.AwaitUsing) === ts.NodeFlags.AwaitUsing) return 'awaits (await using)';
  const isConstant = (list.flags & ts.NodeFlags.BlockScoped) !== 0 && (list.flags & ts.NodeFlags.Let) === 0;
  const isOfModule = ts.isVariableStatement(list.parent) && ts.isSourceFile(list.parent.parent);
  return isOfModule && !isConstant ? 'remembers between calls (a variable of the module)' : undefined;
}

/** `name` in `thing.name`, `{ name: … }` or `interface { name: … }` is a word of ours and no global. */
function isMemberName(name: ts.Identifier): boolean {
  const { parent } = name;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === name;
  if (ts.isQualifiedName(parent)) return parent.right === name;
  if (ts.isBindingElement(parent) || ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent)) {
    return parent.propertyName === name;
  }
  return (
    (ts.isPropertyAssignment(parent) ||
      ts.isPropertySignature(parent) ||
      ts.isPropertyDeclaration(parent) ||
      ts.isMethodSignature(parent) ||
      ts.isMethodDeclaration(parent) ||
      ts.isGetAccessor(parent) ||
      ts.isSetAccessor(parent) ||
      ts.isNamedTupleMember(parent)) &&
    parent.name === name
  );
}
