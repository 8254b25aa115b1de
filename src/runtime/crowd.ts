/** What the desk of one resource leaves to another process while many write its record at once: see `errands.ts`. */
import { NONE } from '../core/index.ts';
import { Failure } from '../failure.ts';
import { isSettle, isSureSettle, withdrawal } from './batch.ts';
import { canBeLeft, ErrandPending, PATIENCE_MS } from './errands.ts';
import type { Errand } from './layout.ts';
import type { Office } from './office.ts';
import type { AnyCommand, AnyOutcome, Pending } from './pending.ts';

/** So many writes are left to others before it is tried again oneself, in case the crowd has gone. */
const ERRANDS = 64;
/** Whoever decides on something older than this when it loses a race has not met a crowd: its view was old. */
const FRESH_MS = 10;

/** What it needs of the desk. */
export interface Leaving<Command, Outcome> {
  readonly resource: string;
  submit(pending: Pending<Command, Outcome>): void;
  settle(): void;
  settled(pending: Pending<Command, Outcome>): void;
  /** Left to another process, and not answered: it has to be decided here. */
  returned(batch: Pending<Command, Outcome>[], error: unknown): void;
  /** Something that was under way has ended. */
  tellIfIdle(): void;
}

export class Crowd<Command extends AnyCommand, Outcome extends AnyOutcome> {
  readonly #desk: Leaving<Command, Outcome>;
  readonly #office: Office;
  #toLeave = 0;
  #toKeep = 0;
  #underWay = 0;

  constructor(desk: Leaving<Command, Outcome>, office: Office) {
    this.#desk = desk;
    this.#office = office;
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
    const yields = by !== undefined && by < this.#office.sender.id;
    if (agedMs >= FRESH_MS || (this.#toKeep > 0 && !yields)) return;
    this.#toLeave = ERRANDS;
    this.#toKeep = 0;
  }

  wrote(): void {
    if (this.#toKeep > 0) this.#toKeep -= 1;
  }

  /** Whether the keeper takes this write over. */
  takes(keeper: string | undefined, batch: Pending<Command, Outcome>[], changesRecord: boolean): boolean {
    if (this.#toLeave === 0 || keeper === undefined) return false;
    if (batch.every(isSureSettle)) {
      this.#nudge(keeper, batch);
      return true;
    }
    // Who only queues does not race.
    if (!changesRecord || batch.every(isSettle)) return false;
    const { sender } = this.#office;
    if (!batch.every((pending) => isSureSettle(pending) || canBeLeft(pending as unknown as Pending, sender)))
      return false;
    this.#leaveTo(keeper, batch);
    return true;
  }

  /** Leaves it to the keeper to serve those who wait; and looks after a while whether it did. */
  #nudge(keeper: string, batch: readonly Pending<Command, Outcome>[]): void {
    this.#toLeave -= 1;
    this.#office.nudge(keeper, this.#desk.resource);
    const look = (): void => {
      // The keeper may be stopped, and nobody would tell: this time it is done here.
      this.#toLeave = 0;
      this.#desk.settle();
    };
    this.#office.later(PATIENCE_MS, look, false);
    for (const pending of batch) this.#desk.settled(pending);
  }

  /** The desk goes on meanwhile: two who leave something to each other would otherwise both wait in vain. */
  #leaveTo(keeper: string, batch: readonly Pending<Command, Outcome>[]): void {
    this.#toLeave -= 1;
    // Who writes settles the queue anyway.
    const left = batch.filter((pending) => !isSettle(pending));
    const commands = left.map(({ command }) => command);
    this.#isLeft(left, true);
    this.#office.leaveTo(keeper, this.#desk.resource, commands, {
      done: (outcomes) => {
        this.#isLeft(left, false);
        for (const [place, pending] of left.entries()) {
          pending.outcome = outcomes[place] as Outcome;
          pending.events = NONE;
          this.#desk.settled(pending);
        }
        this.#desk.tellIfIdle();
      },
      nobody: () => {
        this.#isLeft(left, false);
        this.#toLeave = 0;
        for (const pending of left) this.#desk.submit(pending);
        this.#desk.tellIfIdle();
      },
      failed: (error) => {
        this.#isLeft(left, false);
        this.#toLeave = 0;
        // Whoever gave up meanwhile may have been granted all the same, after it was looked for in vain.
        const batch = left.map((pending) => (pending.wasGivenUp ? withdrawal(pending) : pending));
        if (Failure.is(error, 'outcome-unknown')) for (const returned of batch) returned.doubt();
        this.#desk.returned(batch, error);
      },
    });
  }

  #isLeft(batch: readonly Pending<Command, Outcome>[], isLeft: boolean): void {
    this.#underWay += isLeft ? 1 : -1;
    for (const pending of batch) pending.isLeft = isLeft;
  }

  /** Carries out what another process asks for, or passes it on. */
  carryOut(errand: Errand, keeper: string | undefined): void {
    const passes = this.#toLeave > 0 && errand.passedOn === undefined;
    if (!passes || keeper === undefined || keeper === errand.from) return this.#carryOut(errand);
    this.#office.passOn(keeper, errand, () => this.#carryOut(errand));
  }

  #carryOut(errand: Errand): void {
    if (this.#toLeave === 0) this.#toKeep = ERRANDS;
    for (let place = 0; place < errand.commands.length; place++) {
      this.#desk.submit(new ErrandPending(errand, place) as unknown as Pending<Command, Outcome>);
    }
  }
}
