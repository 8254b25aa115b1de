/**
 * The programs that are printed in the documentation. Every block in TypeScript or JavaScript is a whole program and is
 * run as it stands; what is not meant to run is printed as something else (`sh`, `text`). A block that is followed by
 * one marked `text prints` must print exactly that.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
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
  if (blocks.length === 0) return new Map();
  const sources = blocks.map((block) => ({ block, path: write(block, 'ts', paddedCode(block)) }));
  const outDir = join(FOLDER, `made-${process.pid}`);
  const problems = compileTo(
    outDir,
    sources.map(({ path }) => path),
  );
  const programs = sources.map(({ block, path }): [Block, Program] => {
    const made = readFileSync(join(outDir, relative(root, path).replace(/ts$/, 'js')), 'utf8');
    const told = problems
      .filter((problem) => problem.path === path)
      .map(({ line, text }) => `${block.page}:${line}: ${text}`);
    return [block, { block, file: write(block, 'mjs', made), problems: told }];
  });
  rmSync(outDir, { recursive: true });
  return new Map(programs);
}

interface Problem {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Compiles with the project's own settings, and answers what the compiler has against these files. */
function compileTo(outDir: string, files: readonly string[]): readonly Problem[] {
  const project = join(FOLDER, `tsconfig-${process.pid}.json`);
  const maps = { inlineSourceMap: true, inlineSources: true };
  const compilerOptions = { noEmit: false, incremental: false, tsBuildInfoFile: null, rootDir: root, outDir, ...maps };
  writeFileSync(project, JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: [], files }));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout, error } = spawnSync(tsc, ['--project', project, '--pretty', 'false'], {
    cwd: root,
    encoding: 'utf8',
  });
  rmSync(project);
  if (error !== undefined) throw error;
  const problems: { -readonly [K in keyof Problem]: Problem[K] }[] = [];
  for (const printed of stdout.split('\n')) {
    const [, path, line, text] = /^(\S.*)\((\d+),\d+\): error TS\d+: (.*)$/.exec(printed) ?? [];
    const last = problems.at(-1);
    if (path !== undefined) problems.push({ path: join(root, path), line: Number(line), text: text ?? '' });
    else if (/^\s/.test(printed) && last !== undefined) last.text += `\n${printed}`;
    else if (/^error/.test(printed)) throw new Error(printed);
  }
  return problems;
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
      { cwd, env, timeout: 280_000 },
      (error, stdout, stderr) => {
        rmSync(cwd, { recursive: true, force: true });
        resolve({ exitCode: error === null ? 0 : (error.code ?? error.signal ?? 'killed'), stdout, stderr });
      },
    );
  });
}
