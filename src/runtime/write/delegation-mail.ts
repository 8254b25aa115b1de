/**
 * Delegation: what a process leaves to another one, because that one is writing the same record all the time.
 *
 * A semaphore has several holders, and each of them changes its record. Where many do so at once, all but one lose the
 * race, look again, and lose the next one. So whoever lost a race on what it had only just learnt does not race again
 * for a while: it puts its command into the mailbox of the one who won, the *keeper*. The keeper puts everything that
 * has come meanwhile into its next write, and the answers travel with that.
 *
 *     P  put m/K { delegated: release P.7 }            K  put r/… , m/P { done: released }, m/Q { answers: Q.3 acquired }
 *
 * Nothing rests on the keeper's being there. One that does not answer soon is treated like a store that did not: the
 * outcome is unknown, so P raises its epoch, looks, and does it itself. (What the keeper does for P compares P's epoch.)
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Transaction } from '../../store/index.ts';
import type { WriterIdentity } from './commit.ts';
import { encode, type DelegationRequest, type DelegationReply, type Letter, mailboxKey } from '../layout.ts';
import { type AnyCommand, type AnyOutcome, PendingCommand } from './pending-command.ts';

/** After this time the keeper is not waited for any more: it may be stopped, or be gone. */
export const DELEGATION_TIMEOUT_MS = 300;
/** A keeper that cannot carry it out lets it be; whoever sent it will look for itself. */
const MOST_ATTEMPTS = 3;

/** What another process asked this one to do. Nobody here waits for it. */
export class DelegatedCommand extends PendingCommand {
  readonly delegated: DelegationRequest;
  readonly place: number;

  constructor(delegated: DelegationRequest, place: number) {
    // Its sender may have lost patience and asked for it itself meanwhile: it must not stand in the queue twice.
    super({ ...(delegated.commands[place] as AnyCommand), again: true }, Number.POSITIVE_INFINITY);
    this.delegated = delegated;
    this.place = place;
  }

  /** What is in doubt may still land, and has to be settled, however long that takes. */
  override get isOver(): boolean {
    return this.attempts > MOST_ATTEMPTS && !this.uncertain;
  }

  /** A grant may have been made, and given back since: once more would be once too often. */
  override doubt(): void {
    if (this.command.kind === 'release') super.doubt();
    else this.attempts = Number.POSITIVE_INFINITY;
  }

  override settled(): void {}
  override failed(): void {}
}

/** Whether another process could do it as well as this one: nothing about it but its session is known here alone. */
export function canBeDelegated(pending: PendingCommand, sender: WriterIdentity): boolean {
  const { command, uncertain } = pending;
  if (uncertain || pending instanceof DelegatedCommand || sender.id === '') return false;
  const { lease, force, steal, elsewhere } = command as AnyCommand & Readonly<Record<string, unknown>>;
  if (command.kind === 'acquire') return command.wait === true && lease === sender.id && !force && !steal;
  return command.kind === 'release' && elsewhere !== true;
}

export interface DelegationCallbacks {
  done(outcomes: readonly AnyOutcome[]): void;
  /** There is no such process any more; nothing was sent. */
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

/** Those that this process has left to others. */
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
      this.#forget(id)?.failed(new Failure('outcome-unknown', `${keeper} was asked, and did not answer`));
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

  /** One that came here is better carried out by `keeper`, who will answer it itself. */
  passOn(keeper: string, delegated: DelegationRequest, notPassed: () => void): void {
    this.#send(keeper, { ...delegated, passedOn: true }, notPassed);
  }

  /** Somebody waits who could perhaps be served: the keeper is to look. No answer is expected. */
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
      // Whether it arrived or not: whoever sent it will look for itself.
      () => undefined,
    );
  }

  heard({ id, place, outcome }: DelegationReply): void {
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
