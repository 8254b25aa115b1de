// @ts-check
// node listener.mjs STORE: listens in every way there is, first with `keepAlive: false` and then without, and prints for each
// whether the process had something to wait for until it heard the first thing. What it hears is caused by a timer that keeps
// nothing alive.

import { open } from 'signalbox';

const [url = ''] = process.argv.slice(2);
const box = await open(url, { maintains: false });
let count = 0;

/** @typedef {{ keepAlive?: boolean }} Options */
/** @type {Record<string, (heard: () => void, options: Options) => Promise<() => unknown>>} */
const WAYS = {
  async on(heard, options) {
    const { unsubscribe } = await box.on('lock:acquired', heard, options);
    return unsubscribe;
  },
  async events(heard, options) {
    const over = new AbortController();
    const loop = async () => {
      for await (const _ of box.events('lock:acquired', { signal: over.signal, ...options })) heard();
    };
    void loop();
    return () => over.abort();
  },
  async 'bus.watch'(heard, options) {
    const id = await box.bus.watch('key', heard, options);
    return () => box.bus.unwatch(id);
  },
  async 'tasks.subscribe'(heard, options) {
    const { unsubscribe } = await box.tasks.subscribe(heard, options);
    return unsubscribe;
  },
  async 'members.join'(heard, options) {
    const joined = await box.members.join('listener', null, options);
    if (joined.kind !== 'joined') throw new Error(joined.kind);
    signal = heard;
    return () => joined.membership.leave();
  },
  async 'members.follow'(heard, options) {
    const members = await box.members.follow(options);
    members.onChange(heard);
    return () => members.stop();
  },
  async 'members.onTopology'(heard, options) {
    let isFirst = true;
    const { unsubscribe } = await box.members.onTopology(() => {
      if (!isFirst) heard();
      isFirst = false;
    }, options);
    return unsubscribe;
  },
};

/** What a member waits for is outside of signalbox. */
let signal = () => {};

async function cause() {
  count += 1;
  await box.lock('any').run(() => undefined);
  await box.bus.put('key', String(count));
  await box.tasks.publish(`task-${count}`, count);
  const other = await box.members.join(`other-${count}`, null, { keepAlive: false });
  if (other.kind === 'joined') await other.membership.leave();
  await broadcast();
  signal();
}

/** Sends a topology that is like none before, and stops. */
async function broadcast() {
  const id = `topology-${count}`;
  await box.members.join(id, null, { keepAlive: false });
  const sender = box.members.broadcastTopology({ cooldownMs: 1 });
  const isSent = async () => (await box.members.topology())?.members.some((member) => member.id === id);
  while (!(await isSent())) await new Promise((resolve) => setTimeout(resolve, 1));
  await sender.stop();
}

/** @type {(() => void) | undefined} */
let drained;
// An immediate, so that the process does not end here.
process.on('beforeExit', () => void setImmediate(() => drained?.()));

/** @param {(heard: () => void, options: Options) => Promise<() => unknown>} listen @param {Options} options */
async function trial(listen, options) {
  let hasHeard = false;
  /** @type {() => void} */
  let heard = () => {};
  const first = new Promise((resolve) => (heard = () => resolve((hasHeard = true))));
  const nothingLeft = new Promise((resolve) => (drained = () => resolve(undefined)));
  const stop = await listen(heard, options);
  // Where nothing keeps it alive, it must not come before the process has noticed that, also on a busy machine.
  const timer = setTimeout(() => void cause(), options.keepAlive === false ? 10_000 : 100).unref();
  await Promise.race([first, nothingLeft]);
  clearTimeout(timer);
  const wasAlive = hasHeard;
  // Whatever it was, it must let go when it is stopped.
  const over = new Promise((resolve) => (drained = () => resolve(undefined)));
  await stop();
  signal = () => {};
  await over;
  return wasAlive;
}

for (const [name, listen] of Object.entries(WAYS)) {
  const unless = await trial(listen, { keepAlive: false });
  const asARule = await trial(listen, {});
  console.log(JSON.stringify({ name, unless, asARule }));
}
await box.close();
process.exit(0);
