import { describe, expect, it } from 'vitest';
import { type KeyValue, Value } from '../store/index.ts';
import { checked, ticketIn } from './layout.ts';

function pairOf(key: string, value: Value): KeyValue {
  return { key, value, createRevision: 2, modRevision: 2, version: 1, lease: null };
}

describe('a value that has passed a check', () => {
  it('is not looked at again by the same check', () => {
    const pair = pairOf('q/lock/a/100/p.1', Value.json({}));
    let looks = 0;
    const count = (): undefined => void (looks += 1);
    checked(pair, count);
    checked(pair, count);
    expect(looks).toBe(1);
  });

  it('is looked at by another check', () => {
    const request = { id: 'p.1', holder: 'p.1', lease: 'p', priority: 0, mode: 'exclusive' };
    const value = Value.json({ request, at: 0 });
    expect(ticketIn(pairOf('q/lock/a/100/p.1', value)).request).toBe(request);
    expect(() => ticketIn(pairOf('q/semaphore/a/100/p.1', value))).toThrow(/weight/);
  });

  it('is looked at again as long as something is wrong with it', () => {
    const pair = pairOf('q/lock/a/100/p.1', Value.json({}));
    expect(() => ticketIn(pair)).toThrow(/its request is/);
    expect(() => ticketIn(pair)).toThrow(/its request is/);
  });
});
