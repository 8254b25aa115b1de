/** Reads a runbook named on the command line: a YAML or JSON file, `-` for stdin, or a program that defines one. */
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseRunbook } from '../../core/index.ts';
import { type PlacedProblem, placed, readDocument } from '../../document/index.ts';
import { Failure } from '../../failure.ts';
import { type DefinedRunbook, defineRunbook, type RunbookDefinition } from '../../runtime/pipelines/define.ts';
import { readBytes } from '../document-file.ts';

export type LoadedRunbook =
  | { readonly ok: true; readonly file: string; readonly defined: DefinedRunbook }
  | { readonly ok: false; readonly file: string; readonly problems: readonly FileProblem[] };

/** For a program, the place of the mistake is not always known. */
export type FileProblem = PlacedProblem | { readonly message: string; readonly line?: number };

const PROGRAMS = ['.mjs', '.js', '.cjs', '.mts', '.ts', '.cts'];

/** Never throws because of a file's contents. */
export async function loadRunbook(named: string): Promise<LoadedRunbook> {
  const file = named === '-' ? '<stdin>' : named;
  const answer = PROGRAMS.includes(extname(named)) ? await fromProgram(named) : await fromDocument(named, file);
  return Array.isArray(answer)
    ? { ok: false, file, problems: answer as readonly FileProblem[] }
    : { ok: true, file, defined: answer as DefinedRunbook };
}

async function fromDocument(named: string, file: string): Promise<DefinedRunbook | readonly FileProblem[]> {
  const bytes = await readBytes(named);
  if (typeof bytes === 'string') return [{ message: bytes }];
  const read = await readDocument(bytes, file);
  if (!read.ok) return read.problems;
  const parsed = parseRunbook(read.document.value);
  if (!parsed.ok) return placed(read.document, parsed.problems);
  return { runbook: parsed.runbook, functions: new Map() };
}

async function fromProgram(named: string): Promise<DefinedRunbook | readonly FileProblem[]> {
  const isTypeScript = /\.[mc]?ts$/.test(named);
  if (isTypeScript && !('typescript' in process.features && process.features.typescript)) {
    const message = `Node ${process.versions.node} cannot read TypeScript; expected Node 22.18 or later, or JavaScript (.mjs)`;
    return [{ message }];
  }
  try {
    const { importFile } = await import('./import-file.ts');
    const module = (await importFile(pathToFileURL(resolve(named)).href)) as { readonly default?: unknown };
    return definedIn(module.default);
  } catch (error) {
    return problemsOf(error, named);
  }
}

const EXPORT = 'its default export is not a runbook; expected: export default defineRunbook({ name, phases })';

/** The result of `defineRunbook`, possibly of another installed signalbox, or its plain argument. */
function definedIn(exported: unknown): DefinedRunbook | readonly FileProblem[] {
  if (typeof exported !== 'object' || exported === null) return [{ message: EXPORT }];
  if ('runbook' in exported && 'functions' in exported) return exported as DefinedRunbook;
  if ('phases' in exported) return defineRunbook(exported as RunbookDefinition);
  // The default export of a CommonJS module is one level further down.
  return 'default' in exported ? definedIn(exported.default) : [{ message: EXPORT }];
}

function problemsOf(error: unknown, named: string): readonly FileProblem[] {
  if (Failure.is(error, 'invalid')) return error.message.split('\n').map((message) => ({ message }));
  const { code, message = String(error), stack = '' } = (error ?? {}) as NodeJS.ErrnoException;
  const own = pathToFileURL(resolve(named)).href;
  if (code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${resolve(named)}'`))
    return [{ message: 'there is no such file' }];
  const line = new RegExp(`${escaped(own)}:(\\d+)|${escaped(resolve(named))}:(\\d+)`).exec(stack);
  const at = line?.[1] ?? line?.[2];
  const what = error instanceof Error ? `${error.name}: ${message}` : message;
  return [{ message: `it cannot be loaded: ${what.split('\n')[0]}`, ...(at !== undefined && { line: Number(at) }) }];
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** `FILE:LINE:COLUMN: what is wrong`. */
export function toldOf(file: string, problem: FileProblem): string {
  const { line, column, message } = problem as Partial<PlacedProblem> & { message: string };
  return `${[file, line, column].filter((part) => part !== undefined).join(':')}: ${message}`;
}
