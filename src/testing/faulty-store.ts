/**
 * A store with faults: it delays, fails, loses answers and cuts watches when its `faults` say so, never by itself. It has no
 * randomness and no timers, so the same decisions give the same run.
 *
 * It never has `transactionNow`, and values cross it as text in both directions, as if the store were in
 * another process.
 */
import { Failure } from '../failure.ts';
import type { Changes, KeyRange, Revision, Store, Watch } from '../store/contract.ts';
import type { Call, Decision, Faults } from './faults.ts';
import { resentChanges, resentResult, resentTransaction } from './resent.ts';

/** A store that fails when a test says so. */
export function faultyStore(inner: Store, faults: Faults): Store {
  return {
    transaction: (transaction, signal) =>
      through(faults, { kind: 'transaction', transaction }, signal, async () =>
        resentResult(await inner.transaction(resentTransaction(transaction), signal)),
      ),
    watch: (range, since, signal) => openWatch(inner, faults, range, since, signal),
    grantLease: (ttlMs, signal) =>
      through(faults, { kind: 'grantLease', ttlMs }, signal, () => inner.grantLease(ttlMs, signal)),
    keepLeaseAlive: (id, signal) =>
      through(faults, { kind: 'keepLeaseAlive', id }, signal, () => inner.keepLeaseAlive(id, signal)),
    revokeLease: (id, signal) =>
      through(faults, { kind: 'revokeLease', id }, signal, () => inner.revokeLease(id, signal)),
    leaseState: (id, signal) => through(faults, { kind: 'leaseState', id }, signal, () => inner.leaseState(id, signal)),
    compact: (revision, signal) =>
      through(faults, { kind: 'compact', revision }, signal, () => inner.compact(revision, signal)),
    health: (signal) => through(faults, { kind: 'health' }, signal, () => inner.health(signal)),
    close: () => inner.close(),
  };
}

async function through<T>(
  faults: Faults,
  call: Call,
  signal: AbortSignal | undefined,
  perform: () => Promise<T>,
): Promise<T> {
  switch (await unlessAborted(faults.before(call), signal)) {
    case 'fail':
      throw new Failure('unavailable', `${call.kind}: the store could not be reached`);
    case 'drop':
      throw lost(call);
    case 'hang':
      return await unlessAborted(never(), signal);
    case 'pass':
  }
  const answer = await perform();
  switch (await unlessAborted(faults.after(call), signal)) {
    case 'drop':
      throw lost(call);
    case 'hang':
      return await unlessAborted(never(), signal);
    case 'pass':
      return answer;
  }
}

/** The failure for a missing answer; a call that changes nothing was certainly not applied. */
function lost(call: Call): Failure {
  const changesNothing = call.kind === 'health' || call.kind === 'leaseState' || call.kind === 'watch';
  return new Failure(changesNothing ? 'unavailable' : 'outcome-unknown', `${call.kind}: no answer came`);
}

async function openWatch(
  inner: Store,
  faults: Faults,
  range: KeyRange,
  since: Revision | 'now',
  signal: AbortSignal,
): Promise<Watch> {
  const cut = faults.cutSignal(range);
  const connection = AbortSignal.any(cut === undefined ? [signal] : [signal, cut]);
  const abandoned = new AbortController();
  const open = (): Promise<Watch> => inner.watch(range, since, AbortSignal.any([connection, abandoned.signal]));
  try {
    const watch = await through(faults, { kind: 'watch', range, since }, connection, open);
    return { since: watch.since, [Symbol.asyncIterator]: () => deliveries(watch, range, faults, connection, signal) };
  } catch (error) {
    abandoned.abort();
    throw connection.aborted && !signal.aborted ? disconnected() : error;
  }
}

async function* deliveries(
  watch: Watch,
  range: KeyRange,
  faults: Faults,
  connection: AbortSignal,
  signal: AbortSignal,
): AsyncGenerator<Changes, undefined> {
  for await (const changes of watch) {
    const fate = await unlessAborted(faults.delivery(range, changes), connection).catch(() => 'ended' as const);
    if (fate === 'cut') throw disconnected();
    if (fate === 'ended') break;
    yield resentChanges(changes);
  }
  if (connection.aborted && !signal.aborted) throw disconnected();
}

function disconnected(): Failure {
  return new Failure('unavailable', 'the watch lost its connection');
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Waits for a promise, but not past an abort. */
function unlessAborted<T>(decision: Decision<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!(decision instanceof Promise) || signal === undefined) return Promise.resolve(decision);
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    decision.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
