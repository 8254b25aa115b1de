/** The commands of one resource that wait until its writer is free, and the batch of them that goes into one write. */
import { type Request, saidBytes } from '../../core/index.ts';
import type { OperationResult } from '../../store/index.ts';
import type { Commit } from './commit.ts';
import {
  DelegatedCommand,
  type AnyCommand,
  type AnyOutcome,
  type PendingCommand,
  type Ticket,
  ticketOf,
  BackgroundCommand,
} from './pending-command.ts';
import type { Coordinated } from './machines.ts';
import { type LeaseReads, MOST_MARKS, type Snapshot } from './snapshot.ts';
import type { Witness } from './witness.ts';

/** The most commands in one transaction: stores limit its operations. */
const BATCH = 24;
/** The most bytes of reasons and metadata in one transaction: a ticket is in both branches, and stores limit the bytes too. */
const BATCH_BYTES = 128 * 1024;

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

/** How many of the first commands fit into one transaction; at least one. */
function fitting(pending: readonly { readonly command: AnyCommand }[]): number {
  const most = Math.min(pending.length, BATCH);
  if (most <= 1) return most;
  let bytes = 0;
  for (let count = 0; count < most; count++) {
    bytes += saidBytes((pending[count] as { readonly command: object }).command);
    if (bytes > BATCH_BYTES) return Math.max(1, count);
  }
  return most;
}

/** The tickets of the requests that join the queue if another process writes first. */
export function waitingOf(batch: readonly PendingCommand<AnyCommand, AnyOutcome>[]): readonly Ticket[] {
  const tickets: Ticket[] = [];
  if (batch.some(({ uncertain }) => uncertain)) return tickets;
  for (const pending of batch) {
    const { command } = pending;
    if (command.kind !== 'acquire' || command.wait !== true || pending instanceof DelegatedCommand) continue;
    // The decision refuses this one, so it must not wait: no process could ever grant a ticket with an impossible weight.
    if (!pending.effective) continue;
    // A request that was sent again while it was on its way has one ticket.
    if (!tickets.some(({ id }) => id === command.id)) tickets.push(ticketOf(command as Request & AnyCommand));
  }
  return tickets;
}

/** Whether the sender of a delegated command has raised its epoch since: it gave up on us, and writes the command itself. */
export function isOutdated(pending: unknown, leases: LeaseReads, results: readonly OperationResult[]): boolean {
  if (!(pending instanceof DelegatedCommand)) return false;
  const { from, epoch } = pending.delegated;
  const read = leases.get(from)?.in(results);
  return read !== undefined && read.pairs[0]?.version !== epoch;
}

/** Whether the batch has this request twice. If the first one ended in between, the second would be granted to nobody. */
export function isRepeat(
  { command, isAgain }: Pick<PendingCommand, 'command' | 'isAgain'>,
  place: number,
  batch: readonly Pick<PendingCommand, 'command' | 'isAgain'>[],
): boolean {
  if (batch.length === 1) return false;
  const id = requestIn(command);
  if (id === undefined) return false;
  // The original stays, wherever it is in the batch; of repeats alone, the first one stays.
  const isRepeatOf = (other: Pick<PendingCommand, 'isAgain'>, at: number): boolean => !other.isAgain || at < place;
  return isAgain && batch.some((other, at) => at !== place && requestIn(other.command) === id && isRepeatOf(other, at));
}

/** Without commands whose mark says that they have landed, and without requests that the batch has twice. */
export function withoutRepeats<Command extends AnyCommand, Outcome extends AnyOutcome>(
  batch: PendingCommand<Command, Outcome>[],
  snapshot: Snapshot<Coordinated>,
): PendingCommand<Command, Outcome>[] {
  if (batch.length === 1 && batch[0]?.mark === undefined) return batch;
  if (batch.some(({ mark, uncertain }) => uncertain && mark !== undefined)) {
    const rest = withoutMarked(batch, snapshot);
    if (rest.length < batch.length) return rest;
  }
  if (!batch.some((pending, place) => isRepeat(pending, place, batch))) return batch;
  return batch.filter((pending, place) => !isRepeat(pending, place, batch));
}

/** Whether a user of this process waits for its outcome. */
export function isAwaited(pending: unknown): boolean {
  return !(pending instanceof BackgroundCommand || pending instanceof DelegatedCommand);
}

/**
 * Says in the command who asked, and when: it may wait in the queue, or another process may write it. Also says that it is
 * sensitive, even if the witness is off: the process that serves it may have switched the witness on.
 */
export function stamp(pending: PendingCommand<AnyCommand, AnyOutcome>, witness: Witness): void {
  if (pending.command.origin !== undefined || pending instanceof DelegatedCommand) return;
  const { trace, sensitive } = pending.command;
  pending.command = { ...pending.command, origin: witness.origin(trace, sensitive) };
}

/** How many living requests the queue has before this one; undefined if it does not have this one. */
export function placeIn(
  waiting: readonly Ticket[],
  id: string,
  isGone: (lease: string) => boolean,
): number | undefined {
  const place = waiting.findIndex((request) => request.id === id);
  return place < 0 ? undefined : waiting.slice(0, place).filter(({ lease }) => !isGone(lease)).length;
}

/** The request id of a command that may be sent again. */
export function requestIn(command: AnyCommand): string | undefined {
  if (command.kind === 'acquire') return command.id;
  return command.kind === 'upgrade' ? (command as { readonly request?: string }).request : undefined;
}

export function isSettle({ command }: { readonly command: AnyCommand }): boolean {
  return command.kind === 'settle';
}

/** Whether a command is unfinished: then it is replaced by the command for the rest. */
export function continues<Command, Outcome extends AnyOutcome>(pending: PendingCommand<Command, Outcome>): boolean {
  const outcome = pending.outcome as (AnyOutcome & { readonly then?: Command }) | undefined;
  if (outcome?.kind !== 'unfinished' || outcome.then === undefined) return false;
  pending.command = outcome.then;
  return true;
}

/**
 * Whether a command needs the whole queue, as it may say itself. An uncertain one may be waiting already. The victim of a
 * deadlock (`refuse`), or a request for more slots than are left (`resize`), may be anywhere in the queue.
 */
export function needsWhole(pending: Pick<PendingCommand, 'command' | 'uncertain' | 'seesAll'>): boolean {
  const { command, uncertain, seesAll } = pending;
  return uncertain || seesAll || command.kind === 'refuse' || command.kind === 'resize';
}

/**
 * An uncertain `settle` cannot be delegated: only a write of this process makes sure that the first one cannot land. Nor can one
 * that needs the whole queue: the keeper would serve the front that it knows.
 */
export function isSureSettle(pending: Pick<PendingCommand, 'command' | 'uncertain' | 'seesAll'>): boolean {
  return isSettle(pending) && !pending.uncertain && !pending.seesAll;
}

/** Takes back a request that its caller gave up. */
export function withdrawal<Command extends AnyCommand, Outcome>(
  pending: PendingCommand<Command, Outcome>,
): BackgroundCommand<Command, Outcome> {
  const ticket = pending.ticket ?? ticketOf(pending.command as unknown as Request & AnyCommand);
  const cancel: AnyCommand = { kind: 'cancel', id: ticket.id, ticket };
  return new BackgroundCommand(cancel as Command);
}

/**
 * Settles a request as queued, if the failed commit put its ticket into the queue. `isHeld`: the resource has a holder; if
 * not, the commit failed only because it rested on a guess.
 */
export function queuedInstead(
  pending: PendingCommand<AnyCommand, AnyOutcome>,
  commit: Commit,
  isHeld: boolean,
): boolean {
  if (!commit.fallback.some(({ id }) => id === pending.command.id)) return false;
  pending.settled({ kind: 'queued', isHeld } as AnyOutcome);
  return true;
}

/** Replaces a command whose caller gets an error, in its place in the queue, so that it comes before the next request. */
function leftBehind<Command extends AnyCommand, Outcome>(
  pending: PendingCommand<Command, Outcome>,
): BackgroundCommand<Command, Outcome> | undefined {
  // The hold counts as a reader already. Otherwise its holder would learn that it is still the writer, and then this command
  // would land.
  if (pending.command.kind === 'downgrade') return new BackgroundCommand(pending.command);
  // A grant that landed nevertheless has no owner.
  const isWanted = !pending.isOver && pending.leavesRequest;
  return pending.uncertain && (isWanted || pending.wasGivenUp) ? withdrawal(pending) : undefined;
}

/** The commands that still have time. The others fail with `error`. */
export function inTime<Command extends AnyCommand, Outcome>(
  batch: readonly PendingCommand<Command, Outcome>[],
  now: number,
  error: unknown,
): PendingCommand<Command, Outcome>[] {
  const rest: PendingCommand<Command, Outcome>[] = [];
  for (const pending of batch) {
    if (pending.until > now) {
      rest.push(pending);
      continue;
    }
    const left = leftBehind(pending);
    if (left !== undefined) rest.push(left);
    pending.failed(pending.unanswered?.error ?? error);
  }
  return rest;
}

/**
 * Settles the commands that only their mark identifies, and returns the rest. If the record does not have the mark, the first
 * attempt has not landed, and never will: it compares a record that is gone, or will be after the next attempt. So the command
 * is tried again; but a `break` fails, because it means the holders of that time.
 */
export function withoutMarked<Command extends AnyCommand, Outcome>(
  batch: PendingCommand<Command, Outcome>[],
  { mod, marks }: Pick<Snapshot<Coordinated>, 'mod' | 'marks'>,
): PendingCommand<Command, Outcome>[] {
  return batch.filter((pending) => {
    const { mark, unanswered } = pending;
    if (mark === undefined || unanswered?.outcome === undefined || unanswered.mod === mod) return true;
    const isKnown = marks.includes(mark);
    if (!isKnown && marks.length < MOST_MARKS && pending.command.kind !== 'break') return true;
    if (isKnown) pending.settled(unanswered.outcome);
    else pending.failed(unanswered.error);
    return false;
  });
}
