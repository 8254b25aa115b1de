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
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Transaction } from '../../store/index.ts';
import type { WriterIdentity } from './commit.ts';
import { encode, type DelegationRequest, type DelegationReply, type Letter, mailboxKey } from '../layout.ts';
import { type AnyCommand, type AnyOutcome, PendingCommand } from './pending-command.ts';

/** How long to wait for the keeper's answer: it may be stopped, or dead. */
export const DELEGATION_TIMEOUT_MS = 300;
/** After this many attempts the keeper drops a delegated command: its sender looks for itself. */
const MOST_ATTEMPTS = 3;

/** A command that another process delegated to this one. Nobody in this process waits for it. */
export class DelegatedCommand extends PendingCommand {
  readonly delegated: DelegationRequest;
  readonly place: number;

  constructor(delegated: DelegationRequest, place: number) {
    // Its sender may have stopped waiting and submitted it itself meanwhile: it must not be in the queue twice.
    super({ ...(delegated.commands[place] as AnyCommand), again: true }, Number.POSITIVE_INFINITY);
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

  override settled(): void {}
  override failed(): void {}
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

interface MailHost {
  readonly sender: WriterIdentity;
  commit(
    transaction: Transaction,
    done: (result: { succeeded: boolean }) => void,
    failed: (error: unknown) => void,
  ): void;
  later(delayMs: number, call: () => void): Timer;
}

interface Outstanding {
  readonly outcomes: (AnyOutcome | undefined)[];
  missing: number;
  readonly calls: DelegationCallbacks;
  readonly timer: Timer;
}

/** Sends delegated commands, and keeps track of the ones without a reply. */
export class DelegationMail {
  readonly #host: MailHost;
  readonly #outstanding = new Map<string, Outstanding>();
  #serial = 0;

  constructor(host: MailHost) {
    this.#host = host;
  }

  delegateTo(keeper: string, resource: string, commands: readonly AnyCommand[], calls: DelegationCallbacks): void {
    const { id: from, epoch, anchor, leaseId } = this.#host.sender;
    this.#serial += 1;
    const id = `${from}!${this.#serial}`;
    const delegated: DelegationRequest = { id, resource, from, epoch, leaseId: leaseId(from), commands };
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
