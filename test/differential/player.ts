/** One engine that plays a sequence. Its answers are plain data with nothing of its own in it, so that they compare. */
import {
  type Change,
  type Compare,
  type KeyRange,
  type KeyValue,
  type LeaseId,
  type Operation,
  type OperationResult,
  type Revision,
  type Store,
  type Transaction,
  Value,
} from 'signalbox/store';
import { Failure } from '../../src/failure.ts';
import { Recording } from './recording.ts';
import type { Command } from './sequence.ts';

export type Answer = unknown;

/** Of a form that an engine could have given it, in case it is asked about one. */
const NEVER_GRANTED = '7387894723462';

export class Player {
  readonly name: string;
  readonly recordings: Recording[] = [];
  readonly #store: Store;
  readonly #leases: LeaseId[] = [];

  constructor(name: string, store: Store) {
    this.name = name;
    this.#store = store;
  }

  /** Every engine is at the same revision, or would have been caught. */
  async play(command: Exclude<Command, { do: 'settle' }>, current: Revision): Promise<Answer> {
    try {
      return await this.#play(command, current);
    } catch (error) {
      if (error instanceof Failure) return { failure: error.code };
      throw error;
    }
  }

  async #play(command: Exclude<Command, { do: 'settle' }>, current: Revision): Promise<Answer> {
    const store = this.#store;
    switch (command.do) {
      case 'transaction': {
        const answer = await store.transaction(this.#resolve(command.transaction, current));
        return { ...answer, results: answer.results.map(this.#result) };
      }
      case 'grant': {
        const { id, ttlMs } = await store.grantLease(1000 * command.seconds);
        this.#leases.push(id);
        return { ttlMs };
      }
      case 'keep-alive': {
        const kept = await store.keepLeaseAlive(this.#leaseId(command.lease));
        return kept === null ? null : { id: this.#leaseName(kept.id), ttlMs: kept.ttlMs };
      }
      case 'revoke':
        return (await store.revokeLease(this.#leaseId(command.lease))) ?? 'revoked';
      case 'lease-state': {
        const state = await store.leaseState(this.#leaseId(command.lease));
        if (state === null) return null;
        const isDelegated = state.remainingMs > 0 && state.remainingMs <= state.ttlMs;
        return { id: this.#leaseName(state.id), ttlMs: state.ttlMs, isDelegated, keys: [...state.keys].sort() };
      }
      case 'watch': {
        const since = command.since === 'now' ? 'now' : Math.max(0, current - command.since.ago);
        const recording = await Recording.start(store, command.range, since, this.#change);
        this.recordings.push(recording);
        return { since: recording.since };
      }
      case 'compact':
        return (await store.compact(current - command.ago)) ?? 'compacted';
    }
  }

  /** Puts one key into the range of every watch: once it has delivered that, it has delivered all before it. */
  async settle(ranges: readonly KeyRange[]): Promise<Revision> {
    const keys = [...new Set(ranges.map((range) => range.key))];
    const success = keys.map((key): Operation => ({ do: 'put', key, value: Value.text('settled') }));
    return (await this.#store.transaction({ compare: [], success, failure: [] })).revision;
  }

  async everything(): Promise<Answer> {
    const read: Operation = { do: 'read', key: '\0', end: '\0' };
    const all = await this.play(
      { do: 'transaction', transaction: { compare: [], success: [read], failure: [] } },
      Number.NaN,
    );
    const leases = [];
    for (const [i] of this.#leases.entries()) {
      leases.push(await this.play({ do: 'lease-state', lease: `lease ${i}` }, Number.NaN));
    }
    return { all, leases, health: await this.#store.health() };
  }

  async close(): Promise<void> {
    for (const recording of this.recordings) recording.stop();
    await this.#store.close();
  }

  #leaseId(name: string): LeaseId {
    return this.#leases[Number(name.slice('lease '.length))] ?? NEVER_GRANTED;
  }

  #leaseName(id: LeaseId): string {
    const at = this.#leases.indexOf(id);
    return at < 0 ? `a lease nobody was granted: ${id}` : `lease ${at}`;
  }

  #resolve({ compare, success, failure }: Transaction, current: Revision): Transaction {
    const comparison = (each: Compare): Compare => {
      if (each.target === 'lease') return each.than === null ? each : { ...each, than: this.#leaseId(each.than) };
      if (each.target !== 'create' && each.target !== 'mod') return each;
      return { ...each, than: each.than === 0 ? 0 : Math.max(1, current - each.than + 1) };
    };
    const operation = (each: Operation): Operation => {
      if (each.do === 'transaction') return { do: 'transaction', ...this.#resolve(each, current) };
      if (each.do !== 'put' || each.lease === undefined || each.lease === 'keep') return each;
      return { ...each, lease: this.#leaseId(each.lease) };
    };
    return { compare: compare.map(comparison), success: success.map(operation), failure: failure.map(operation) };
  }

  readonly #result = (result: OperationResult): Answer => {
    switch (result.do) {
      case 'read':
        return { ...result, pairs: result.pairs.map(this.#pair) };
      case 'transaction':
        return { ...result, results: result.results.map(this.#result) };
      case 'put':
      case 'delete':
        return result;
    }
  };

  readonly #pair = (pair: KeyValue): Answer => ({
    ...pair,
    value: pair.value.text,
    lease: pair.lease === null ? null : this.#leaseName(pair.lease),
  });

  readonly #change = (change: Change): Answer =>
    change.kind === 'put' ? { kind: 'put', pair: this.#pair(change.pair) } : change;
}
