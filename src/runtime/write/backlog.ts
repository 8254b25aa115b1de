/** The commands of one resource that wait until its writer is free. */
import { fitting, inTime } from './batch.ts';
import type { AnyCommand, PendingCommand } from './pending-command.ts';

interface Returned<Command, Outcome> {
  batch: PendingCommand<Command, Outcome>[];
  readonly error: unknown;
}

export class Backlog<Command extends AnyCommand, Outcome> {
  /** How many commands were submitted so far: tells whether a read came before or after a command. */
  asked = 0;
  #pending: PendingCommand<Command, Outcome>[] = [];
  /** Delegated commands that the keeper did not answer. */
  readonly #returned: Returned<Command, Outcome>[] = [];

  add(pending: PendingCommand<Command, Outcome>): void {
    this.#pending.push(pending);
  }

  addReturned(batch: PendingCommand<Command, Outcome>[], error: unknown): void {
    this.#returned.push({ batch, error });
  }

  takeReturned(): Returned<Command, Outcome> | undefined {
    return this.#returned.shift();
  }

  /** Takes as many commands as fit into one write. */
  take(): PendingCommand<Command, Outcome>[] {
    const pending = this.#pending;
    const count = fitting(pending);
    if (pending.length > count) return pending.splice(0, count);
    this.#pending = [];
    return pending;
  }

  /** Adds as many commands to the batch as still fit into its write. */
  takeAlong(batch: PendingCommand<Command, Outcome>[]): PendingCommand<Command, Outcome>[] {
    const all = [...batch, ...this.#pending];
    const count = Math.max(batch.length, fitting(all));
    this.#pending = all.slice(count);
    return all.slice(0, count);
  }

  /** Fails the commands whose time is up: it may be over before the store answers again. */
  failLate(now: number, error: unknown): void {
    this.#pending = inTime(this.#pending, now, error);
    for (const returned of this.#returned) returned.batch = inTime(returned.batch, now, returned.error);
  }
}
