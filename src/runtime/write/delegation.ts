/**
 * Decides when the writer of one resource delegates its commands to the keeper, and carries out what others delegate to this
 * process. `delegation-mail.ts` says why, and sends the letters.
 */
import { NONE } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { isSettle, isSureSettle, withdrawal } from './batch.ts';
import { canBeDelegated, DelegatedCommand, DELEGATION_TIMEOUT_MS } from './delegation-mail.ts';
import type { DelegationRequest } from '../layout.ts';
import type { WriterHost } from './writer-host.ts';
import type { AnyCommand, AnyOutcome, PendingCommand } from './pending-command.ts';

/** How many writes are delegated after a lost race, before the writer writes itself again: the contention may have gone. */
const DELEGATED_WRITES = 64;
/** Losing a race on a snapshot older than this is no sign of contention: the snapshot was stale. */
const FRESH_MS = 10;

/** The writer, as delegation uses it. */
export interface DelegatingWriter<Command, Outcome> {
  readonly resource: string;
  submit(pending: PendingCommand<Command, Outcome>): void;
  settle(): void;
  settled(pending: PendingCommand<Command, Outcome>): void;
  /** Takes back commands that the keeper did not answer: the writer has to decide them. */
  returned(batch: PendingCommand<Command, Outcome>[], error: unknown): void;
  /** A delegation has ended: the writer may be idle now. */
  checkIdle(): void;
}

export class Delegation<Command extends AnyCommand, Outcome extends AnyOutcome> {
  readonly #writer: DelegatingWriter<Command, Outcome>;
  readonly #host: WriterHost;
  /** How many more writes to delegate. */
  #toDelegate = 0;
  /** How many more writes this process counts as a keeper. */
  #toKeep = 0;
  #underWay = 0;

  constructor(writer: DelegatingWriter<Command, Outcome>, host: WriterHost) {
    this.#writer = writer;
    this.#host = host;
  }

  /** Whether the keeper has yet to answer a delegation. */
  get isUnderWay(): boolean {
    return this.#underWay > 0;
  }

  /** Whether this process is a keeper: others delegate their writes to it. */
  get isKeeper(): boolean {
    return this.#toKeep > 0;
  }

  /**
   * The process `by` wrote first, although this one had just read the state. Of two keepers, the one with the smaller name
   * stays keeper.
   */
  overtaken(agedMs: number, by: string | undefined): void {
    const yields = by !== undefined && by < this.#host.sender.id;
    if (agedMs >= FRESH_MS || (this.#toKeep > 0 && !yields)) return;
    this.#toDelegate = DELEGATED_WRITES;
    this.#toKeep = 0;
  }

  wrote(): void {
    if (this.#toKeep > 0) this.#toKeep -= 1;
  }

  /** Whether the keeper takes this write over. */
  takes(keeper: string | undefined, batch: PendingCommand<Command, Outcome>[], changesRecord: boolean): boolean {
    if (this.#toDelegate === 0 || keeper === undefined) return false;
    if (batch.every(isSureSettle)) {
      this.#nudge(keeper, batch);
      return true;
    }
    // A write that only changes the queue compares no record, so it does not race.
    if (!changesRecord || batch.every(isSettle)) return false;
    const { sender } = this.#host;
    if (
      !batch.every((pending) => isSureSettle(pending) || canBeDelegated(pending as unknown as PendingCommand, sender))
    )
      return false;
    this.#delegateTo(keeper, batch);
    return true;
  }

  /** Asks the keeper to serve the queue, and looks after the timeout whether it did. */
  #nudge(keeper: string, batch: readonly PendingCommand<Command, Outcome>[]): void {
    this.#toDelegate -= 1;
    this.#host.delegationMail.nudge(keeper, this.#writer.resource);
    const look = (): void => {
      // The keeper may be stopped, and would send no reply: this time the writer serves the queue itself.
      this.#toDelegate = 0;
      this.#writer.settle();
    };
    this.#host.later(DELEGATION_TIMEOUT_MS, look, false);
    for (const pending of batch) this.#writer.settled(pending);
  }

  /** Sends the commands to the keeper. The writer continues meanwhile: two processes that delegate to each other would otherwise both block. */
  #delegateTo(keeper: string, batch: readonly PendingCommand<Command, Outcome>[]): void {
    this.#toDelegate -= 1;
    // Every write serves the queue anyway.
    const left = batch.filter((pending) => !isSettle(pending));
    const commands = left.map(({ command }) => command);
    this.#isDelegated(left, true);
    this.#host.delegationMail.delegateTo(keeper, this.#writer.resource, commands, {
      done: (outcomes) => {
        this.#isDelegated(left, false);
        for (const [place, pending] of left.entries()) {
          pending.outcome = outcomes[place] as Outcome;
          pending.events = NONE;
          this.#writer.settled(pending);
        }
        this.#writer.checkIdle();
      },
      nobody: () => {
        this.#isDelegated(left, false);
        this.#toDelegate = 0;
        for (const pending of left) this.#writer.submit(pending);
        this.#writer.checkIdle();
      },
      failed: (error) => {
        this.#isDelegated(left, false);
        this.#toDelegate = 0;
        // A request that was given up meanwhile may still be granted by the keeper, so it has to be withdrawn.
        const batch = left.map((pending) => (pending.wasGivenUp ? withdrawal(pending) : pending));
        if (Failure.is(error, 'outcome-unknown')) for (const returned of batch) returned.doubt();
        this.#writer.returned(batch, error);
      },
    });
  }

  #isDelegated(batch: readonly PendingCommand<Command, Outcome>[], isDelegated: boolean): void {
    this.#underWay += isDelegated ? 1 : -1;
    for (const pending of batch) pending.isDelegated = isDelegated;
  }

  /** Carries out what another process delegated, or forwards it if this process delegates its own writes. */
  carryOut(delegated: DelegationRequest, keeper: string | undefined): void {
    const passes = this.#toDelegate > 0 && delegated.passedOn === undefined;
    if (!passes || keeper === undefined || keeper === delegated.from) return this.#carryOut(delegated);
    this.#host.delegationMail.passOn(keeper, delegated, () => this.#carryOut(delegated));
  }

  #carryOut(delegated: DelegationRequest): void {
    if (this.#toDelegate === 0) this.#toKeep = DELEGATED_WRITES;
    for (let place = 0; place < delegated.commands.length; place++) {
      this.#writer.submit(new DelegatedCommand(delegated, place) as unknown as PendingCommand<Command, Outcome>);
    }
  }
}
