// @ts-check
// node driver.mjs ORDER: drives pipeline p, which it starts if there is none, and tells its parent what came of it. ORDER
// is JSON:
//
//     url, directory   the store, and where the pipeline works; every phase that runs adds a line to `did` there
//     runbook          its functions are those of `functions.mjs`
//     stopAt           { write: 3, when: 'before' }: at that write of the pipeline's record it says so, and does nothing
//                      any more
//     standsBy         whether to wait while somebody else drives it

import { open } from 'signalbox';
import { openEmbedded, openEtcdUrl } from 'signalbox/store';
import { functionsOf } from './functions.mjs';

/** @type {{ url: string, directory: string, runbook: import('signalbox/core').Runbook, stopAt?: { write: number, when: 'before' | 'after' }, standsBy?: boolean }} */
const order = JSON.parse(process.argv[2] ?? '');
const { url, directory, runbook, stopAt, standsBy = false } = order;

const store = url.startsWith('file:') ? await openEmbedded(url.slice('file:'.length)) : await openEtcdUrl(url);
let writes = 0;

/** @type {(transaction: import('signalbox/store').Transaction, signal?: AbortSignal) => Promise<import('signalbox/store').TransactionResult>} */
async function transaction(asked, signal) {
  const isWrite = asked.success.some((operation) => operation.do === 'put' && operation.key.startsWith('s/pipeline/'));
  const isHere = isWrite && stopAt?.write === writes;
  if (isWrite) writes += 1;
  if (isHere && stopAt?.when === 'before') await stopped();
  const answer = await store.transaction(asked, signal);
  if (isHere) await stopped();
  return answer;
}

function stopped() {
  process.send?.({ stopped: stopAt });
  return new Promise(() => undefined);
}

const watched = new Proxy(store, {
  get(target, name) {
    if (name === 'transaction') return transaction;
    if (name === 'transactionNow') return undefined;
    const value = Reflect.get(target, name);
    return typeof value === 'function' ? value.bind(target) : value;
  },
});
// On etcd it is waited for whenever a driver was killed, and in a file only when one was stopped.
const sessionTtlMs = url.startsWith('file:') ? 6_000 : 4_000;
const box = await open(watched, { sessionTtlMs, requestTimeoutMs: 20_000, maintenanceMs: 3_600_000 });
const options = { graceMs: 30_000, cwd: directory };
const functions = functionsOf(runbook, directory);
try {
  const outcome = standsBy
    ? await box.pipelines.resume('p', { ...options, functions, standsBy })
    : await box.pipelines.run({ runbook, functions }, { ...options, id: 'p', pollMs: 3_600_000 });
  process.send?.({ outcome, writes });
} catch (error) {
  process.send?.({ error: String(error), writes });
}
await box.close();
process.disconnect?.();
