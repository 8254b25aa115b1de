/**
 * Mailbox letters: a write puts one for each process that it concerns, with answers, replies, losses and reports. That process
 * follows its `Mailbox` and acts on each.
 */
import { type Answer, nameProblem, requestProblem, recordProblem, isRecord } from '../../core/index.ts';
import type { Failure } from '../../failure.ts';
import { follow } from '../../store/follow.ts';
import { type KeyValue, readRange, type Revision } from '../../store/index.ts';
import type { Draft } from './commit.ts';
import { mailed } from './decision.ts';
import {
  type DelegationReply,
  type DelegationRequest,
  type Head,
  type Letter,
  type LossNotice,
  mailboxKey,
  processOf,
  recordFault,
  type Report,
  shortened,
  type ShortRequest,
  ticketClass,
  type Fields,
} from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import type { AnyOutcome, Ticket } from './pending-command.ts';
import { marksAfter } from './snapshot.ts';

/** Tickets in a report: enough for as many handoffs without a read of the queue. */
const REPORTED = 32;
/** Longer reports are left out: every letter of the write has the report, and stores limit the size of a transaction. */
const LONGEST_REPORT = 8 * 1024;

/** `arriving` and `head`: the requests that join the queue by the write, and its entry in the witness. */
export function lettersOf(
  draft: Draft,
  arriving: readonly Ticket[],
  head: Head | undefined,
): ReadonlyMap<string, Letter> {
  const { decision, sender } = draft;
  const { resource } = draft.keys;
  const letters = new Map<string, Letter>();
  let reports: Pick<Letter, 'reports'> | undefined;
  const reported = (): Pick<Letter, 'reports'> => {
    if (reports === undefined) {
      const report = reportOf(draft, arriving, head);
      reports = report === undefined ? {} : { reports: [report] };
    }
    return reports;
  };
  const letterTo = (process: string): Letter => letters.get(process) ?? { answers: [], losses: [] };
  // This process gets its own answers and losses directly.
  const isOther = (process: string): boolean => process !== sender.id;
  for (const answer of decision.answers) {
    const process = processOf(answer.id);
    if (!isOther(process)) continue;
    const letter = letterTo(process);
    const answered = { resource, id: answer.id, outcome: mailed(answer.outcome as AnyOutcome) };
    letters.set(process, { ...letter, answers: [...letter.answers, answered], ...reported() });
  }
  for (const { process, ...reply } of decision.replies) {
    const letter = letterTo(process);
    letters.set(process, { ...letter, done: [...(letter.done ?? []), reply], ...reported() });
  }
  for (const { hold, why, by, reason } of decision.losses) {
    // By its lease, not its id: a process may hold what another one asked for.
    const process = processOf(hold.lease);
    if (!isOther(process)) continue;
    const loss = {
      id: hold.id,
      token: hold.token,
      why,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    };
    const letter = letterTo(process);
    letters.set(process, { ...letter, losses: [...letter.losses, loss] });
  }
  return letters;
}

/** Reports the state that the write makes, without `arriving`: tickets of other processes may have arrived before them. */
function reportOf(
  { keys: { resource }, snapshot, decision, sender }: Draft,
  arriving: readonly Ticket[],
  head: Head | undefined,
): Report | undefined {
  const { record, waiting } = decision.state;
  const known = waiting.length - arriving.length;
  const front: [ShortRequest, number][] = [];
  // A ticket of a higher priority may be behind the front, so a part of such a queue would be misleading.
  if (known <= REPORTED || isOfOneClass(waiting)) {
    for (let place = 0; place < known && place < REPORTED; place++) {
      const request = waiting[place] as Ticket;
      front.push([shortened(request), snapshot.arrivals?.get(request.id) ?? 0]);
    }
  }
  const more = front.length < known || snapshot.othersWait;
  const { queueRevision } = snapshot;
  const marks = marksAfter(snapshot.marks, decision.marks);
  const optional = { ...(more && { more }), ...(marks.length > 0 && { marks }), ...(head && { head }) };
  const report: Report = { resource, record, by: sender.id, waiting: front, ...optional, queueRevision };
  return JSON.stringify(report).length > LONGEST_REPORT ? undefined : report;
}

function isOfOneClass(waiting: readonly Ticket[]): boolean {
  const first = waiting[0] as Ticket;
  return waiting.every((request) => ticketClass(request) === ticketClass(first));
}

/**
 * Another version of signalbox, or another program, may have written the letter: parts that make no sense are skipped, and the
 * rest counts. A report that makes sense and breaks a promise fails the requests that the letter answers.
 */
function readLetter(pair: KeyValue, runtime: Runtime): void {
  const letter = jsonIn(pair);
  // Reports come first: a request that the same letter grants can then be handed on without a read.
  const faults = new Map<string, Failure>();
  for (const report of listIn(letter, 'reports')) {
    if (!isReport(report)) continue;
    const fault = recordFault(report.resource, report.record, true);
    if (fault === undefined) runtime.writerFor(report.resource).report(report, pair.modRevision);
    else faults.set(report.resource, fault);
  }
  for (const delegated of listIn(letter, 'delegations')) {
    if (isDelegationRequest(delegated)) runtime.writerFor(delegated.resource).carryOut(delegated);
  }
  for (const reply of listIn(letter, 'done')) if (isReply(reply)) runtime.delegationMail.replied(reply);
  for (const answer of listIn(letter, 'answers')) {
    if (!isAnswer(answer)) continue;
    const fault = faults.get(answer.resource);
    if (fault === undefined) runtime.answer(answer.resource, { id: answer.id, outcome: answer.outcome });
    else runtime.waiters.get(answer.id)?.inconsistent(fault);
  }
  for (const notice of listIn(letter, 'losses')) if (isLoss(notice)) runtime.lost(notice);
}

function jsonIn({ value }: KeyValue): unknown {
  try {
    return value.json;
  } catch {
    return undefined;
  }
}

function listIn(letter: unknown, field: string): readonly unknown[] {
  const list = isRecord(letter) ? letter[field] : undefined;
  return Array.isArray(list) ? list : [];
}

/** Whether this names a lock or a semaphore, which have writers. */
export function isResource(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const kind = value.slice(0, value.indexOf('/'));
  return (kind === 'lock' || kind === 'semaphore') && nameProblem(value.slice(kind.length + 1)) === undefined;
}

function isReport(report: unknown): report is Report {
  if (!isRecord(report) || !isResource(report['resource']) || !isRecord(report['record'])) return false;
  const { by, record, waiting, queueRevision, marks } = report;
  if (marks !== undefined && !(Array.isArray(marks) && marks.every((mark) => typeof mark === 'string'))) return false;
  return (
    typeof by === 'string' &&
    Number.isSafeInteger(queueRevision) &&
    recordProblem(record, report['resource'].startsWith('lock/') ? 'lock' : 'semaphore') === undefined &&
    Array.isArray(waiting) &&
    waiting.every((known) => Array.isArray(known) && isShortRequest(known[0]) && Number.isSafeInteger(known[1]))
  );
}

function isHold(hold: unknown): boolean {
  return isRecord(hold) && isOnLease(hold) && Number.isSafeInteger(hold['token']);
}

/** Checks the fields as they are: a report may have dozens of requests, and is read on the way of a handoff. */
function isShortRequest(request: unknown): boolean {
  if (!isRecord(request)) return false;
  const { id, holder, lease, priority } = request;
  return (
    typeof id === 'string' &&
    (holder === undefined || typeof holder === 'string') &&
    (lease === undefined || typeof lease === 'string') &&
    (priority === undefined || Number.isSafeInteger(priority))
  );
}

function isOnLease({ id, holder, lease }: Fields): boolean {
  return typeof id === 'string' && typeof holder === 'string' && typeof lease === 'string';
}

function isDelegationRequest(delegated: unknown): delegated is DelegationRequest {
  if (!isRecord(delegated) || !isResource(delegated['resource'])) return false;
  const { id, resource, from, epoch, leaseId, commands } = delegated;
  const isLock = resource.startsWith('lock/');
  return (
    typeof id === 'string' &&
    typeof from === 'string' &&
    typeof leaseId === 'string' &&
    Number.isSafeInteger(epoch) &&
    Array.isArray(commands) &&
    commands.every((command) => isDelegatedCommand(command, isLock))
  );
}

/** Only these commands are ever delegated. */
function isDelegatedCommand(command: unknown, isLock: boolean): boolean {
  if (!isRecord(command)) return false;
  if (command['kind'] === 'settle') return true;
  if (command['kind'] === 'release') return requestProblem(command, ['holder', 'id']) === undefined;
  if (command['kind'] !== 'acquire') return false;
  const required = ['id', 'holder', 'lease', 'priority', 'wait', isLock ? 'mode' : 'weight'] as const;
  return requestProblem(command, required) === undefined;
}

function isReply(reply: unknown): reply is DelegationReply {
  if (!isRecord(reply) || typeof reply['id'] !== 'string') return false;
  return Number.isSafeInteger(reply['place']) && isOutcome(reply['outcome']);
}

function isAnswer(answer: unknown): answer is Answer<unknown> & { readonly resource: string } {
  if (!isRecord(answer) || typeof answer['id'] !== 'string') return false;
  return isResource(answer['resource']) && isOutcome(answer['outcome']);
}

function isOutcome(outcome: unknown): boolean {
  if (!isRecord(outcome) || typeof outcome['kind'] !== 'string') return false;
  return outcome['hold'] === undefined || isHold(outcome['hold']);
}

function isLoss(notice: unknown): notice is LossNotice {
  if (!isRecord(notice) || typeof notice['id'] !== 'string') return false;
  return Number.isSafeInteger(notice['token']) && typeof notice['why'] === 'string';
}

/** The key into which other processes write letters to a session. Reads every letter once, in order. */
export class Mailbox {
  readonly #host: Runtime;
  readonly #key: string;
  readonly #over: AbortSignal;
  #readUpTo: Revision = 0;
  /** The history was compacted before all letters up to here were read. */
  #missedUpTo: Revision = 0;
  readonly #awaited: (() => void)[] = [];

  /** `over`: the session has ended. */
  constructor(host: Runtime, session: string, over: AbortSignal) {
    this.#host = host;
    this.#key = mailboxKey(session);
    this.#over = over;
    over.addEventListener('abort', () => this.#progress(), { once: true });
  }

  async follow(): Promise<void> {
    const host = this.#host;
    await follow(
      host.store,
      host.clock,
      { key: this.#key },
      {
        changes: ({ changes, revision }) => {
          for (const change of changes) {
            if (change.kind === 'delete') continue;
            host.saw(change.pair.modRevision);
            readLetter(change.pair, host);
          }
          this.#readUpTo = revision;
          this.#progress();
        },
        resync: async () => {
          this.#readUpTo = this.#missedUpTo = await host.lookout.lettersMissed();
          this.#progress();
          return this.#readUpTo;
        },
      },
      this.#over,
    );
  }

  /**
   * Waits until this process has read every letter that was sent to it until now. False if some of those that were sent after
   * `since` cannot be read any more, or if the session ends first.
   */
  async hasReadAllSince(since: Revision): Promise<boolean> {
    const { store, stopped } = this.#host;
    const { pairs } = await readRange(store, { key: this.#key }, stopped);
    const last = pairs[0]?.modRevision;
    const alive = this.#host.clock.keepAlive?.();
    while (last !== undefined && this.#readUpTo < last && !this.#over.aborted) {
      await new Promise<void>((resolve) => this.#awaited.push(resolve));
    }
    alive?.cancel();
    return last !== undefined && this.#missedUpTo <= since && this.#readUpTo >= last;
  }

  #progress(): void {
    for (const resolve of this.#awaited.splice(0)) resolve();
  }
}
