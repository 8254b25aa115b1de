import { type AnyOutcome, PendingCommand, type Ticket } from '../write/pending-command.ts';

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
