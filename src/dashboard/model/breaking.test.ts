import { describe, expect, it } from 'vitest';
import { applied, refreshed } from './apply.ts';
import { brokenBy, hasChangedHands, ifItChanges, whyNotUndrained, willBreak } from './breaking.ts';
import { boardIn, resourceIn } from './read.ts';
import type { Resource } from './types.ts';

const NOW = 1_800_000_000_000;
const since = new Date(NOW - 60_000).toISOString();

const hold = (holder: string, token: number, more: object = {}): object => ({
  holder,
  token,
  acquiredAt: since,
  ...more,
});
const waiter = (holder: string, more: object = {}): object => ({ holder, since, ...more });

function lock(holds: readonly object[], waiting: readonly object[] = []): Resource {
  return resourceIn('lock', { name: 'main', token: 9, holds, waiting }, 1, NOW);
}

const told = (of: Resource, meant: number): string =>
  willBreak(of, meant, NOW)
    .map(({ text }) => text)
    .join('\n');

describe('the break of a lock', () => {
  it('says who loses it and who gets it', () => {
    const text = told(lock([hold('a', 9)], [waiter('b'), waiter('c')]), 9);
    expect(text).toContain('a loses the hold, token 9, which it has had for 1m 00s');
    expect(text).toContain('b gets it at once, with a token above 9. 1 stays in the queue.');
  });

  it('of several readers, says of each whether its lease has ended', () => {
    const of = lock([hold('a', 7, { mode: 'shared', isStale: true }), hold('b', 8, { mode: 'shared' })]);
    const [first, second] = willBreak(of, 8, NOW);
    expect(first?.text).toMatch(/^a loses its share.*Its lease has ended: if its command still runs, signalbox cannot/);
    expect(second?.text).toMatch(/^b loses its share.*its command is stopped/);
  });

  it('leaves a reader alone that came since, and says that a writer still waits for it', () => {
    const of = lock([hold('a', 7, { mode: 'shared' }), hold('b', 8, { mode: 'shared' })], [waiter('w')]);
    expect(hasChangedHands(of, 7)).toBeUndefined();
    const text = told(of, 7);
    expect(text).toContain('1 holder that got it since you opened this keeps it');
    expect(text).not.toContain('b loses');
    expect(text).toContain('Nobody gets it yet. 1 stays in the queue.');
    expect(ifItChanges(of)).toContain('What is granted later stays');
  });

  it('lets all readers in that stand at the head of the queue', () => {
    const shared = { mode: 'shared' };
    const of = lock([hold('a', 9)], [waiter('r1', shared), waiter('r2', shared), waiter('w')]);
    expect(brokenBy(of, 9).get.map(({ holder }) => holder)).toEqual(['r1', 'r2']);
    expect(told(of, 9)).toContain('So does 1 other behind it. 1 stays in the queue.');
  });

  it('is over when all that was meant is over', () => {
    expect(hasChangedHands(lock([hold('b', 10)]), 9)).toContain('token 10 is held now. Nothing was broken');
    expect(hasChangedHands(lock([]), 9)).toContain('it is free now');
  });
});

describe('the break of a semaphore', () => {
  it('lets in those that fit, in their order, and nobody while it is drained', () => {
    const json = {
      ...{ name: 'gpu', token: 9, capacity: 4, holds: [hold('a', 8, { weight: 3 }), hold('b', 9, { weight: 1 })] },
      waiting: [waiter('c', { weight: 2 }), waiter('d', { weight: 2 }), waiter('e', { weight: 1 })],
    };
    const of = resourceIn('semaphore', json, 1, NOW);
    expect(brokenBy(of, 9).get.map(({ holder }) => holder)).toEqual(['c', 'd']);
    // What b has stays.
    expect(brokenBy(of, 8).get.map(({ holder }) => holder)).toEqual(['c']);
    expect(told(of, 9)).toContain('a loses 3 slots');
    expect(told(resourceIn('semaphore', { ...json, isDrained: true }, 1, NOW), 9)).toContain('because it is drained');
  });
});

describe('undoing a drain', () => {
  it('waits until the page has read which drain it is: an event does not tell', () => {
    const at = new Date(NOW).toISOString();
    const event = { type: 'semaphore:drained', resource: 'semaphore/gpu', holder: 'ops', at: NOW, id: '11.0' };
    const state = applied(boardIn({ since: 10, revision: 10, at }), [{ ...event, reason: 'moves' }]);
    const told = state.resources.get('semaphore/gpu') as Resource;
    expect(whyNotUndrained(told)).toContain('yet to read');
    const drained = { by: 'ops', at, reason: 'moves', revision: 10 };
    const json = { name: 'gpu', capacity: 2, isDrained: true, drained, revision: 12 };
    const read = refreshed(state, [resourceIn('semaphore', json, 0, NOW)], NOW).resources.get('semaphore/gpu');
    expect(read?.drained?.revision).toBe(10);
    expect(whyNotUndrained(read as Resource)).toBeUndefined();
  });
});
