/**
 * Delegation by mail: a process sends commands to the keeper, the process that writes the same record all the time.
 *
 * A semaphore has several holders, and each of them changes its record. If many processes do so at once, all but one lose the
 * race, read again, and lose the next race. So a process that lost a race on a fresh snapshot stops racing for a while: it
 * puts its commands into the mailbox of the winner, the *keeper*. The keeper adds all commands that have come to its next
 * write, and sends the outcomes with that write.
 *
 *     P  put m/K { delegated: release P.7 }            K  put r/… , m/P { done: released }, m/Q { answers: Q.3 acquired }
 *
 * Nothing depends on the keeper being there. A keeper that does not answer in time is treated like a store that does not
 * answer: the outcome is unknown, so P raises its epoch, looks, and writes the commands itself. (What the keeper writes for P
 * compares P's epoch.)
 *
 * `Delegation` decides for one resource when its writer delegates; `DelegationMail` sends the letters of all of them.
 */
import { NONE } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  isSettle,
  type AnyCommand,
  type AnyOutcome,
  DelegatedCommand,
  type PendingCommand,
} from './pending-command.ts';
import { withdrawal } from './recovery.ts';
import { type DelegationRequest, encode, type DelegationReply, type Letter, mailboxKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import type { ResourceWriter } from './resource-writer.ts';
import type { Timer } from '../../clock.ts';
import type { WriterIdentity } from './commit.ts';

/** How long to wait for the keeper's answer: it may be stopped, or dead. */
const DELEGATION_TIMEOUT_MS = 300;
/** How many writes are delegated after a lost race, before the writer writes itself again: the contention may have gone. */
const DELEGATED_WRITES = 64;

export class Delegation {
  readonly #writer: ResourceWriter;
  readonly #host: Runtime;
  /** How many more writes to delegate. */
  #toDelegate = 0;
  /** How many more writes this process counts as a keeper. */
  #toKeep = 0;
  #underWay = 0;

  constructor(writer: ResourceWriter, host: Runtime) {
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
  overtaken(by: string | undefined): void {
    const yields = by !== undefined && by < this.#host.sender.id;
    if (this.#toKeep > 0 && !yields) return;
    this.#toDelegate = DELEGATED_WRITES;
    this.#toKeep = 0;
  }

  wrote(): void {
    if (this.#toKeep > 0) this.#toKeep -= 1;
  }

  /** Whether the keeper takes this write over. */
  takes(keeper: string | undefined, batch: PendingCommand[], changesRecord: boolean): boolean {
    if (this.#toDelegate === 0 || keeper === undefined) return false;
    if (batch.every(isSureSettle)) {
      this.#nudge(keeper, batch);
      return true;
    }
    // A write that only changes the queue compares no record, so it does not race.
    if (!changesRecord || batch.every(isSettle)) return false;
    const { sender } = this.#host;
    if (!batch.every((pending) => isSureSettle(pending) || canBeDelegated(pending, sender))) return false;
    this.#delegateTo(keeper, batch);
    return true;
  }

  /** Asks the keeper to serve the queue, and looks after the timeout whether it did. */
  #nudge(keeper: string, batch: readonly PendingCommand[]): void {
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
  #delegateTo(keeper: string, batch: readonly PendingCommand[]): void {
    this.#toDelegate -= 1;
    // Every write serves the queue anyway.
    const left = batch.filter((pending) => !isSettle(pending));
    const commands = left.map(({ command }) => command);
    this.#isDelegated(left, true);
    this.#host.delegationMail.delegateTo(keeper, this.#writer.resource, commands, {
      done: (outcomes) => {
        this.#isDelegated(left, false);
        for (const [place, pending] of left.entries()) {
          pending.outcome = outcomes[place];
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

  #isDelegated(batch: readonly PendingCommand[], isDelegated: boolean): void {
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
      this.#writer.submit(new DelegatedCommand(delegated, place));
    }
  }
}

/** Whether the keeper can write this command: it needs nothing of this process but its session. */
export function canBeDelegated(pending: PendingCommand, sender: WriterIdentity): boolean {
  const { command, uncertain } = pending;
  if (uncertain || pending instanceof DelegatedCommand || sender.id === '') return false;
  const { lease, force, steal, elsewhere } = command as AnyCommand & Readonly<Record<string, unknown>>;
  if (command.kind === 'acquire') return command.wait === true && lease === sender.id && !force && !steal;
  return command.kind === 'release' && elsewhere !== true;
}

export interface DelegationCallbacks {
  done(outcomes: readonly AnyOutcome[]): void;
  /** The keeper has ended; nothing was sent. */
  nobody(): void;
  failed(error: unknown): void;
}

interface Outstanding {
  readonly outcomes: (AnyOutcome | undefined)[];
  missing: number;
  readonly calls: DelegationCallbacks;
  readonly timer: Timer;
}

/** Sends delegated commands, and keeps track of the ones without a reply. */
export class DelegationMail {
  readonly #host: Runtime;
  readonly #outstanding = new Map<string, Outstanding>();
  #serial = 0;

  constructor(host: Runtime) {
    this.#host = host;
  }

  delegateTo(keeper: string, resource: string, commands: readonly AnyCommand[], calls: DelegationCallbacks): void {
    const { sender } = this.#host;
    const { id: from, epoch, anchor } = sender;
    this.#serial += 1;
    const id = `${from}!${this.#serial}`;
    const delegated: DelegationRequest = { id, resource, from, epoch, leaseId: sender.leaseIdOf(from), commands };
    const letter: Letter = { answers: [], losses: [], delegations: [delegated] };
    const key = mailboxKey(keeper);
    const timer = this.#host.later(DELEGATION_TIMEOUT_MS, () => {
      this.#forget(id)?.failed(
        new Failure('outcome-unknown', `process ${keeper} did not answer within ${DELEGATION_TIMEOUT_MS} ms`),
      );
    });
    this.#outstanding.set(id, { outcomes: commands.map(() => undefined), missing: commands.length, calls, timer });
    this.#host.commit(
      {
        compare: [
          { key, target: 'version', is: '>', than: 0 },
          { key: anchor, target: 'version', is: '=', than: epoch },
        ],
        success: [{ do: 'put', key, value: encode(letter), lease: 'keep' }],
        failure: [],
      },
      ({ succeeded }) => {
        if (!succeeded) this.#forget(id)?.nobody();
      },
      (error) => this.#forget(id)?.failed(error),
    );
  }

  /** Forwards a delegation that came here to `keeper`, which answers its sender directly. */
  passOn(keeper: string, delegated: DelegationRequest, notPassed: () => void): void {
    this.#send(keeper, { ...delegated, passedOn: true }, notPassed);
  }

  /** Asks the keeper to serve the queue. No reply is expected. */
  nudge(keeper: string, resource: string): void {
    const { id: from, epoch } = this.#host.sender;
    const commands = [{ kind: 'settle' }];
    this.#send(keeper, { id: '', resource, from, epoch, leaseId: '', commands, passedOn: true }, () => undefined);
  }

  #send(keeper: string, delegated: DelegationRequest, notSent: () => void): void {
    const letter: Letter = { answers: [], losses: [], delegations: [delegated] };
    const key = mailboxKey(keeper);
    this.#host.commit(
      {
        compare: [{ key, target: 'version', is: '>', than: 0 }],
        success: [{ do: 'put', key, value: encode(letter), lease: 'keep' }],
        failure: [],
      },
      ({ succeeded }) => {
        if (!succeeded) notSent();
      },
      // It may have arrived or not: its sender looks for itself after the timeout.
      () => undefined,
    );
  }

  replied({ id, place, outcome }: DelegationReply): void {
    const outstanding = this.#outstanding.get(id);
    if (outstanding === undefined || !(place in outstanding.outcomes)) return;
    if (outstanding.outcomes[place] !== undefined) return;
    outstanding.outcomes[place] = outcome as AnyOutcome;
    outstanding.missing -= 1;
    if (outstanding.missing === 0) this.#forget(id)?.done(outstanding.outcomes as AnyOutcome[]);
  }

  #forget(id: string): DelegationCallbacks | undefined {
    const outstanding = this.#outstanding.get(id);
    outstanding?.timer.cancel();
    this.#outstanding.delete(id);
    return outstanding?.calls;
  }
}

/**
 * An uncertain `settle` cannot be delegated: only a write of this process makes sure that the first one cannot land. Nor can one
 * that needs the whole queue: the keeper would serve the front that it knows.
 */
function isSureSettle(pending: Pick<PendingCommand, 'command' | 'uncertain' | 'seesAll'>): boolean {
  return isSettle(pending) && !pending.uncertain && !pending.seesAll;
}
