/**
 * Test programs for processes that live but a moment: such a process would spend most of it loading the package. So each
 * is made into one file, and the code that V8 makes of it is kept (kept-code.cjs).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../..', import.meta.url));
const START = fileURLToPath(new URL('kept-code.cjs', import.meta.url));

/** Answers its file, of the package as it was built. */
export async function bundled(program: string): Promise<string> {
  const made = await rolldown({ input: program, platform: 'node', external: ['better-sqlite3'] });
  const file = join(root, '.cache', 'programs', `${basename(program, '.mjs')}-${process.pid}.cjs`);
  await made.write({ file, format: 'cjs', codeSplitting: false });
  await made.close();
  return file;
}

export function startBundled(file: string, args: readonly string[], node = process.execPath): ChildProcess {
  return fork(START, [file, ...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execPath: node });
}

/** Ends the process, having kept the code that it has compiled until now. */
export async function keepCode(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.send('keep');
  await exited;
}
