// @ts-check
// Runs named commands, each as soon as those it needs have passed, and all that can at the same time. Processes wait more
// than they compute, so work that only computes fills the gaps.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { root } from './ensure.mjs';

/** @typedef {readonly [string, ...string[]]} Command */

/**
 * @typedef {{
 *   readonly name: string,
 *   readonly command: Command | (() => Command | undefined),
 *   readonly after?: readonly string[],
 *   readonly behind?: readonly string[],
 *   readonly isLive?: boolean,
 *   readonly yields?: boolean,
 * }} Task
 * `command`: or what finds it out once the tasks before it have passed; undefined if there is nothing to do. `after`: the tasks that have to pass first, unless they are not in the list at all. `behind`: those that have to end
 * first, whatever comes of them, because more is waiting for them. `isLive`: it prints as it goes; what others print is
 * shown when they have ended, so that it stays in one piece. `yields`: it only computes, and gets the time that the others leave
 * while they wait.
 */

/**
 * @typedef {{
 *   readonly name: string,
 *   readonly code: number,
 *   readonly ms: number,
 *   readonly cpuMs: number | undefined,
 *   readonly lines: readonly string[],
 * }} Result
 */

/** Marks a task that was never started. */
const LEFT_OUT = -1;

/** Far behind, but still served: a process that gets no time at all would be taken for one that never ends. */
const BEHIND_OTHERS = /** @type {const} */ (['nice', '-n', '15']);

/** So many lines of a task that failed are printed again at the end: long logs are cut, and their end is what is kept. */
const LAST_LINES = 60;

/** Answers the first exit code that is not zero, and zero if all of them are. */
export async function runTasks(/** @type {readonly Task[]} */ tasks) {
  const begun = performance.now();
  /** @type {Map<string, Promise<Result>>} */
  const started = new Map();
  const start = (/** @type {Task} */ task) => {
    const running = started.get(task.name) ?? runOne(task);
    started.set(task.name, running);
    return running;
  };
  /** @returns {Promise<Result>} */
  async function runOne(/** @type {Task} */ task) {
    await Promise.all(tasks.filter(({ name }) => task.behind?.includes(name)).map(start));
    const needed = await Promise.all(tasks.filter(({ name }) => task.after?.includes(name)).map(start));
    const failed = needed.find(({ code }) => code !== 0);
    if (failed !== undefined) {
      console.log(`-- ${task.name}: left out, because ${failed.name} failed`);
      return { name: task.name, code: LEFT_OUT, ms: 0, cpuMs: undefined, lines: [] };
    }
    const command = typeof task.command === 'function' ? task.command() : task.command;
    if (command === undefined) return { name: task.name, code: 0, ms: 0, cpuMs: undefined, lines: [] };
    const result = await ended(task, command);
    const how = result.code === 0 ? 'passed' : `failed with ${result.code}`;
    console.log(`-- ${task.name}: ${how} in ${seconds(result.ms)}`);
    return result;
  }
  const results = await Promise.all(tasks.map(start));
  for (const { name, code, lines } of results) {
    if (code > 0 && results.length > 1)
      console.log(`\n== ${name} failed with ${code}; its last lines:\n${lines.join('\n')}`);
  }
  if (results.length > 1) {
    console.log(`\n${results.map(row).join('\n')}`);
  }
  const cpuMs = results.reduce((sum, result) => sum + (result.cpuMs ?? 0), 0);
  console.log(row({ name: 'all of it', code: 0, ms: performance.now() - begun, cpuMs: cpuMs || undefined, lines: [] }));
  return results.find(({ code }) => code > 0)?.code ?? 0;
}

/** @returns {Promise<Result>} */
function ended(/** @type {Task} */ { name, isLive = false, yields = false }, /** @type {Command} */ command) {
  const [program, ...args] = yields && process.platform !== 'win32' ? [...BEHIND_OTHERS, ...command] : command;
  const begun = performance.now();
  if (isLive) console.log(`\n== ${name}`);
  return new Promise((resolve) => {
    let printed = '';
    /** @type {number | undefined} */
    let cpuMs;
    const over = (/** @type {number} */ code) => {
      const lines = printed.trimEnd().split('\n').slice(-LAST_LINES);
      resolve({ name, code, ms: performance.now() - begun, cpuMs, lines });
    };
    const child = spawn(program, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      // What we read is shown as it is, so a terminal shows colours still.
      env: { ...process.env, ...(isLive && process.stdout.isTTY && { FORCE_COLOR: '1' }) },
      shell: process.platform === 'win32',
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
        printed += text;
        if (isLive) process.stdout.write(text);
      });
    }
    child.once('error', (error) => {
      console.error(`cannot run ${program}: ${error.message}`);
      over(127);
    });
    child.once('exit', () => (cpuMs = takenSinceLast()));
    child.once('close', (code, signal) => {
      if (!isLive && printed.trim() !== '') console.log(`\n== ${name}\n${printed.trimEnd()}`);
      over(code ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}

let taken = 0;

/**
 * The processor time of what has ended since this was last asked, and of all that it had started and waited for: a task that
 * waits is to be told from one that computes. Undefined where the system does not tell.
 */
function takenSinceLast() {
  if (process.platform !== 'linux') return undefined;
  // Behind the name, which may have spaces and brackets in it; the system counts in hundredths of a second.
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  const before = taken;
  taken = 10 * (Number(fields[13]) + Number(fields[14]));
  return taken - before;
}

function row(/** @type {Result} */ { name, code, ms, cpuMs }) {
  const took = `${ms === 0 ? '-' : seconds(ms)}`.padStart(9);
  const computed = cpuMs === undefined ? '' : `${seconds(cpuMs).padStart(10)} of processor time`;
  return `${code === 0 ? ' ' : 'x'} ${name.padEnd(26)}${took}${computed}`;
}

function seconds(/** @type {number} */ ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
