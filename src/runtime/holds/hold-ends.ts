/** What ends a hold besides its release: the longest time that it may last, or the end of the outer hold on which it rests. */
import type { Timer } from '../../clock.ts';
import type { Hold } from '../../core/index.ts';
import { always, type Changes, type KeyValue, type LeaseId, pairIn, type Revision } from '../../store/index.ts';
import { follow } from '../../store/follow.ts';
import { hasPassed, isOfOneMachine, type Sent } from '../session/session.ts';
import { holdsOf } from './held-records.ts';
import { anchorKey } from '../layout.ts';
import type { Held } from './lookout.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';

const RETRY_MS = 500;

/** The hold ends with this lease, `validMs` after `sent`, even if its session is renewed. */
export class HoldLimit {
  readonly #runtime: Runtime;
  readonly #leaseId: LeaseId;
  readonly #sent: Sent;
  readonly #validMs: number;
  #timer: Timer | undefined;

  constructor(runtime: Runtime, leaseId: LeaseId, sent: Sent, validMs: number) {
    this.#runtime = runtime;
    this.#leaseId = leaseId;
    this.#sent = sent;
    this.#validMs = validMs;
  }

  get isOver(): boolean {
    const { clock, store } = this.#runtime;
    return hasPassed(clock, this.#sent, this.#validMs, isOfOneMachine(store));
  }

  /** Looks at the hold when its time is up, and again later if it is still valid then. */
  watch(isValid: () => boolean): void {
    const { clock } = this.#runtime;
    this.#timer = clock.timer(this.#sent.monotonic + this.#validMs - clock.monotonic(), () => {
      if (isValid()) this.watch(isValid);
    });
  }

  unwatch(): void {
    this.#timer?.cancel();
  }

  endLease(): void {
    void this.#runtime.store.revokeLease(this.#leaseId).catch(() => undefined);
  }
}

/**
 * Follows the outer hold of a re-entry, if another process has it. No letter tells this process when that hold ends, so the
 * record is followed for as long as the re-entry lasts. Resolves once the record is followed and was read, or `inner` has ended. Calls `changed` when the outer hold changes.
 */
export function followOuter(
  runtime: Runtime,
  recordKey: string,
  outer: Hold,
  inner: Held,
  changed: (grant: Hold) => void,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock } = runtime;
  let seenAt: Revision = 0;
  const seen = (pair: KeyValue | undefined, revision: Revision): void => {
    if (revision < seenAt) return;
    seenAt = revision;
    // A record that cannot be read does not prove that the hold is there, so it counts as lost.
    const holds = pair === undefined ? [] : readEach([pair], holdsOf).flat();
    const found = holds.find(({ id }) => id === outer.id);
    if (found === undefined) inner.lose({ why: 'released-elsewhere' });
    else changed(found);
  };
  const leases = [outer.lease, ...(outer.limit === undefined ? [] : [outer.limit])];
  const look = async (): Promise<Revision> => {
    const anchors = leases.map(anchorKey);
    const reads = [recordKey, ...anchors].map((key) => ({ do: 'read' as const, key }));
    const { results, revision } = await store.transaction(always(reads), signal);
    if (anchors.some((key) => pairIn(results, key) === undefined)) inner.lose({ why: 'expired' });
    seen(pairIn(results, recordKey), revision);
    return revision;
  };
  const record = {
    changes: ({ changes, revision }: Changes) => {
      const last = changes.at(-1);
      seen(last?.kind === 'put' ? last.pair : undefined, revision);
    },
    resync: look,
  };
  // If the outer holder dies, or its time is up, its leases show it before the record does.
  const lease = {
    changes: ({ changes }: Changes) => {
      if (changes.at(-1)?.kind === 'delete') inner.lose({ why: 'expired' });
    },
    resync: look,
  };
  return new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    const begin = (): void => {
      if (signal.aborted || runtime.session === undefined) return resolve();
      Promise.all([
        follow(store, clock, { key: recordKey }, record, signal),
        ...leases.map((each) => follow(store, clock, { key: anchorKey(each) }, lease, signal)),
      ])
        .then(look)
        // If the store stays out of reach, the end of our own session ends the re-entry.
        .then(
          () => resolve(),
          () => void clock.timer(RETRY_MS, begin),
        );
    };
    begin();
  });
}
