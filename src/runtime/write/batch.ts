/** What is asked of the commands that go into one write. */
import { type Request, saidBytes } from '../../core/index.ts';
import type { OperationResult, ReadResult } from '../../store/index.ts';
import type { Commit } from './commit.ts';
import { DelegatedCommand } from './delegation-mail.ts';
import {
  type AnyCommand,
  type AnyOutcome,
  type PendingCommand,
  type Ticket,
  ticketOf,
  BackgroundCommand,
} from './pending-command.ts';

/** So many commands at most go into one transaction; stores limit its operations. */
const BATCH = 24;
/** And so much of what they say of themselves: a ticket is put in both branches, and stores limit the bytes too. */
const BATCH_BYTES = 128 * 1024;

/** How many of them, from the first on, go into one transaction. One always does. */
export function fitting(pending: readonly { readonly command: AnyCommand }[]): number {
  const most = Math.min(pending.length, BATCH);
  if (most <= 1) return most;
  let bytes = 0;
  for (let count = 0; count < most; count++) {
    bytes += saidBytes((pending[count] as { readonly command: object }).command);
    if (bytes > BATCH_BYTES) return Math.max(1, count);
  }
  return most;
}

/** Requests that are to wait if they cannot be granted. */
export function waitingOf(batch: readonly PendingCommand<AnyCommand, AnyOutcome>[]): readonly Ticket[] {
  const tickets: Ticket[] = [];
  if (batch.some(({ uncertain }) => uncertain)) return tickets;
  for (const pending of batch) {
    const { command } = pending;
    if (command.kind !== 'acquire' || command.wait !== true || pending instanceof DelegatedCommand) continue;
    // One that is refused as things are known does not wait: nobody could read the ticket of a weight that cannot be.
    if (!pending.effective) continue;
    // One that is asked again while it is on its way is still one.
    if (!tickets.some(({ id }) => id === command.id)) tickets.push(ticketOf(command as Request & AnyCommand));
  }
  return tickets;
}

/** An delegated of one who has raised its epoch since: it has given up on us, and does it itself. */
export function isOutdated(pending: unknown, leases: readonly string[], reads: readonly OperationResult[]): boolean {
  if (!(pending instanceof DelegatedCommand)) return false;
  const { from, epoch } = pending.delegated;
  const read = reads[leases.indexOf(from)] as ReadResult | undefined;
  return read !== undefined && read.pairs[0]?.version !== epoch;
}

/** Asked again while it is on its way: were it to end in between, it would be granted once more, to nobody. */
export function isRepeat(
  { command, isAgain }: Pick<PendingCommand, 'command' | 'isAgain'>,
  place: number,
  batch: readonly Pick<PendingCommand, 'command' | 'isAgain'>[],
): boolean {
  if (batch.length === 1) return false;
  const id = requestIn(command);
  if (id === undefined) return false;
  // Of the first one and those that ask again for it, the first one stays, wherever it stands.
  const isRepeatOf = (other: Pick<PendingCommand, 'isAgain'>, at: number): boolean => !other.isAgain || at < place;
  return isAgain && batch.some((other, at) => at !== place && requestIn(other.command) === id && isRepeatOf(other, at));
}

/** What it is asked for under, of a request that may be asked for again. */
function requestIn(command: AnyCommand): string | undefined {
  if (command.kind === 'acquire') return command.id;
  return command.kind === 'upgrade' ? (command as { readonly request?: string }).request : undefined;
}

export function isSettle({ command }: { readonly command: AnyCommand }): boolean {
  return command.kind === 'settle';
}

/** Whether a command is not done yet: then it asks for the rest from now on. */
export function goesOn<Command, Outcome extends AnyOutcome>(pending: PendingCommand<Command, Outcome>): boolean {
  const outcome = pending.outcome as (AnyOutcome & { readonly then?: Command }) | undefined;
  if (outcome?.kind !== 'unfinished' || outcome.then === undefined) return false;
  pending.command = outcome.then;
  return true;
}

/**
 * It may wait or hold already; and the victim of a deadlock, or one who waits for more slots than there will be, may be
 * anywhere in the queue.
 */
export function needsWhole({ command, uncertain }: Pick<PendingCommand, 'command' | 'uncertain'>): boolean {
  return uncertain || command.kind === 'refuse' || command.kind === 'resize';
}

/** One in doubt has to be decided here: only another write makes sure that the first one does not land any more. */
export function isSureSettle(pending: Pick<PendingCommand, 'command' | 'uncertain'>): boolean {
  return isSettle(pending) && !pending.uncertain;
}

/** Takes back what somebody asked for who does not want it any more. */
export function withdrawal<Command extends AnyCommand, Outcome>(
  pending: PendingCommand<Command, Outcome>,
): BackgroundCommand<Command, Outcome> {
  const ticket = pending.ticket ?? ticketOf(pending.command as unknown as Request & AnyCommand);
  const cancel: AnyCommand = { kind: 'cancel', id: ticket.id, ticket };
  return new BackgroundCommand(cancel as Command);
}

export function queuedInstead(pending: PendingCommand<AnyCommand, AnyOutcome>, commit: Commit): boolean {
  if (!commit.fallback.some(({ id }) => id === pending.command.id)) return false;
  pending.settled({ kind: 'queued' });
  return true;
}
