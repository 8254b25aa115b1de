/**
 * The programs that are printed in the documentation. Every block in TypeScript or JavaScript is a whole program and is
 * run as it stands; what is not meant to run is printed as something else (`sh`, `text`). A block that is followed by
 * one marked `text prints` must print exactly that.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../house/sources.ts';

export interface Block {
  /** The page it is printed on, and the line of its first line there. */
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** What it has to print, if the page says so. */
  readonly prints: string | undefined;
}

const PRINTS = 'text prints';

export function blocksOf(page: string, text: string): readonly Block[] {
  const blocks: { -readonly [K in keyof Block]: Block[K] }[] = [];
  let open: (typeof blocks)[number] | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const [, language] = /^```(.*)$/.exec(line) ?? [];
    if (language === undefined) {
      if (open !== undefined) open.code += `${line}\n`;
    } else if (open === undefined) {
      open = { page, line: index + 2, language: language.trim(), code: '', prints: undefined };
    } else {
      const before = blocks.at(-1);
      if (open.language === PRINTS && before !== undefined) before.prints = open.code;
      blocks.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`${page}:${open.line - 1}: the block is not closed`);
  return blocks;
}

export function isProgram({ language }: Block): boolean {
  return language === 'ts' || language === 'js';
}

export function placeOf({ page, line }: Block): string {
  return `${page}:${line}`;
}

export interface Program {
  readonly block: Block;
  /** What node runs. */
  readonly file: string;
  /** What the compiler has against it. */
  readonly problems: readonly string[];
}

/** Inside the repository, where the package can be imported by its own name. */
const FOLDER = join(root, '.cache', 'docs');

export function programsOf(blocks: readonly Block[]): readonly Program[] {
  mkdirSync(FOLDER, { recursive: true });
  const compiled = compile(blocks.filter(({ language }) => language === 'ts'));
  return blocks.map(
    (block) => compiled.get(block) ?? { block, file: write(block, 'mjs', paddedCode(block)), problems: [] },
  );
}

function compile(blocks: readonly Block[]): ReadonlyMap<Block, Program> {
  const sources = new Map(blocks.map((block) => [block, write(block, 'ts', paddedCode(block))]));
  const program = ts.createProgram([...sources.values()], compilerOptions());
  const programs = new Map<Block, Program>();
  for (const [block, path] of sources) {
    const source = program.getSourceFile(path);
    const diagnostics = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    let text = '';
    program.emit(source, (_, emitted) => (text = emitted));
    const problems = diagnostics.map((diagnostic) => told(block, diagnostic));
    programs.set(block, { block, file: write(block, 'mjs', text), problems });
  }
  return programs;
}

function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile) as { config: object };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const { tsBuildInfoFile: _, ...rest } = options;
  return { ...rest, noEmit: false, incremental: false, inlineSourceMap: true, inlineSources: true };
}

function told({ page, line }: Block, { file, start, messageText }: ts.Diagnostic): string {
  const at = file === undefined || start === undefined ? line : file.getLineAndCharacterOfPosition(start).line + 1;
  return `${page}:${at}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}

/** Moved down, so that its line numbers are those of the page. */
function paddedCode({ line, code }: Block): string {
  return '\n'.repeat(line - 1) + code;
}

function write({ page, line }: Block, extension: string, text: string): string {
  const path = join(FOLDER, `${page.replaceAll('/', '-')}-${line}.${extension}`);
  writeFileSync(path, text);
  return path;
}

export interface Ended {
  readonly exitCode: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** As a user would: node, the built package, and nothing else. */
/** In an empty directory of its own: what it makes there goes with it. */
export function run(file: string): Promise<Ended> {
  const env = { ...process.env, NO_COLOR: '1' };
  const cwd = mkdtempSync(join(tmpdir(), 'signalbox-example-'));
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--enable-source-maps', file],
      { cwd, env, timeout: 60_000 },
      (error, stdout, stderr) => {
        rmSync(cwd, { recursive: true, force: true });
        resolve({ exitCode: error === null ? 0 : (error.code ?? error.signal ?? 'killed'), stdout, stderr });
      },
    );
  });
}
