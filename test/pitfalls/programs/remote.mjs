// @ts-check
// node remote.mjs URL TTL_MS LOG: a process that does what it is told by messages. While it holds something it writes
// the token into LOG, again and again, each time asking first whether it still has it: as its users are told to.
import { appendFileSync } from 'node:fs';
import { open } from 'signalbox';

const [url = '', ttlMs = '', log = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: Number(ttlMs), requestTimeoutMs: 60_000, maintains: false });
/** @type {Map<string, import('signalbox').LockHold>} */
const holds = new Map();
const say = (/** @type {object} */ what) => process.send?.(what);

const deeds = {
  async acquire({ name = '', mode = 'exclusive' }) {
    const onWaiting = () => say({ kind: 'waiting', name });
    const hold = await box.lock(name).acquire({ mode: mode === 'shared' ? 'shared' : 'exclusive', onWaiting });
    holds.set(name, hold);
    hold.signal.addEventListener('abort', () => say({ kind: 'lost', name, why: hold.lost?.why }));
    const write = () => {
      if (!hold.isValid) return clearInterval(writing);
      appendFileSync(log, `${hold.token}\n`);
    };
    const writing = setInterval(write, 5);
    write();
    return { token: hold.token };
  },

  async release({ name = '' }) {
    return { released: (await holds.get(name)?.release())?.kind };
  },

  /** The event loop stands still, and then the first thing that is asked is whether the hold is still ours. */
  async block({ name = '', ms = 0 }) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return { isValid: holds.get(name)?.isValid };
  },
};

process.on('message', (/** @type {{ do: keyof typeof deeds, name: string, ms?: number }} */ order) => {
  deeds[order.do](order).then(
    (told) => say({ kind: 'done', ...order, ...told }),
    (error) => say({ kind: 'failed', ...order, refusal: error.refusal?.kind ?? String(error) }),
  );
});
process.on('disconnect', () => process.exit());
say({ kind: 'ready' });
