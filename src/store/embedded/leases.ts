/**
 * Leases as rows. Deadlines are on the monotonic clock, which all processes of a machine share, together with the boot
 * in which it counts: after another boot, or where a deadline lies further ahead than the lease is long, it is over.
 */
import type { Clock } from '../../clock.ts';
import { isProvenGone, type ProcessIdentity, thisHost } from '../../host/index.ts';
import type { Connection, Statement } from './connection.ts';

/** Others may have read the clock a little later. */
const SLACK_MS = 10_000;

/** Where the system does not tell (or /proc is not shown): it may well be the same one as another's. */
const UNKNOWN = 'unknown';

export interface LeaseRow {
  readonly id: number;
  readonly ttl_ms: number;
  readonly deadline: number;
  readonly boot: string;
  readonly processes: string | null;
}

export class Leases {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #isGone: (process: ProcessIdentity, atAGlance: boolean) => boolean;
  readonly boot = thisHost()?.boot ?? UNKNOWN;

  constructor(connection: Connection, clock: Clock, isGone = isProvenGone) {
    this.#connection = connection;
    this.#clock = clock;
    this.#isGone = isGone;
  }

  grant(id: number, ttlMs: number): void {
    const deadline = this.#clock.monotonic() + ttlMs;
    this.#sql('INSERT INTO lease (id, ttl_ms, deadline, boot) VALUES (?, ?, ?, ?)').run(id, ttlMs, deadline, this.boot);
  }

  get(id: number): LeaseRow | undefined {
    return this.#sql('SELECT id, ttl_ms, deadline, boot, processes FROM lease WHERE id = ?').get(id) as
      LeaseRow | undefined;
  }

  renew({ id, ttl_ms }: LeaseRow): void {
    this.#sql('UPDATE lease SET deadline = ? WHERE id = ?').run(this.#clock.monotonic() + ttl_ms, id);
  }

  remove(id: number): void {
    this.#sql('DELETE FROM lease WHERE id = ?').run(id);
  }

  endWith(id: number, processes: readonly ProcessIdentity[]): void {
    this.#sql('UPDATE lease SET processes = ? WHERE id = ?').run(JSON.stringify(processes), id);
  }

  remainingMs({ deadline }: LeaseRow): number {
    return deadline - this.#clock.monotonic();
  }

  /** Those whose time is over, the longest first. */
  due(): number[] {
    const rows = this.#sql('SELECT id FROM lease WHERE deadline <= ? ORDER BY deadline, id').all(
      this.#clock.monotonic(),
    );
    return (rows as { id: number }[]).map(({ id }) => id);
  }

  isOver(deadline: number | null): boolean {
    return deadline !== null && deadline <= this.#clock.monotonic();
  }

  isOfAnotherBoot(boot: string): boolean {
    return boot !== this.boot && boot !== UNKNOWN && this.boot !== UNKNOWN;
  }

  /** Those that count on a clock that is no more: the machine was started anew since. */
  ofAnotherBoot(): number[] {
    const latest = this.#clock.monotonic() + SLACK_MS;
    const rows = this.#sql('SELECT id, ttl_ms, deadline, boot FROM lease ORDER BY id').all() as LeaseRow[];
    return rows
      .filter(({ boot, deadline, ttl_ms }) => this.isOfAnotherBoot(boot) || deadline > latest + ttl_ms)
      .map(({ id }) => id);
  }

  /** Those of whose processes none is left, for certain. A glance overlooks some (see `isProvenGone`). */
  ofTheDead(atAGlance: boolean): number[] {
    const rows = this.#sql('SELECT id, processes FROM lease WHERE processes IS NOT NULL').all() as LeaseRow[];
    const known = new Map<string, boolean>();
    const areGone = (processes: string): boolean => {
      let gone = known.get(processes);
      if (gone === undefined) {
        gone = (JSON.parse(processes) as ProcessIdentity[]).every((process) => this.#isGone(process, atAGlance));
        known.set(processes, gone);
      }
      return gone;
    };
    return rows.filter(({ processes }) => processes !== null && areGone(processes)).map(({ id }) => id);
  }

  #sql(text: string): Statement {
    return this.#connection.sql(text);
  }
}
