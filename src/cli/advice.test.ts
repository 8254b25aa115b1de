import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf } from '../client/problem.ts';
import { Failure } from '../failure.ts';
import { WITNESS_IS_OFF } from '../runtime/witness/log.ts';
import { advised } from './advice.ts';
import { WitnessOff } from './witness/with-witness.ts';

function commandOn(store: string): Command {
  return new Command('tail').option('--store <url>').parse(['--store', store], { from: 'user' });
}

function told(error: unknown, store = 'file:/srv/store'): string {
  return (advised(error, commandOn(store)) as Error).message;
}

describe('a witness that is off', () => {
  const before = process.env['SIGNALBOX_URL'];
  beforeEach(() => void delete process.env['SIGNALBOX_URL']);
  afterEach(() => {
    if (before !== undefined) process.env['SIGNALBOX_URL'] = before;
  });

  it('is known by its class, whatever the message says', () => {
    expect(told(new WitnessOff('other words'))).toContain('signalbox witness tail --no-follow --store');
    expect(told(new Failure('invalid', WITNESS_IS_OFF))).toBe(WITNESS_IS_OFF);
  });

  it('at a server is known by the code of the answer, and leads to how to start the server', () => {
    const refusal = errorOf({ status: 409, code: 'witness-off', detail: 'other words' });
    expect(told(refusal, 'http://127.0.0.1:7300').split('\n')).toEqual([
      'the witness of this store is off, so there is no record of its changes',
      '  to switch it on, on the machine of the server:',
      '  restart signalbox serve with ?witness=on at the end of the URL of its store',
    ]);
  });
});
