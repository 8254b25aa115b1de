/** Commands on their way to the store: how each caller gets its outcome, and the backlog in which they wait for their writer. */
import { type Event, type Hold, NONE, type Origin, type Request, type Token, saidBytes } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { DelegationRequest } from '../layout.ts';
import type { Commit } from './commit.ts';
import { inTime } from './recovery.ts';

/** What the runtime reads of any command to commit it. */
export interface AnyCommand {
  readonly kind: string;
  readonly id?: string;
  /** Of a `release`: the hold has this token, or it is not the one that is meant. */
  readonly token?: Token;
  readonly wait?: boolean;
  /** An earlier attempt may have landed: the machine looks for its id. */
  readonly again?: true;
  /** Of a `cancel`: the whole request, because its ticket may be beyond the known front of the queue. */
  readonly ticket?: Ticket;
  /** Who asked, for the witness. */
  readonly origin?: Origin;
  /** The trace that it belongs to, if not that of the process. */
  readonly trace?: string;
  /** The witness enters hashes of what it says. */
  readonly sensitive?: true;
}

export interface AnyOutcome {
  readonly kind: string;
  readonly hold?: Hold;
}

/** A request as it is stored in the queue. */
export type Ticket = Request & { readonly upgrades?: string };

/** The ticket of a command: without the fields that only concern the attempt. */
export function ticketOf(command: Request & AnyCommand & { force?: true }): Ticket {
  const { kind: _kind, wait: _wait, again: _again, force: _force, sensitive: _sensitive, ...ticket } = command;
  return ticket;
}

export abstract class PendingCommand {
  // Declared here and set in the constructor: V8 takes a slow path to define the fields of a class with many subclasses.

  declare command: AnyCommand;
  /** When to give up on a store that cannot be reached, on the monotonic clock. */
  declare until: number;
  /** Its number among the commands of its writer: a state that refuses it must have been read later. */
  declare asked: number;
  /** How many attempts were made. */
  declare attempts: number;
  declare outcome: AnyOutcome | undefined;
  /** Events that no write carries. */
  declare events: readonly Event[];
  /** Whether the decision changes something. If not, it is a refusal, and has to rest on a fresh state. */
  declare effective: boolean;
  /** An earlier attempt got no answer; `command.again` says so to the machine. */
  declare uncertain: boolean;
  /** That attempt: the outcome if it landed, the record it was decided on, what this process had seen by then, and the error. */
  declare unanswered:
    | {
        readonly outcome: AnyOutcome | undefined;
        readonly mod: Revision;
        readonly seen: Revision;
        readonly error: unknown;
      }
    | undefined;
  /** Identifies a command that must not run twice and leaves nothing else in the record: see `Snapshot.marks`. */
  declare mark: string | undefined;
  /** Delegated, and not answered yet: a second attempt of this process could have it granted twice. */
  declare isDelegated: boolean;
  /** Must be decided on a state that was read after it was submitted. */
  declare looksFirst: boolean;
  /** Must be decided on the whole queue. */
  declare seesAll: boolean;

  constructor(command: AnyCommand, until: number) {
    this.command = command;
    this.until = until;
    this.asked = 0;
    this.attempts = 0;
    this.outcome = undefined;
    this.events = NONE;
    this.effective = false;
    this.uncertain = false;
    this.unanswered = undefined;
    this.mark = undefined;
    this.isDelegated = false;
    this.looksFirst = false;
    this.seesAll = false;
  }

  doubted(error: unknown, mod: Revision, seen: Revision): void {
    const outcome = this.effective ? this.outcome : undefined;
    // A later attempt that would have changed nothing says nothing about the first.
    if (outcome !== undefined || this.unanswered?.outcome === undefined) {
      this.unanswered = { outcome, mod, seen, error };
    }
    this.doubt();
    const { hold } = outcome ?? {};
    // The next attempt means this very hold: by then, the same holder may have another one.
    if (hold !== undefined && this.command.kind === 'release') {
      this.command = { ...this.command, id: hold.id };
    }
  }

  doubt(): void {
    if (this.uncertain) return;
    this.uncertain = true;
    this.command = { ...this.command, again: true };
  }

  /** Its caller no longer waits: another attempt would be useless. */
  get isOver(): boolean {
    return false;
  }

  /** Its caller gave it up before it had an outcome: a grant has to go back. */
  get wasGivenUp(): boolean {
    return false;
  }

  /** If it fails, its request may still be in the queue, where nobody wants it. */
  get leavesRequest(): boolean {
    return false;
  }

  /** The ticket of a command that may wait. */
  get ticket(): Ticket | undefined {
    return undefined;
  }

  /** Sends the request of another command again. */
  get isAgain(): boolean {
    return false;
  }

  abstract settled(outcome: AnyOutcome): void;
  abstract failed(error: unknown): void;
}

/** A command whose caller awaits a promise. */
class AwaitedCommand extends PendingCommand {
  readonly settled: (outcome: AnyOutcome) => void;
  readonly failed: (error: unknown) => void;

  constructor(
    command: AnyCommand,
    until: number,
    settled: (outcome: AnyOutcome) => void,
    failed: (error: unknown) => void,
  ) {
    super(command, until);
    this.settled = settled;
    this.failed = failed;
  }
}

/** A command without a caller: its effect shows in the store. */
export class BackgroundCommand extends PendingCommand {
  constructor(command: AnyCommand) {
    super(command, Number.POSITIVE_INFINITY);
  }

  override settled(): void {}
  override failed(): void {}
}

/**
 * A release that got no answer, and that its caller gave up. It goes on while its first attempt may land, that is, as long as
 * the record stays the same: it is over before the same holder asks again. Otherwise that holder would learn that it has the
 * resource already, and lose it.
 */
export class AbandonedRelease extends BackgroundCommand {
  constructor(release: PendingCommand) {
    super(release.command);
    this.unanswered = release.unanswered;
    this.uncertain = true;
  }
}

/**
 * Sends a request again, in case its answer was missed or was of no use; it is over as soon as the first request is. While the
 * first one waits in the queue, the repeat has no time limit: a store that is unreachable for a while must not end the wait.
 */
export class Again extends PendingCommand {
  readonly #first: PendingCommand;

  constructor(first: PendingCommand, until = Number.POSITIVE_INFINITY) {
    super(first.command, until);
    this.#first = first;
    this.doubt();
  }

  override get isOver(): boolean {
    return this.#first.isOver || this.#first.isDelegated;
  }

  override get wasGivenUp(): boolean {
    return this.#first.wasGivenUp;
  }

  override get leavesRequest(): boolean {
    return this.#first.leavesRequest;
  }

  override get ticket(): Ticket | undefined {
    return this.#first.ticket;
  }

  override get isAgain(): boolean {
    return true;
  }

  override settled(outcome: AnyOutcome): void {
    this.#first.settled(outcome);
  }

  override failed(error: unknown): void {
    this.#first.failed(error);
  }
}

/** After this many attempts the keeper drops a delegated command: its sender looks for itself. */
const MOST_ATTEMPTS = 3;

/** A command that another process delegated to this one. Nobody in this process waits for it. */
export class DelegatedCommand extends BackgroundCommand {
  readonly delegated: DelegationRequest;
  readonly place: number;

  constructor(delegated: DelegationRequest, place: number) {
    // Its sender may have stopped waiting and submitted it itself meanwhile: it must not be in the queue twice.
    super({ ...(delegated.commands[place] as AnyCommand), again: true });
    this.delegated = delegated;
    this.place = place;
  }

  /** Never over while an attempt is in doubt: that attempt may still land, and has to be settled. */
  override get isOver(): boolean {
    return this.attempts > MOST_ATTEMPTS && !this.uncertain;
  }

  /** Ends anything but a release: the grant may have landed and been released since, and a second one would have no owner. */
  override doubt(): void {
    if (this.command.kind === 'release') super.doubt();
    else this.attempts = Number.POSITIVE_INFINITY;
  }
}

/** Submits a command and resolves with its outcome. */
export function outcomeOf(
  writer: { submit(pending: PendingCommand): void },
  command: AnyCommand,
  until: number,
  mark?: string,
): Promise<AnyOutcome> {
  return new Promise((resolve, reject) => {
    const asked = new AwaitedCommand(command, until, resolve, reject);
    asked.mark = mark;
    writer.submit(asked);
  });
}

/** The most commands in one transaction: stores limit its operations. */
const BATCH = 24;
/** The most bytes of reasons and metadata in one transaction: a ticket is in both branches, and stores limit the bytes too. */
const BATCH_BYTES = 128 * 1024;

interface Returned {
  batch: PendingCommand[];
  readonly error: unknown;
}

export class Backlog {
  /** How many commands were submitted so far: tells whether a read came before or after a command. */
  asked = 0;
  #pending: PendingCommand[] = [];
  /** Delegated commands that the keeper did not answer. */
  #returned: Returned[] | undefined;

  add(pending: PendingCommand): void {
    this.#pending.push(pending);
  }

  addReturned(batch: PendingCommand[], error: unknown): void {
    (this.#returned ??= []).push({ batch, error });
  }

  takeReturned(): Returned | undefined {
    return this.#returned?.shift();
  }

  /** Takes as many commands as fit into one write; undefined if there are none. */
  take(): PendingCommand[] | undefined {
    const pending = this.#pending;
    if (pending.length === 0) return undefined;
    const count = fitting(pending);
    if (pending.length > count) return pending.splice(0, count);
    this.#pending = [];
    return pending;
  }

  /** Adds as many commands to the batch as still fit into its write. */
  takeAlong(batch: PendingCommand[]): PendingCommand[] {
    const all = [...batch, ...this.#pending];
    const count = Math.max(batch.length, fitting(all));
    this.#pending = all.slice(count);
    return all.slice(0, count);
  }

  /** Fails the commands whose time is up: it may be over before the store answers again. */
  failLate(now: number, error: unknown): void {
    this.#pending = inTime(this.#pending, now, error);
    for (const returned of this.#returned ?? []) returned.batch = inTime(returned.batch, now, returned.error);
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
export function waitingOf(batch: readonly PendingCommand[]): readonly Ticket[] {
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

/** Whether a user of this process waits for its outcome. */
export function isAwaited(pending: unknown): boolean {
  return !(pending instanceof BackgroundCommand);
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
export function continues(pending: PendingCommand): boolean {
  const outcome = pending.outcome as (AnyOutcome & { readonly then?: AnyCommand }) | undefined;
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
 * Settles a request as queued, if the failed commit put its ticket into the queue. `isHeld`: the resource has a holder; if
 * not, the commit failed only because it rested on a guess.
 */
export function queuedInstead(pending: PendingCommand, commit: Commit, isHeld: boolean): boolean {
  if (!commit.fallback.some(({ id }) => id === pending.command.id)) return false;
  pending.settled({ kind: 'queued', isHeld } as AnyOutcome);
  return true;
}
