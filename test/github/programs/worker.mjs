// node worker.mjs ID CLOCK: a worker that does what its lines of stdin say, and answers each with a line of JSON. The file
// CLOCK says by how many milliseconds its time is ahead, so that a test lets time pass while the worker is stopped.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { LockManager } from 'signalbox/github';

const [, , workerId = '', clockFile = ''] = process.argv;
const ahead = () => Number(readFileSync(clockFile, 'utf8'));
const clock = {
  now: () => Date.now() + ahead(),
  monotonic: () => performance.now() + ahead(),
  timer: (/** @type {number} */ ms, /** @type {() => void} */ call) => {
    const handle = setTimeout(call, ms);
    return { cancel: () => clearTimeout(handle) };
  },
};
const manager = new LockManager({ clock });
/** @type {import('signalbox/github').GitHubHold | undefined} */
let hold;

/** @type {Record<string, (argument: string) => Promise<unknown>>} */
const commands = {
  async acquire(argument) {
    const [issue, conflictStrategy] = argument.split(' ');
    const result = await manager.acquireLock(Number(issue), {
      ...{ workerId, nodeId: 'test' },
      conflictStrategy: /** @type {import('signalbox/github').ConflictStrategy} */ (conflictStrategy),
    });
    hold = result.success ? result.lock : undefined;
    return result.success ? { success: true, token: result.token } : { success: false, reason: result.reason.kind };
  },
  release: async () => hold?.release(),
  check: async () => ({ isValid: hold?.isValid }),
};

for await (const line of createInterface(process.stdin)) {
  const [, name = '', argument = ''] = /^(\S+) ?(.*)$/.exec(line) ?? [];
  console.log(JSON.stringify((await commands[name]?.(argument)) ?? null));
}
process.exit(0);
