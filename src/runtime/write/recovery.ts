/**
 * Recovers from a store that cannot be reached or does not answer. Every write of the runtime uses it: the batches of
 * `ResourceWriter`, by callbacks, and the single writes of `writeOnce`, by promises.
 *
 *                  ┌─ unavailable: certainly not applied ──────────────────┐
 *     send ────────┤                                                       ▼
 *      ▲           └─ outcome-unknown: doubt ──▶ fence ──▶ look          pause
 *      │                                           ▲        │              │
 *      └────────────── decide again ◀──────────────┼────────┴── look ◀─────┘
 *                                                  └─ pause, where the fence has no answer either
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Request } from '../../core/index.ts';
import type { OperationResult, Revision } from '../../store/index.ts';
import {
  DelegatedCommand,
  type AnyCommand,
  type PendingCommand,
  requestIn,
  ticketOf,
  BackgroundCommand,
} from './pending-command.ts';
import { backoffMs } from './backoff.ts';
import type { Coordinated } from './machines.ts';
import { type LeaseReads, MOST_MARKS, type Snapshot } from './snapshot.ts';

export interface Attempt {
  /** The attempt may have been applied, or may still be. */
  doubted(error: Failure): void;
  /** Once this calls back, no write that was sent before can land. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  /** Whether a caller still waits. Callers whose time is up fail with this error. */
  isWanted(error: unknown): boolean;
  /** Reads what the decision rests on, and decides again. After a doubt, it looks for the earlier attempt by its id. */
  look(afterDoubt: boolean): void;
  /** The error is final: another attempt would fail as well. */
  failed(error: unknown): void;
  /** Keeps the process alive until the next attempt. */
  readonly keepsAlive: boolean;
  /** Ends a pause early. */
  readonly cut?: AbortSignal | undefined;
}

interface Host {
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
}

/** The store was not reached, or did not answer: another attempt may succeed. */
export function isTrouble(error: unknown): boolean {
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}

export class Recovery {
  readonly #host: Host;
  /** Failures since the store last answered. */
  #failures = 0;
  /** Doubts since the store last answered a write: it may answer reads and no write. */
  #doubts = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The store answered a read. */
  read(): void {
    this.#failures = 0;
  }

  /** The store answered a write. */
  answered(): void {
    this.#failures = 0;
    this.#doubts = 0;
  }

  /** A write was refused or got no answer. */
  failed(error: unknown, attempt: Attempt): void {
    if (!Failure.is(error, 'outcome-unknown')) return this.unread(error, attempt);
    attempt.doubted(error);
    const doubts = this.#doubts++;
    if (doubts === 0) return this.#fence(error, attempt);
    this.#later(error, doubts - 1, attempt, () => this.#fence(error, attempt));
  }

  /** A read failed, so nothing can have been applied. */
  unread(error: unknown, attempt: Attempt): void {
    // `not-found`: a lease that the write needs has ended. That is decided again too.
    if (!isTrouble(error) && !Failure.is(error, 'not-found')) return attempt.failed(error);
    this.#later(error, this.#failures++, attempt, () => attempt.look(false));
  }

  #fence(error: Failure, attempt: Attempt): void {
    attempt.fence(
      () => attempt.look(true),
      (again) => {
        if (!isTrouble(again)) return attempt.failed(again);
        this.#later(error, this.#failures++, attempt, () => this.#fence(error, attempt));
      },
    );
  }

  #later(error: unknown, failures: number, attempt: Attempt, call: () => void): void {
    if (!attempt.isWanted(error)) return;
    const { cut, keepsAlive } = attempt;
    const over = (): void => {
      cut?.removeEventListener('abort', over);
      timer?.cancel();
      if (attempt.isWanted(error)) call();
    };
    const timer = this.#host.later(backoffMs(failures), over, keepsAlive);
    cut?.addEventListener('abort', over, { once: true });
  }
}

/** The writes of one resource that got no answer. They may have changed what this process holds or waits for. */
export class Doubts {
  readonly #reconcile: () => void;
  /** A write may still land while the record has this mod revision. */
  #record: Revision | undefined;
  /** A write of tickets alone answered requests: the record does not show whether it landed. */
  areAnswersUnseen = false;

  constructor(reconcile: () => void) {
    this.#reconcile = reconcile;
  }

  unanswered(record: Revision, answersUnseen: boolean): void {
    this.#record = record;
    if (answersUnseen) this.areAnswersUnseen = true;
  }

  /** A later write of this process has landed, so an earlier one never will. */
  overwritten(): void {
    this.#record = undefined;
  }

  /** If the record is another one, the write in doubt has landed or never will. */
  sawRecord(record: Revision): void {
    if (this.#record === undefined || this.#record === record) return;
    this.#record = undefined;
    this.#reconcile();
  }

  /** The batch in doubt has been decided again. If its first attempt landed, the requests that it answered wait here in vain. */
  decidedAgain(): void {
    if (!this.areAnswersUnseen) return;
    this.areAnswersUnseen = false;
    this.#reconcile();
  }
}

// What becomes of commands whose attempts failed

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

/** Without commands whose mark says that they have landed, releases that nobody wants, and requests that the batch has twice. */
export function withoutRepeats(batch: PendingCommand[], snapshot: Snapshot<Coordinated>): PendingCommand[] {
  const first = batch[0];
  // Almost every batch is one command with a caller, and that is never left out.
  if (batch.length === 1 && first?.mark === undefined && !(first instanceof BackgroundCommand)) return batch;
  return withoutUnwanted(batch, snapshot);
}

function withoutUnwanted(batch: PendingCommand[], snapshot: Snapshot<Coordinated>): PendingCommand[] {
  const isUnwanted = (pending: PendingCommand): boolean =>
    pending instanceof BackgroundCommand && (pending.onlyAt ?? snapshot.mod) !== snapshot.mod;
  if (batch.some(isUnwanted)) return batch.filter((pending) => !isUnwanted(pending));
  if (batch.some(({ mark, uncertain }) => uncertain && mark !== undefined)) {
    const rest = withoutMarked(batch, snapshot);
    if (rest.length < batch.length) return rest;
  }
  if (!batch.some((pending, place) => isRepeat(pending, place, batch))) return batch;
  return batch.filter((pending, place) => !isRepeat(pending, place, batch));
}

/** Takes back a request that its caller gave up. */
export function withdrawal(pending: PendingCommand): BackgroundCommand {
  const ticket = pending.ticket ?? ticketOf(pending.command as unknown as Request & AnyCommand);
  const cancel: AnyCommand = { kind: 'cancel', id: ticket.id, ticket };
  return new BackgroundCommand(cancel);
}

/** Replaces a command whose caller gets an error, in its place in the queue, so that it comes before the next request. */
function leftBehind(pending: PendingCommand): BackgroundCommand | undefined {
  const { kind } = pending.command;
  // The hold counts as a reader already. Otherwise its holder would learn that it is still the writer, and then this command
  // would land.
  if (kind === 'downgrade') return new BackgroundCommand(pending.command);
  // It may still land. Done in the background, it is over before the same holder asks again: otherwise the holder would learn
  // that it has the resource already, and lose it.
  if (kind === 'release' && pending.unanswered?.outcome?.hold !== undefined)
    return new BackgroundCommand(pending.command, pending.unanswered.mod);
  // A grant that landed nevertheless has no owner.
  const isWanted = !pending.isOver && pending.leavesRequest;
  return pending.uncertain && (isWanted || pending.wasGivenUp) ? withdrawal(pending) : undefined;
}

/** The commands that still have time. The others fail with `error`. */
export function inTime(batch: readonly PendingCommand[], now: number, error: unknown): PendingCommand[] {
  const rest: PendingCommand[] = [];
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
export function withoutMarked(
  batch: PendingCommand[],
  { mod, marks }: Pick<Snapshot<Coordinated>, 'mod' | 'marks'>,
): PendingCommand[] {
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
