/**
 * Reads a letter. Another version of signalbox, or another program, may have written it: parts that make no sense are skipped,
 * and the rest counts. A report that makes sense and breaks a promise fails the requests that the letter answers.
 */
import { type Answer, nameProblem, requestProblem } from '../../core/index.ts';
import type { Failure } from '../../failure.ts';
import type { Revision } from '../../store/index.ts';
import {
  type DelegationRequest,
  type DelegationReply,
  lengthened,
  type LossNotice,
  recordFault,
  type Report,
  type ShortRequest,
} from '../layout.ts';
import { type Fields, isObject, recordProblem } from '../stored.ts';

/** Acts on the parts of a letter. */
export interface LetterRecipient {
  report(report: Report, revision: Revision): void;
  carryOut(delegated: DelegationRequest): void;
  replied(reply: DelegationReply): void;
  answer(resource: string, answer: Answer<unknown>): void;
  /** The answer to a request rests on a record that breaks a promise. */
  failed(id: string, failure: Failure): void;
  lost(notice: LossNotice): void;
}

export function readLetter(letter: unknown, revision: Revision, reader: LetterRecipient): void {
  // Reports come first: a request that the same letter grants can then be handed on without a read.
  const faults = new Map<string, Failure>();
  for (const report of listIn(letter, 'reports')) {
    if (!isReport(report)) continue;
    const fault = recordFault(report.resource, report.record, true);
    if (fault === undefined) reader.report(report, revision);
    else faults.set(report.resource, fault);
  }
  for (const delegated of listIn(letter, 'delegations')) if (isDelegationRequest(delegated)) reader.carryOut(delegated);
  for (const reply of listIn(letter, 'done')) if (isReply(reply)) reader.replied(reply);
  for (const answer of listIn(letter, 'answers')) {
    if (!isAnswer(answer)) continue;
    const fault = faults.get(answer.resource);
    if (fault === undefined) reader.answer(answer.resource, { id: answer.id, outcome: answer.outcome });
    else reader.failed(answer.id, fault);
  }
  for (const notice of listIn(letter, 'losses')) if (isLoss(notice)) reader.lost(notice);
}

function listIn(letter: unknown, field: string): readonly unknown[] {
  const list = isObject(letter) ? letter[field] : undefined;
  return Array.isArray(list) ? list : [];
}

/** Whether this names a lock or a semaphore, which have writers. */
export function isResource(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const kind = value.slice(0, value.indexOf('/'));
  return (kind === 'lock' || kind === 'semaphore') && nameProblem(value.slice(kind.length + 1)) === undefined;
}

function isReport(report: unknown): report is Report {
  if (!isObject(report) || !isResource(report['resource']) || !isObject(report['record'])) return false;
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
  return isObject(hold) && isOnLease(hold) && Number.isSafeInteger(hold['token']);
}

function isRequest(request: unknown): boolean {
  return isObject(request) && isOnLease(request) && Number.isSafeInteger(request['priority']);
}

function isShortRequest(request: unknown): boolean {
  return isObject(request) && typeof request['id'] === 'string' && isRequest(lengthened(request as ShortRequest));
}

function isOnLease({ id, holder, lease }: Fields): boolean {
  return typeof id === 'string' && typeof holder === 'string' && typeof lease === 'string';
}

function isDelegationRequest(delegated: unknown): delegated is DelegationRequest {
  if (!isObject(delegated) || !isResource(delegated['resource'])) return false;
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
  if (!isObject(command)) return false;
  if (command['kind'] === 'settle') return true;
  if (command['kind'] === 'release') return requestProblem(command, ['holder', 'id']) === undefined;
  if (command['kind'] !== 'acquire') return false;
  const required = ['id', 'holder', 'lease', 'priority', 'wait', isLock ? 'mode' : 'weight'] as const;
  return requestProblem(command, required) === undefined;
}

function isReply(reply: unknown): reply is DelegationReply {
  if (!isObject(reply) || typeof reply['id'] !== 'string') return false;
  return Number.isSafeInteger(reply['place']) && isOutcome(reply['outcome']);
}

function isAnswer(answer: unknown): answer is Answer<unknown> & { readonly resource: string } {
  if (!isObject(answer) || typeof answer['id'] !== 'string') return false;
  return isResource(answer['resource']) && isOutcome(answer['outcome']);
}

function isOutcome(outcome: unknown): boolean {
  if (!isObject(outcome) || typeof outcome['kind'] !== 'string') return false;
  return outcome['hold'] === undefined || isHold(outcome['hold']);
}

function isLoss(notice: unknown): notice is LossNotice {
  if (!isObject(notice) || typeof notice['id'] !== 'string') return false;
  return Number.isSafeInteger(notice['token']) && typeof notice['why'] === 'string';
}
