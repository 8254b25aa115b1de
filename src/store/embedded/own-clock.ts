/** The clock that this process counts on, as the store knows it: found among the clocks that are listed, or entered there. */
import type { Clock } from '../../clock.ts';
import { randomHex, thisHost } from '../../host/index.ts';
import type { Connection } from './connection.ts';
import { type ClockIdentity, isSameClock, type Reading, SUSPENDED_TOLERANCE_MS } from './shared-clock.ts';

interface ClockRow {
  readonly id: number;
  readonly boot: string;
  readonly time_space: string;
  readonly suspended_ms: number | null;
}

interface Known {
  readonly id: number;
  readonly identity: ClockIdentity;
}

/** The id of no row: until this process's clock is entered, all leases count on other clocks than its own. */
const NOT_ENTERED = 0;
/** A process may be held up between its two readings; one of these attempts goes through. */
const MOST_ATTEMPTS = 5;

export class OwnClock {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #host = hostClock();
  #known: Known | undefined;

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** As of the last reading: code that is about to end a lease reads the clock again. */
  get id(): number {
    return (this.#known ?? this.#find(this.read()))?.id ?? NOT_ENTERED;
  }

  read(): Reading {
    const { monotonicMs, suspendedMs } = readClocks(this.#clock);
    return { ...this.#host, monotonicMs, suspendedMs };
  }

  /** Checks whether this is still the same clock: after a suspend, a machine goes on with another one. */
  check(): Reading {
    const reading = this.read();
    if (this.#known !== undefined && !isSameClock(reading, this.#known.identity)) this.#known = undefined;
    if (this.#known === undefined) this.#find(reading);
    return reading;
  }

  /** Within a write: returns the id of the clock's row, and makes the row if it is missing. */
  enter(): number {
    const { boot, timeSpace, suspendedMs } = this.check();
    const { id } = this;
    if (id !== NOT_ENTERED && this.#connection.sql('SELECT 1 FROM clock WHERE id = ?').get(id) !== undefined) return id;
    this.#dropUnused();
    // A random id instead of the next one: an id that was ever seen must not come to stand for another clock.
    const entered = Number.parseInt(randomHex(6), 16);
    this.#connection
      .sql('INSERT INTO clock (id, boot, time_space, suspended_ms) VALUES (?, ?, ?, ?)')
      .run(entered, boot, timeSpace, suspendedMs);
    this.#known = { id: entered, identity: { boot, timeSpace, suspendedMs } };
    return entered;
  }

  all(): ReadonlyMap<number, ClockIdentity> {
    const rows = this.#connection.sql('SELECT id, boot, time_space, suspended_ms FROM clock').all() as ClockRow[];
    return new Map(
      rows.map(({ id, boot, time_space, suspended_ms }) => [
        id,
        { boot, timeSpace: time_space, suspendedMs: suspended_ms },
      ]),
    );
  }

  #find(reading: Reading): Known | undefined {
    for (const [id, identity] of this.all()) {
      if (isSameClock(reading, identity)) return (this.#known = { id, identity });
    }
    return undefined;
  }

  /** Drops the clocks that nothing counts on any more. */
  #dropUnused(): void {
    this.#connection.sql('DELETE FROM notice WHERE lease NOT IN (SELECT id FROM lease)').run();
    this.#connection
      .sql(
        `DELETE FROM clock WHERE id NOT IN (SELECT clock FROM lease) AND id NOT IN (SELECT clock FROM bell)
           AND id NOT IN (SELECT clock FROM notice)`,
      )
      .run();
  }
}

/** The part of a clock's identity that tells it apart from those of other processes, however the clock is read. */
function hostClock(): Pick<ClockIdentity, 'boot' | 'timeSpace'> {
  const host = thisHost();
  if (host !== undefined) return { boot: host.boot, timeSpace: host.timeSpace };
  // Only Linux has time namespaces, and containers with a boot id of their own; elsewhere, all processes share one clock.
  if (process.platform !== 'linux') return { boot: process.platform, timeSpace: 'none' };
  return { boot: `unknown:${randomHex(8)}`, timeSpace: 'unknown' };
}

/** Reads both clocks at one moment, or nearly. */
function readClocks(clock: Clock): { readonly monotonicMs: number; readonly suspendedMs: number | null } {
  let best = { monotonicMs: 0, suspendedMs: 0, tookMs: Number.POSITIVE_INFINITY };
  for (let attempt = 0; attempt < MOST_ATTEMPTS && best.tookMs > SUSPENDED_TOLERANCE_MS / 5; attempt++) {
    const before = clock.monotonic();
    const uptime = clock.uptime?.();
    const after = clock.monotonic();
    if (uptime === undefined) return { monotonicMs: after, suspendedMs: null };
    if (after - before < best.tookMs) {
      best = { monotonicMs: after, suspendedMs: uptime - (before + after) / 2, tookMs: after - before };
    }
  }
  return { monotonicMs: clock.monotonic(), suspendedMs: best.suspendedMs };
}
