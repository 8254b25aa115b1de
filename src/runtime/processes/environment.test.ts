import { describe, expect, it } from 'vitest';
import { childEnvironment, outerHolds } from './environment.ts';

const URL = 'file:/x';
const run = { url: URL, holder: 'me', mark: 'm2', held: [], outer: {} };

describe('the environment of a command', () => {
  it('names each token and each slot in capitals, with underscores for all that variables cannot have', () => {
    const held = [
      { resource: 'lock/main-branch', holder: 'me', token: 7, hold: 'h7' },
      { resource: 'semaphore/api.keys/eu', holder: 'me', token: 9, hold: 'h9', slots: [3, 1] },
    ];
    expect(childEnvironment({ HOME: '/h' }, { ...run, held })).toEqual({
      HOME: '/h',
      SIGNALBOX_URL: URL,
      SIGNALBOX_HOLDER: 'me',
      SIGNALBOX_TOKEN: '7',
      SIGNALBOX_TOKEN_MAIN_BRANCH: '7',
      SIGNALBOX_TOKEN_API_KEYS_EU: '9',
      SIGNALBOX_SLOT_API_KEYS_EU: '1',
      SIGNALBOX_SLOTS_API_KEYS_EU: '3 1',
      SIGNALBOX_HOLDS:
        '{"lock/main-branch":{"holder":"me","token":7,"hold":"h7"},"semaphore/api.keys/eu":{"holder":"me","token":9,"hold":"h9"}}',
      SIGNALBOX_RUN: 'm2',
    });
  });

  it('gives a variable that two names come to to the first', () => {
    const held = [
      { resource: 'lock/a-b', holder: 'me', token: 1, hold: 'h1' },
      { resource: 'lock/a_b', holder: 'me', token: 2, hold: 'h2' },
    ];
    expect(childEnvironment({}, { ...run, held })['SIGNALBOX_TOKEN_A_B']).toBe('1');
  });

  it('keeps what is held further out, and the marks of the runs around', () => {
    const outer = { 'lock/x': { holder: 'outer', token: 1, hold: 'h1' } };
    const held = [{ resource: 'lock/y', holder: 'me', token: 2, hold: 'h2' }];
    const env = childEnvironment({ SIGNALBOX_RUN: 'm1', SIGNALBOX_TOKEN_X: '1' }, { ...run, outer, held });
    expect(env).toMatchObject({ SIGNALBOX_RUN: 'm1.m2', SIGNALBOX_TOKEN_X: '1', SIGNALBOX_TOKEN: '2' });
    expect(outerHolds(env, URL)).toEqual({ ...outer, 'lock/y': { holder: 'me', token: 2, hold: 'h2' } });
  });
});

describe('what is held further out', () => {
  it('is nothing without a run around, on another store, or where something else is told', () => {
    const holds = '{"lock/x":{"holder":"outer","token":1,"hold":"h1"}}';
    expect(outerHolds({}, URL)).toEqual({});
    expect(outerHolds({ SIGNALBOX_URL: 'file:/y', SIGNALBOX_HOLDS: holds }, URL)).toEqual({});
    for (const told of ['', 'no JSON', '[]', 'null', '3', '{"lock/x":7}', '{"lock/x":{"holder":"a","token":1}}']) {
      expect(outerHolds({ SIGNALBOX_URL: URL, SIGNALBOX_HOLDS: told }, URL)).toEqual({});
    }
  });
});
