/**
 * node resumer.mjs STORE: waits for the lock `m` in the given way, and says when it went on. `lock`: in its queue.
 * `function`, `shell`: as a pipeline whose phase waits until it is free.
 */
import { pathToFileURL } from 'node:url';
import { open } from 'signalbox';
import { takeOrders } from './orders.mjs';

const NEVER_MS = 3_600_000;
const plain = { pre: [], post: [], holds: [], retries: 0, backoffMs: 1, idempotent: false, env: {} };
const pre = [{ id: 'free', condition: { lockFree: 'm' } }];
let made = 0;

export const ways = {
  async lock(box) {
    const hold = await box.lock('m').acquire();
    const at = now();
    await hold.release();
    return at;
  },

  function: (box) => resumed(box, { function: true }),

  /** Its first line, as the driver gets it. */
  shell: (box) => resumed(box, { shell: 'echo begun' }),
};

async function resumed(box, run) {
  let at;
  const first = () => void (at ??= now());
  const runbook = { name: 'bench', env: {}, phases: [{ ...plain, name: 'work', run, pre }] };
  const functions = new Map([['work', first]]);
  const id = `bench-${process.pid}-${++made}`;
  await box.pipelines.run({ runbook, functions }, { id, pollMs: NEVER_MS, onOutput: first });
  return at;
}

/** The same clock for all processes of this machine. */
export function now() {
  return Number(process.hrtime.bigint());
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const box = await open(process.argv[2]);
  await box.lock('unused').run(() => undefined);
  await takeOrders(
    async ({ way }) => ({ at: await ways[way](box) }),
    () => box.close(),
  );
}
