/**
 * Test programs for processes that live but a moment: such a process would spend most of it loading the package. So each
 * is made into one file, and the code that V8 makes of it is kept (kept-code.cjs).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../..', import.meta.url));
const START = fileURLToPath(new URL('kept-code.cjs', import.meta.url));

/** Answers its file, of the package as it was built. */
export async function bundled(program: string): Promise<string> {
  const made = await rolldown({ input: program, platform: 'node', external: ['better-sqlite3'] });
  const file = join(root, '.cache', 'programs', `${basename(program, '.mjs')}-${process.pid}.cjs`);
  const minify = { compress: true, mangle: false, codegen: { removeWhitespace: true } };
  const { output } = await made.generate({ format: 'cjs', codeSplitting: false, minify });
  await made.close();
  mkdirSync(dirname(file), { recursive: true });
  // An earlier process may have had this number, and V8 would take its code for that of a text of the same length.
  for (const kept of readdirSync(dirname(file)))
    if (kept.startsWith(`${basename(file)}.`)) rmSync(join(dirname(file), kept), { force: true });
  // A file that has no other characters need not be decoded, and is kept in memory at half the size.
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(file, output[0].code.replaceAll(/[^\0-\x7f]/g, escaped), 'latin1');
  return file;
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
