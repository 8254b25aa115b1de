/**
 * The index of records that a maintainer keeps, so that the cost of a round depends on what changed, not on what exists:
 * the records that are held, with their leases, and the free ones that could be deleted. No other record needs upkeep.
 */
import type { Hold, Lock, Semaphore, Token } from '../../core/index.ts';
import { leasesOf } from '../../core/hold.ts';
import type { KeyValue, Revision } from '../../store/index.ts';
import { WideMap } from '../../store/wide-map.ts';
import { lockMachine, semaphoreMachine } from '../../core/machines.ts';
import { type Head, resourceOfRecord } from '../layout.ts';
import { headIn } from '../write/witness.ts';
import { marksOf, recordOf } from '../write/snapshot.ts';

/** A record that contains only its last token. */
export interface Free {
  readonly key: string;
  readonly mod: Revision;
  readonly token: Token;
  /** The end of its chain, which outlives it. */
  readonly head: Head | undefined;
}

/** A free record, with the round that found it free. */
interface FoundFree extends Free {
  readonly round: number;
}

export interface Looked {
  readonly resource: string;
  readonly holds: readonly Hold[];
  /** Set if the record could be deleted. */
  readonly free: Free | undefined;
}

/** Throws `corrupt` or `inconsistent` if the record cannot be read. */
export function lookAt(pair: KeyValue): Looked {
  const resource = resourceOfRecord(pair.key);
  const record = recordOf<Lock | Semaphore>(resource.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
  // A semaphore's record holds its capacity; a mark tells a command that got no answer that it was done.
  const saysMore =
    record.kind === 'semaphore' ||
    record.onStale !== 'reclaim' ||
    record.limits !== undefined ||
    marksOf(pair).length > 0;
  const isFree = record.holds.length === 0 && !saysMore;
  const free = isFree ? { key: pair.key, mod: pair.modRevision, token: record.token, head: headIn(pair) } : undefined;
  return { resource, holds: record.holds, free };
}

export class RecordIndex {
  /** The index has every change up to this revision. */
  asOf: Revision;
  /** The leases of each record that is held. */
  readonly #held = new WideMap<readonly string[]>();
  readonly #byLease = new Map<string, Set<string>>();
  readonly #free = new WideMap<FoundFree>();
  #round = 0;

  constructor(asOf: Revision) {
    this.asOf = asOf;
  }

  nextRound(): void {
    this.#round += 1;
  }

  put(key: string, { holds, free }: Looked): void {
    this.remove(key);
    if (free !== undefined) this.#free.set(key, { ...free, round: this.#round });
    if (holds.length === 0) return;
    const leases = leasesOf(holds);
    this.#held.set(key, leases);
    for (const lease of leases) this.#byLease.set(lease, (this.#byLease.get(lease) ?? new Set()).add(key));
  }

  remove(key: string): void {
    this.#free.delete(key);
    for (const lease of this.#held.get(key) ?? []) {
      const keys = this.#byLease.get(lease);
      keys?.delete(key);
      if (keys?.size === 0) this.#byLease.delete(lease);
    }
    this.#held.delete(key);
  }

  /** Each lease, with the records that are held under it. */
  byLease(): Iterable<readonly [lease: string, held: ReadonlySet<string>]> {
    return this.#byLease;
  }

  free(): Iterable<FoundFree> {
    return this.#free.values();
  }

  /**
   * Whether the record was free a round ago already: the record of a lock in occasional use would only be made again. Its token
   * must not exceed `revision`, the store's: a token can be ahead of the store, since one write may grant many times.
   */
  isLongFree({ round, token }: FoundFree, revision: Revision): boolean {
    return round < this.#round && token <= revision;
  }
}
