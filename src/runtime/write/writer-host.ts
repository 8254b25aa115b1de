/** The process as its writers use it. */
import type { Timer } from '../../clock.ts';
import type { Answer, Claim, Event, Hold, Loss, Moment } from '../../core/index.ts';
import type { Revision, Transaction, TransactionResult } from '../../store/index.ts';
import type { WriterIdentity } from './commit.ts';
import type { DelegationMail } from './delegation.ts';
import type { Witness } from './witness.ts';

export interface WriterHost {
  readonly sender: WriterIdentity;
  /** Enters every write. */
  readonly witness: Witness;
  /** The store is in this process: a transaction costs no more than a function call. */
  readonly answersAtOnce: boolean;
  /** The newest revision this process has seen. */
  readonly revision: Revision;
  moment(revision: Revision, most?: number): Moment;
  monotonic(): number;
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
  /** `keepsAlive`: keeps the process alive until then, even if it has nothing else to do. */
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
  /** A read at `revision` found this lease alive, or not there. */
  sawLease(lease: string, version: number | undefined, revision: Revision): void;
  knowsLease(lease: string): boolean;
  /** Once this calls back, no transaction that was sent before can take effect. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  /**
   * Whether a hold that is gone was released, and not taken away. `since`: what this process had seen when it released the hold,
   * and the record it released it from. `claim`: what it released. Throws if nobody can know, or if the store cannot be reached until `until`.
   */
  wasReleased(
    record: string,
    since: { readonly mod: Revision; readonly seen: Revision },
    hold: Hold,
    claim: Pick<Claim, 'token'>,
    until: number,
  ): Promise<boolean>;
  answer(resource: string, answer: Answer<unknown>): void;
  lose(loss: Loss): void;
  /** After a lost answer: checks the holds and waiters of this process against `holds`, all that the record has. */
  reconcile(resource: string, holds: ReadonlySet<string>): void;
  /** Sends commands to the keeper of a record. */
  readonly delegationMail: DelegationMail;
  /** Publishes events that no write carries, in this process. */
  emit(resource: string, events: readonly Event[]): void;
}
