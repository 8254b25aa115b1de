/** What a writer needs of the process it works in. */
import type { Timer } from '../../clock.ts';
import type { Answer, Event, Loss, Moment } from '../../core/index.ts';
import type { Revision, Transaction, TransactionResult } from '../../store/index.ts';
import type { WriterIdentity } from './commit.ts';
import type { DelegationMail } from './delegation-mail.ts';

export interface WriterHost {
  readonly sender: WriterIdentity;
  /** The store lives in this process: a transaction costs no more than the call. */
  readonly answersAtOnce: boolean;
  /** The newest revision this process has seen. */
  readonly revision: Revision;
  moment(revision: Revision, most?: number): Moment;
  monotonic(): number;
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
  /** `keepsAlive`: the process must not end before that, for want of anything else to do. */
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
  /** A read at `revision` found this lease alive, or not there. */
  sawLease(lease: string, version: number | undefined, revision: Revision): void;
  knowsLease(lease: string): boolean;
  /** No transaction sent before can take effect any more, once this calls back. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  answer(resource: string, answer: Answer<unknown>): void;
  lose(loss: Loss): void;
  /** An answer got lost, and with it perhaps what it meant for others in this process: `holds` are all there are. */
  reconcile(resource: string, holds: ReadonlySet<string>): void;
  /** How commands reach the process that writes the record all the time. */
  readonly delegationMail: DelegationMail;
  /** Events that no write carries. */
  emit(resource: string, events: readonly Event[]): void;
}
