/**
 * Decides what a failed call means. What matters most is whether it may have been applied. It was certainly not applied
 * only if etcd refused it before handing it to the cluster, or while applying it, which then changes nothing.
 */
import { Failure, type FailureCode } from '../../failure.ts';
import {
  DATA_LOSS,
  INVALID_ARGUMENT,
  NOT_FOUND,
  PERMISSION_DENIED,
  UNAUTHENTICATED,
  UNIMPLEMENTED,
} from '../../grpc/status.ts';
import type { CallFailure } from '../../grpc/transport.ts';

export type Verdict =
  /** The server's answer is certain, and the same from every server. */
  | { readonly kind: 'refused'; readonly failure: Failure }
  /** We must log in again; nothing was applied. */
  | { readonly kind: 'unknown-user' }
  /** Nothing was applied; another server may do it. */
  | { readonly kind: 'elsewhere' }
  /** Nothing was applied; the same server may do it soon. */
  | { readonly kind: 'later' }
  /** It may have been applied, and a retry would not help: etcd's database is full, or its answer is too long. */
  | { readonly kind: 'full' | 'too-long' }
  /** It may have been applied. */
  | { readonly kind: 'unknown' };

const ELSEWHERE: Verdict = { kind: 'elsewhere' };
const LATER: Verdict = { kind: 'later' };
const UNKNOWN: Verdict = { kind: 'unknown' };
const UNKNOWN_USER: Verdict = { kind: 'unknown-user' };

/** Recognized by etcd's messages, which have not changed since 3.4. */
const TOLD: readonly (readonly [RegExp, FailureCode | Verdict])[] = [
  // Every call asks for a leader, so etcd says this before it handles the request.
  [/etcdserver: no leader/, ELSEWHERE],
  [/not supported for learner|not capable/, ELSEWHERE],
  [/too many requests/, LATER],
  // The last message means that users were enabled after we connected without one.
  [/invalid auth token|revision of auth store is old|user name is empty/, UNKNOWN_USER],
  // etcd also says this about a put that it applied although the quota was used up.
  [/database space exceeded/, { kind: 'full' }],
  // Said by our own side of the connection.
  [/the server began (?:a message|messages|a revision) of/, { kind: 'too-long' }],
  [/requested lease not found|key not found/, 'not-found'],
  [/has been compacted/, 'compacted'],
  [/permission denied|authentication failed|user name not found/, 'forbidden'],
  [/request is too large|larger than max|too large lease|future revision|duplicate key|too many operations/, 'invalid'],
  [/key is not provided/, 'invalid'],
  [/corrupt/, 'corrupt'],
];

const BY_STATUS: Readonly<Record<number, FailureCode>> = {
  [INVALID_ARGUMENT]: 'invalid',
  [NOT_FOUND]: 'not-found',
  [PERMISSION_DENIED]: 'forbidden',
  [UNIMPLEMENTED]: 'invalid',
  [DATA_LOSS]: 'corrupt',
  [UNAUTHENTICATED]: 'forbidden',
};

export function verdictOn(failure: CallFailure): Verdict {
  if (failure.neverSent) return ELSEWHERE;
  for (const [words, meaning] of TOLD) {
    if (!words.test(failure.message)) continue;
    return typeof meaning === 'string' ? refused(meaning, failure) : meaning;
  }
  const code = BY_STATUS[failure.status];
  return code === undefined ? UNKNOWN : refused(code, failure);
}

function refused(code: FailureCode, failure: CallFailure): Verdict {
  return { kind: 'refused', failure: new Failure(code, explained(failure), { cause: failure }) };
}

/** etcd's message, with advice where it gives none. */
function explained({ status, message }: CallFailure): string {
  if (status === UNIMPLEMENTED) return `signalbox needs etcd 3.4 or later, and this server is not: ${message}`;
  if (/permission denied/.test(message))
    return `${message}: the user's role must be able to read and write signalbox's keys, and those of tasks (see docs/etcd.md)`;
  return message;
}
