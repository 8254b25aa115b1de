import { type AnyOutcome, PendingCommand } from '../write/pending-command.ts';

/**
 * Sends a request again, in case its answer was missed; it is over as soon as the first one is. It has no time limit of its
 * own: if it gave up on a store that is away, the first one would go on waiting for a grant that it has already.
 */
export class Again extends PendingCommand {
  readonly #first: PendingCommand;

  constructor(first: PendingCommand) {
    super(first.command, Number.POSITIVE_INFINITY);
    this.#first = first;
    this.doubt();
  }

  override get isOver(): boolean {
    return this.#first.isOver || this.#first.isDelegated;
  }

  override get isAgain(): boolean {
    return true;
  }

  override settled(outcome: AnyOutcome): void {
    this.#first.settled(outcome);
  }

  override failed(): void {}
}
