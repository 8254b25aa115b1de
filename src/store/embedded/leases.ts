/**
 * Leases as rows. A deadline is a reading of the clock of the process that wrote it, and most often all processes share
 * that clock. Where they do not, or where that is unknown (`shared-clock`), an observer notes when it first saw the
 * lease; the lease is over when its full time has passed on the observer's own clock without a renewal.
 */
import type { Clock } from '../../clock.ts';
import { identityFrom, type ProcessIdentity, Vigil } from '../../host/index.ts';
import type { Connection, Statement } from './connection.ts';
import { OwnClock } from './own-clock.ts';
import { clockRelation, type Reading } from './shared-clock.ts';

/** How often a process looks at leases that count on other clocks than its own. */
const STRANGERS_MS = 250;

export interface LeaseRow {
  readonly id: number;
  readonly ttl_ms: number;
  readonly deadline: number;
  readonly clock: number;
}

/** The part of the store's state that concerns leases. */
export interface Dues {
  /** When the next lease ends that counts on this process's clock. */
  readonly due: number | null;
  /** Whether there are leases that count on other clocks. */
  readonly strangers: number;
}

export interface Judged {
  /** The leases whose time is over, the earliest first. */
  readonly over: readonly number[];
  /** The leases whose time begins to count here. */
  readonly noticed: readonly LeaseRow[];
}

/** Processes, and the leases that end once all of them have ended. */
export interface Suspect {
  /** The processes, as the text in the store. */
  readonly told: string;
  readonly ids: number[];
  readonly processes: readonly ProcessIdentity[];
}

const NONE: Judged = { over: [], noticed: [] };

export class Leases {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #vigil = new Vigil();
  readonly #isGone: (process: ProcessIdentity) => boolean;
  #named: { readonly text: string; readonly all: readonly Suspect[] } = { text: '', all: [] };
  readonly own: OwnClock;
  #lookAtStrangers = Number.NEGATIVE_INFINITY;
  /** Whether the last judgement included leases on other clocks. */
  #hasLooked = false;

  constructor(connection: Connection, clock: Clock, isGone?: (process: ProcessIdentity) => boolean) {
    this.#connection = connection;
    this.#clock = clock;
    this.#isGone = isGone ?? this.#vigil.isGone;
    this.own = new OwnClock(connection, clock);
  }

  grant(id: number, ttlMs: number): void {
    const clock = this.own.enter();
    const deadline = this.#clock.monotonic() + ttlMs;
    this.#sql('INSERT INTO lease (id, ttl_ms, deadline, clock) VALUES (?, ?, ?, ?)').run(id, ttlMs, deadline, clock);
  }

  get(id: number): LeaseRow | undefined {
    return this.#sql('SELECT id, ttl_ms, deadline, clock FROM lease WHERE id = ?').get(id) as LeaseRow | undefined;
  }

  renew({ id, ttl_ms }: LeaseRow): void {
    const clock = this.own.enter();
    this.#sql('UPDATE lease SET deadline = ?, clock = ? WHERE id = ?').run(this.#clock.monotonic() + ttl_ms, clock, id);
    this.#sql('DELETE FROM notice WHERE lease = ?').run(id);
  }

  /**
   * Renews the lease in a transaction of its own, which besides does only `along`: it ends no other lease, as it
   * changes no key. Most of the cost of waiting is renewals, and this one costs a third. Returns false where there is
   * more to do: the lease is over, is gone, or is counted on more than one clock.
   */
  renewAlone({ id, ttl_ms }: LeaseRow, along: () => void): boolean {
    return this.#connection.write(() => {
      // Reads the clock while no other process can write: another process may already have seen as gone what is over by now.
      const { monotonicMs } = this.own.check();
      const renewed = this.#sql(
        `UPDATE lease SET deadline = ? WHERE id = ? AND clock = ? AND deadline > ?
           AND NOT EXISTS (SELECT 1 FROM notice WHERE lease = ?)`,
      ).run(monotonicMs + ttl_ms, id, this.own.id, monotonicMs, id);
      if (Number(renewed.changes) === 0) return false;
      along();
      return true;
    });
  }

  remove(id: number): void {
    this.#sql('DELETE FROM lease WHERE id = ?').run(id);
    this.#sql('DELETE FROM notice WHERE lease = ?').run(id);
  }

  endWith(id: number, processes: readonly ProcessIdentity[]): void {
    this.#sql('UPDATE lease SET processes = ? WHERE id = ?').run(JSON.stringify(processes), id);
  }

  remainingMs({ id, ttl_ms, deadline, clock }: LeaseRow): number {
    if (clock === this.own.id) return deadline - this.#clock.monotonic();
    const noticed = this.#noticedUntil(id);
    return noticed === undefined ? ttl_ms : noticed - this.#clock.monotonic();
  }

  /** Only within a write may the caller act on the answer; until then it may change. */
  judge({ due, strangers }: Dues): Judged {
    this.#hasLooked = false;
    const now = this.#clock.monotonic();
    const isDue = due !== null && due <= now;
    const isFirst = this.#lookAtStrangers === Number.NEGATIVE_INFINITY;
    const mustLook = (strangers > 0 || isFirst) && now >= this.#lookAtStrangers;
    if (!isDue && !mustLook) return NONE;
    const before = this.own.id;
    const reading = this.own.check();
    // The clock was not the one that these leases count on, so nothing is due.
    if (this.own.id !== before) this.#lookAtStrangers = Number.NEGATIVE_INFINITY;
    const over = this.own.id === before ? this.#due(reading.monotonicMs) : [];
    if (!mustLook) return { over, noticed: [] };
    const judged = this.#judgeStrangers(reading);
    this.#hasLooked = true;
    return { over: [...over, ...judged.over], noticed: judged.noticed };
  }

  /** Must be called within a write. */
  notice(noticed: readonly LeaseRow[]): void {
    if (noticed.length === 0) return;
    const clock = this.own.enter();
    const insert = this.#sql('INSERT OR IGNORE INTO notice (lease, clock, deadline) VALUES (?, ?, ?)');
    for (const { id, ttl_ms } of noticed) insert.run(id, clock, this.#clock.monotonic() + ttl_ms);
  }

  /** Puts off the next look at leases on other clocks, if all of them were judged and the result is written. */
  judged(): void {
    if (!this.#hasLooked) return;
    this.#hasLooked = false;
    this.#lookAtStrangers = this.#clock.monotonic() + STRANGERS_MS;
  }

  #due(nowMs: number): number[] {
    const rows = this.#sql('SELECT id FROM lease WHERE clock = ? AND deadline <= ? ORDER BY deadline, id').all(
      this.own.id,
      nowMs,
    );
    return (rows as { id: number }[]).map(({ id }) => id);
  }

  #judgeStrangers(reading: Reading): Judged {
    const clocks = this.own.all();
    const rows = this.#sql('SELECT id, ttl_ms, deadline, clock FROM lease ORDER BY deadline, id').all() as LeaseRow[];
    // The latest reading that the store remembers of each clock: when a lease on it was last renewed.
    const latest = new Map<number, number>();
    for (const row of rows) latest.set(row.clock, Math.max(latest.get(row.clock) ?? -Infinity, renewedAt(row)));
    const over: number[] = [];
    const noticed: LeaseRow[] = [];
    for (const row of rows) {
      const theirs = clocks.get(row.clock);
      // A lease on our own clock counts only if it was renewed before now, so each of these is compared by itself.
      const monotonicMs = row.clock === this.own.id ? renewedAt(row) : (latest.get(row.clock) as number);
      switch (theirs === undefined ? 'apart' : clockRelation(reading, { ...theirs, monotonicMs })) {
        case 'shared':
          if (row.clock !== this.own.id && row.deadline <= reading.monotonicMs) over.push(row.id);
          break;
        case 'rebooted':
          over.push(row.id);
          break;
        case 'apart': {
          const until = this.#noticedUntil(row.id);
          if (until === undefined) noticed.push(row);
          else if (until <= reading.monotonicMs) over.push(row.id);
          break;
        }
      }
    }
    return { over, noticed };
  }

  #noticedUntil(lease: number): number | undefined {
    const row = this.#sql('SELECT deadline FROM notice WHERE lease = ? AND clock = ?').get(lease, this.own.id);
    return (row as { deadline: number } | undefined)?.deadline;
  }

  /** Whether all of them have certainly ended, which stays true. */
  readonly areGone = ({ processes }: Suspect): boolean => processes.every(this.#isGone);

  /** The leases that end with exactly these processes, as the store says now. */
  endingWith(gone: readonly Suspect[]): number[] {
    const names = new Set(gone.map(({ told }) => told));
    return this.suspects().flatMap(({ told, ids }) => (names.has(told) ? ids : []));
  }

  /** To be called from time to time: forgets processes that no lease names any more. */
  tidy(): void {
    this.#vigil.tidy();
  }

  end(): void {
    this.#vigil.end();
  }

  /**
   * The processes whose end ends a lease, those of the eldest lease first. Reads all rows as one text, which on most rounds
   * is the same as on the round before: fetching hundreds of rows takes longer.
   */
  suspects(): readonly Suspect[] {
    const { text } = this.#sql(
      `SELECT json_group_array(json_array(id, CAST(processes AS TEXT))) AS text
       FROM (SELECT id, processes FROM lease WHERE processes IS NOT NULL ORDER BY id)`,
    ).get() as { text: string };
    if (text !== this.#named.text) this.#named = { text, all: namedIn(text) };
    return this.#named.all;
  }

  #sql(text: string): Statement {
    return this.#connection.sql(text);
  }
}

/** Groups the leases of the same processes. A lease whose processes cannot be read ends only when its time is over. */
function namedIn(text: string): Suspect[] {
  const named = new Map<string, Suspect>();
  for (const [id, told] of JSON.parse(text) as [number, string][]) {
    const known = named.get(told);
    if (known !== undefined) known.ids.push(id);
    else named.set(told, { told, ids: [id], processes: identitiesIn(told) ?? [] });
  }
  return [...named.values()].filter(({ processes }) => processes.length > 0);
}

/** Believes the file only if all of it makes sense: a lease whose processes were left out would end at once. */
function identitiesIn(processes: string): readonly ProcessIdentity[] | null {
  try {
    const told: unknown = JSON.parse(processes);
    const identities = Array.isArray(told) ? told.map(identityFrom) : [];
    const sound = identities.filter((identity) => identity !== undefined);
    return sound.length > 0 && sound.length === identities.length ? sound : null;
  } catch {
    return null;
  }
}

function renewedAt({ deadline, ttl_ms }: LeaseRow): number {
  return deadline - ttl_ms;
}
