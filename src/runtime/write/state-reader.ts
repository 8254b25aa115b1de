/** Reads the record, the queue and the leases of one resource for its writer. */
import { Operations, type OperationResult, type Revision } from '../../store/index.ts';
import type { ResourceKeys } from '../layout.ts';
import type { CachedState } from './cached-state.ts';
import type { Coordinated, Machine } from './machines.ts';
import { readLeases, readSnapshot, snapshotFrom, type Snapshot, type SnapshotReads } from './snapshot.ts';
import type { WriterHost } from './writer-host.ts';

export interface Reading<State extends Coordinated> {
  /** Undefined if the whole queue has to be read. */
  done(snapshot: Snapshot<State> | undefined): void;
  /** The record or a ticket cannot be read, or breaks a promise. */
  malformed(error: unknown): void;
  /** The store was not reached, or did not answer. */
  unread(error: unknown): void;
}

export class StateReader<State extends Coordinated> {
  readonly #machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>;
  readonly #keys: ResourceKeys;
  readonly #host: WriterHost;
  readonly #cached: CachedState<State>;

  constructor(
    machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
    keys: ResourceKeys,
    host: WriterHost,
    cached: CachedState<State>,
  ) {
    this.#machine = machine;
    this.#keys = keys;
    this.#host = host;
    this.#cached = cached;
  }

  /** Reads a snapshot, and whether the leases of the known holds are alive. */
  refresh(whole: boolean, reading: Reading<State>): void {
    // Our own lease as well: a fence that got no answer may have landed since, and raised our epoch.
    const { id } = this.#host.sender;
    const leases = this.#cached.leases();
    this.#read(whole, id === '' ? leases : [...leases, id], reading);
  }

  /** Reads a snapshot of the whole state, and leaves the cached state as it is. */
  look(reading: Reading<State>): void {
    this.#read(true, [], reading);
  }

  #read(whole: boolean, leases: readonly string[], reading: Reading<State>): void {
    const operations = new Operations();
    const snapshot = readSnapshot(operations, this.#keys, this.#host.witness.isOn, whole);
    const anchors = readLeases(operations, leases);
    this.#host.commit(
      operations.always(),
      ({ results, revision }) => {
        this.#cached.sawLeases(anchors, results, revision);
        this.decode(snapshot, results, revision, reading);
      },
      (error) => reading.unread(error),
    );
  }

  /** Makes a snapshot of results that a transaction brought. */
  decode(
    reads: SnapshotReads,
    results: readonly OperationResult[],
    revision: Revision,
    reading: Pick<Reading<State>, 'done' | 'malformed'>,
  ): void {
    let snapshot: Snapshot<State> | undefined;
    try {
      snapshot = snapshotFrom(this.#machine, reads, results, revision);
    } catch (error) {
      return reading.malformed(error);
    }
    reading.done(snapshot);
  }

  /** Looks up the leases of holds of which nothing is known: a hold may only refuse a request if its lease is alive. */
  lookUpLeases(done: () => void, unread: (error: unknown) => void): void {
    const unknown = this.#cached.unknownLeases();
    if (unknown.length === 0) return done();
    const operations = new Operations();
    const anchors = readLeases(operations, unknown);
    this.#host.commit(
      operations.always(),
      ({ results, revision }) => {
        this.#cached.sawLeases(anchors, results, revision);
        // There may be more of them than one transaction can read.
        this.lookUpLeases(done, unread);
      },
      unread,
    );
  }
}
