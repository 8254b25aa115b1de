/** What the writer of one resource leaves to another process while many write its record at once: see `delegations.ts`. */
import { NONE } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { isSettle, isSureSettle, withdrawal } from './batch.ts';
import { canBeDelegated, DelegatedCommand, DELEGATION_TIMEOUT_MS } from './delegation-mail.ts';
import type { DelegationRequest } from '../layout.ts';
import type { WriterHost } from './writer-host.ts';
import type { AnyCommand, AnyOutcome, PendingCommand } from './pending-command.ts';

/** So many writes are left to others before it is tried again oneself, in case the crowd has gone. */
const DELEGATED_WRITES = 64;
/** Whoever decides on something older than this when it loses a race has not met a crowd: its snapshot was old. */
const FRESH_MS = 10;

/** What it needs of the writer. */
export interface DelegatingWriter<Command, Outcome> {
  readonly resource: string;
  submit(pending: PendingCommand<Command, Outcome>): void;
  settle(): void;
  settled(pending: PendingCommand<Command, Outcome>): void;
  /** Left to another process, and not answered: it has to be decided here. */
  returned(batch: PendingCommand<Command, Outcome>[], error: unknown): void;
  /** Something that was under way has ended. */
  tellIfIdle(): void;
}

export class Delegation<Command extends AnyCommand, Outcome extends AnyOutcome> {
  readonly #writer: DelegatingWriter<Command, Outcome>;
  readonly #host: WriterHost;
  #toDelegate = 0;
  #toKeep = 0;
  #underWay = 0;

  constructor(writer: DelegatingWriter<Command, Outcome>, host: WriterHost) {
    this.#writer = writer;
    this.#host = host;
  }

  /** Something was left to another process that has not answered yet. */
  get isUnderWay(): boolean {
    return this.#underWay > 0;
  }

  /** Others leave their writes to this process. */
  get isKept(): boolean {
    return this.#toKeep > 0;
  }

  /**
   * Another process was faster, although this one had looked just before. Of two to whom others leave their writes,
   * the one with the smaller name goes on.
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
    // Who only queues does not race.
    if (!changesRecord || batch.every(isSettle)) return false;
    const { sender } = this.#host;
    if (
      !batch.every((pending) => isSureSettle(pending) || canBeDelegated(pending as unknown as PendingCommand, sender))
    )
      return false;
    this.#delegateTo(keeper, batch);
    return true;
  }

  /** Leaves it to the keeper to serve those who wait; and looks after a while whether it did. */
  #nudge(keeper: string, batch: readonly PendingCommand<Command, Outcome>[]): void {
    this.#toDelegate -= 1;
    this.#host.delegationMail.nudge(keeper, this.#writer.resource);
    const look = (): void => {
      // The keeper may be stopped, and nobody would tell: this time it is done here.
      this.#toDelegate = 0;
      this.#writer.settle();
    };
    this.#host.later(DELEGATION_TIMEOUT_MS, look, false);
    for (const pending of batch) this.#writer.settled(pending);
  }

  /** The writer goes on meanwhile: two who leave something to each other would otherwise both wait in vain. */
  #delegateTo(keeper: string, batch: readonly PendingCommand<Command, Outcome>[]): void {
    this.#toDelegate -= 1;
    // Who writes settles the queue anyway.
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
        this.#writer.tellIfIdle();
      },
      nobody: () => {
        this.#isDelegated(left, false);
        this.#toDelegate = 0;
        for (const pending of left) this.#writer.submit(pending);
        this.#writer.tellIfIdle();
      },
      failed: (error) => {
        this.#isDelegated(left, false);
        this.#toDelegate = 0;
        // Whoever gave up meanwhile may have been granted all the same, after it was looked for in vain.
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

  /** Carries out what another process asks for, or passes it on. */
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
