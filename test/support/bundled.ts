/**
 * Test programs for processes that live but a moment: such a process would spend most of it loading the package. So each
 * is made into one file, and the code that V8 makes of it is kept (kept-code.cjs).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { isAlive } from './run-processes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, '.cache', 'programs');
const START = fileURLToPath(new URL('kept-code.cjs', import.meta.url));

/**
 * Answers its file, of the package as it was built. A hash of its text is in its name, because the pid may have been that of an
 * earlier process, which has left the code of another build there; and the pid, because two that keep code at once would mix.
 */
export async function bundled(program: string): Promise<string> {
  const made = await rolldown({ input: program, platform: 'node', external: ['better-sqlite3'] });
  const minify = { compress: true, mangle: false, codegen: { removeWhitespace: true } };
  const { output } = await made.generate({ format: 'cjs', codeSplitting: false, minify });
  await made.close();
  // A file that has no other characters need not be decoded, and is kept in memory at half the size.
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const text = output[0].code.replaceAll(/[^\0-\x7f]/g, escaped);
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  removeThoseOfTheDead();
  const file = join(folder, `${basename(program, '.mjs')}-${hash}-${process.pid}.cjs`);
  writeFileSync(file, text, 'latin1');
  return file;
}

function removeThoseOfTheDead(): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    const pid = Number(/-(\d+)\.cjs/.exec(name)?.[1]);
    if (!isAlive(pid)) rmSync(join(folder, name), { force: true });
  }
}

export function startBundled(file: string, args: readonly string[], node = process.execPath): ChildProcess {
  // Without the options of the process that runs the tests, which make it load more.
  return fork(START, [file, ...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execPath: node, execArgv: [] });
}

/** Ends the process, having kept the code that it has compiled until now. */
export async function keepCode(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.send('keep');
  await exited;
}
