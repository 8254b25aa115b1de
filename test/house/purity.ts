// What keeps `src/core` pure: a decision may depend on its arguments only, because the runtime runs it again on newer
// state after losing a race, and the simulator runs it under a time and a chance of its own.

import { importsOf, isNode, isTest, lineOf, parse, type Source, type SyntaxNode, walk } from './sources.ts';

const CORE = 'src/core/';
/** What tests hold the machines to. */
const LAWS = 'test/laws/';

/** What a test beside a machine may import besides core and the laws. */
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
      if (target !== undefined) return !(target.startsWith(CORE) || (isTest(source) && target.startsWith(LAWS)));
      return !(isTest(source) && TEST_PACKAGES.test(specifier));
    })
    .map(({ specifier, line }) => `${source.path}:${line} imports ${specifier}, which is outside core`);
}

function effects(source: Source): string[] {
  const found: string[] = [];
  walk(parse(source), (node, parents) => {
    const effect = effectOf(node, parents);
    if (effect !== undefined) found.push(`${source.path}:${lineOf(source, node)} ${effect}`);
  });
  return found;
}

function effectOf(node: SyntaxNode, parents: readonly SyntaxNode[]): string | undefined {
  if (node['async'] === true) return 'is async';
  switch (node.type) {
    case 'Identifier':
      return effectOfName(node, parents[0]);
    case 'AwaitExpression':
      return 'awaits';
    case 'ForOfStatement':
      return node['await'] === true ? 'awaits' : undefined;
    case 'ImportExpression':
      return 'imports at run time';
    case 'MetaProperty':
      return nameOf(node['meta']) === 'import' ? 'asks where it is (import.meta)' : undefined;
    case 'VariableDeclaration':
      return effectOfVariables(node, parents);
    default:
      return undefined;
  }
}

function effectOfName(identifier: SyntaxNode, parent: SyntaxNode | undefined): string | undefined {
  const name = nameOf(identifier) ?? '';
  if (isMemberName(identifier, parent)) {
    return /^(localeCompare|toLocale\w+)$/.test(name) ? `depends on the machine's locale (${name})` : undefined;
  }
  if (name === 'Math') return effectOfMath(identifier, parent);
  const what = FORBIDDEN_NAMES.get(name);
  return what === undefined ? undefined : `touches ${what} (${name})`;
}

/** `Math` is pure but for one member; taken apart or passed on, it may be that one. */
function effectOfMath(math: SyntaxNode, parent: SyntaxNode | undefined): string | undefined {
  if (parent?.type === 'MemberExpression' && parent['object'] === math && parent['computed'] === false) {
    return nameOf(parent['property']) === 'random' ? 'touches randomness (Math.random)' : undefined;
  }
  return 'may touch randomness (Math other than as Math.name)';
}

function effectOfVariables({ kind }: SyntaxNode, [parent, above]: readonly SyntaxNode[]): string | undefined {
  if (kind === 'await using') return 'awaits (await using)';
  const statement = parent?.type === 'ExportNamedDeclaration' ? above : parent;
  const isOfModule = statement?.type === 'Program';
  return isOfModule && kind !== 'const' && kind !== 'using'
    ? 'remembers between calls (a variable of the module)'
    : undefined;
}

/** `name` in `thing.name`, `{ name: … }` or `interface { name: … }` is a word of ours and no global. */
function isMemberName(name: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  switch (parent?.type) {
    case 'MemberExpression':
      return parent['property'] === name && parent['computed'] === false;
    case 'TSQualifiedName':
      return parent['right'] === name;
    case 'ImportSpecifier':
      return parent['imported'] === name;
    case 'ExportSpecifier':
      return parent['exported'] === name;
    case 'TSNamedTupleMember':
      return parent['label'] === name;
    case undefined:
      return false;
    default:
      return parent?.['key'] === name && parent['computed'] !== true;
  }
}

function nameOf(part: unknown): string | undefined {
  return isNode(part) && typeof part['name'] === 'string' ? part['name'] : undefined;
}
