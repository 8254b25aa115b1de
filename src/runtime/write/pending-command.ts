/** A command on its way: what is asked, and who is to be told. */
import { type Event, type Hold, NONE, type Request } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';

/** What the runtime has to see in any command to commit it. */
export interface AnyCommand {
  readonly kind: string;
  readonly id?: string;
  readonly wait?: boolean;
  /** It may have been asked before: its id tells. */
  readonly again?: true;
  /** Of a `cancel`: the whole request, because its ticket may lie beyond the known front of the queue. */
  readonly ticket?: Ticket;
}

export interface AnyOutcome {
  readonly kind: string;
  readonly hold?: Hold;
}

/** A request as it waits. */
export type Ticket = Request & { readonly upgrades?: string };

/** As it is kept in the queue: the command without what only concerns the asking. */
export function ticketOf(command: Request & AnyCommand & { force?: true }): Ticket {
  const { kind: _kind, wait: _wait, again: _again, force: _force, ...ticket } = command;
  return ticket;
}

export abstract class PendingCommand<Command = AnyCommand, Outcome = AnyOutcome> {
  // Declared, and set by the constructor: V8 takes a slow path to define the fields of a class that many extend.

  declare command: Command;
  /** On the monotonic clock: when to give up on a store that cannot be reached. */
  declare until: number;
  /** When it was asked, counted in commands: what is known must be newer to refuse it. */
  declare asked: number;
  /** How often it was tried. */
  declare attempts: number;
  declare outcome: Outcome | undefined;
  /** Events that no write carries. */
  declare events: readonly Event[];
  /** The decision changed something; or it is a refusal, and then has to rest on fresh knowledge. */
  declare effective: boolean;
  /** An earlier attempt got no answer: the command now says so too. */
  declare uncertain: boolean;
  /** What that attempt would have answered, and on which record it was decided. */
  declare sent: { readonly outcome: Outcome | undefined; readonly mod: Revision; readonly error: unknown } | undefined;
  /**
   * Of a command that leaves nothing in the state to know it by, and must not be done twice: the record says by which of
   * them it was written last.
   */
  declare mark: string | undefined;
  /** Left to another process that has not answered yet: to ask for it as well could have it granted twice. */
  declare isDelegated: boolean;
  /** To be decided on what is read after it was asked, and not on what was known. */
  declare looksFirst: boolean;

  constructor(command: Command, until: number) {
    this.command = command;
    this.until = until;
    this.asked = 0;
    this.attempts = 0;
    this.outcome = undefined;
    this.events = NONE;
    this.effective = false;
    this.uncertain = false;
    this.sent = undefined;
    this.mark = undefined;
    this.isDelegated = false;
    this.looksFirst = false;
  }

  doubted(error: unknown, mod: Revision): void {
    this.sent = { outcome: this.effective ? this.outcome : undefined, mod, error };
    this.doubt();
  }

  doubt(): void {
    if (this.uncertain) return;
    this.uncertain = true;
    this.command = { ...this.command, again: true };
  }

  /** Nobody waits for it any more: it need not be asked for. */
  get isOver(): boolean {
    return false;
  }

  /** Whoever asked does not want it any more, and was told nothing else: should it be granted, it has to go back. */
  get wasGivenUp(): boolean {
    return false;
  }

  /** If it fails nobody wants it any more, and it may still be in the queue. */
  get leavesRequest(): boolean {
    return false;
  }

  /** The request as it waits, of one that may. */
  get ticket(): Ticket | undefined {
    return undefined;
  }

  /** Asks once more for what another one asks for. */
  get isAgain(): boolean {
    return false;
  }

  abstract settled(outcome: Outcome): void;
  abstract failed(error: unknown): void;
}

/** Somebody who is told by a promise. */
export class AwaitedCommand<Command, Outcome> extends PendingCommand<Command, Outcome> {
  readonly settled: (outcome: Outcome) => void;
  readonly failed: (error: unknown) => void;

  constructor(command: Command, until: number, settled: (outcome: Outcome) => void, failed: (error: unknown) => void) {
    super(command, until);
    this.settled = settled;
    this.failed = failed;
  }
}

/** Nobody has to be told: what it does shows in the store. */
export class BackgroundCommand<Command, Outcome> extends PendingCommand<Command, Outcome> {
  constructor(command: Command) {
    super(command, Number.POSITIVE_INFINITY);
  }

  override settled(): void {}
  override failed(): void {}
}

/** What becomes of one command. */
export function outcomeOf<Command, Outcome>(
  writer: { submit(pending: PendingCommand<Command, Outcome>): void },
  command: Command,
  until: number,
  mark?: string,
): Promise<Outcome> {
  return new Promise<Outcome>((resolve, reject) => {
    const asked = new AwaitedCommand<Command, Outcome>(command, until, resolve, reject);
    asked.mark = mark;
    writer.submit(asked);
  });
}
