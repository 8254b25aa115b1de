import { describe, expect, it } from 'vitest';
import { errorOf } from '../client/problem.ts';
import { Failure } from '../failure.ts';
import { HoldLost, NotAcquired } from '../runtime/refusal.ts';
import { CliExit, errorCodeOf, exitCodeOf } from './exit-code.ts';
import { refusal } from './github/arguments.ts';

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

function refusedByServer(status: number, code: string): Failure {
  return errorOf({ status, code, detail: '' });
}

describe('the exit code', () => {
  it.each([
    ['a store that cannot be reached', new Failure('unavailable', ''), 69],
    ['a store that refuses this user', new Failure('forbidden', ''), 77],
    ['a directory that this user may not read', new Failure('forbidden', '', { cause: systemError('EACCES') }), 77],
    ['a file in place of a directory', new Failure('forbidden', '', { cause: systemError('ENOTDIR') }), 69],
    [
      'a certificate that is not trusted',
      new Failure('forbidden', '', { cause: new Error('etcd', { cause: systemError('CERT_HAS_EXPIRED') }) }),
      69,
    ],
    ['a token that the server does not know', refusedByServer(401, 'unauthenticated'), 77],
    ['a token that GitHub refuses', refusal('', { kind: 'unauthorised', message: '' }), 77],
    ['a token that is not allowed to do this', refusedByServer(403, 'wrong-role'), 77],
    ['an outcome that nobody knows', new Failure('outcome-unknown', ''), 69],
    ['a store that is not what was written', new Failure('corrupt', ''), 65],
    ['a call that makes no sense', new Failure('invalid', ''), 64],
    ['a lock that is busy', new NotAcquired('lock/a', { kind: 'busy', holders: [] }), 75],
    ['a wait that was too long', new NotAcquired('lock/a', { kind: 'timed-out', holders: [], waitedMs: 5 }), 75],
    ['a deadlock', new NotAcquired('lock/a', { kind: 'deadlock', cycle: [] }), 75],
    ['more slots than there are', new NotAcquired('semaphore/a', { kind: 'impossible', why: '', capacity: 1 }), 64],
    ['another capacity', new NotAcquired('semaphore/a', { kind: 'capacity-mismatch', capacity: 1, asked: 2 }), 64],
    ['a hold that was lost', new HoldLost('lock/a', { why: 'expired' }), 76],
    ['what a command says itself', new CliExit(77, ''), 77],
    ['a bug', new TypeError('oh'), 70],
  ])('of %s', (_, error, exitCode) => {
    expect(exitCodeOf(error)).toBe(exitCode);
  });

  it('comes with one word for programs', () => {
    expect(errorCodeOf(new Failure('unavailable', ''))).toBe('unavailable');
    expect(errorCodeOf(new CliExit(77, ''))).toBe('not-owner');
    expect(errorCodeOf(new TypeError('oh'))).toBe('internal');
  });
});
