import { describe, expect, it } from 'vitest';
import { freeLock, type Lock, type LockCommand, lockTransition } from './lock.ts';
import type { Moment } from './machine.ts';
import { LARGEST_RECORD_BYTES } from './record-size.ts';
import { newSemaphore, type Semaphore, type SemaphoreCommand, semaphoreTransition } from './semaphore.ts';

const gone = new Set<string>();
const at: Moment = { now: 1, revision: 1, gone: (lease) => gone.has(lease) };
const metadata = { text: 'x'.repeat(60 * 1024) };

const slot = (id: string, more: object = {}): SemaphoreCommand => ({
  ...{ kind: 'acquire', id, holder: id, lease: id, priority: 0, weight: 1, wait: true, metadata },
  ...more,
});
const read = (id: string, more: object = {}): LockCommand => ({
  ...{ kind: 'acquire', id, holder: id, lease: id, priority: 0, mode: 'shared', wait: true, metadata },
  ...more,
});

/** Eight holders of 60 KiB each. */
function crowded(capacity = 20): Semaphore {
  let semaphore = newSemaphore(capacity);
  for (let i = 0; i < 8; i++) semaphore = semaphoreTransition(semaphore, slot(`h${i}`), at).state;
  expect(semaphore.record.holds).toHaveLength(8);
  return semaphore;
}

describe('a record that would become too large to be written', () => {
  it('refuses the newcomer with the numbers, and changes nothing', () => {
    const semaphore = crowded();
    const step = semaphoreTransition(semaphore, slot('late'), at);
    expect(step.outcome).toMatchObject({ kind: 'too-large', most: LARGEST_RECORD_BYTES });
    expect((step.outcome as { bytes: number }).bytes).toBeGreaterThan(LARGEST_RECORD_BYTES);
    expect(step.state).toBe(semaphore);
    expect(step.events.map(({ type }) => type)).toEqual(['semaphore:denied']);
    expect(JSON.stringify(semaphore.record).length).toBeLessThan(LARGEST_RECORD_BYTES);
  });

  it('lets in small requests, and all requests again once there is room', () => {
    const semaphore = crowded();
    expect(semaphoreTransition(semaphore, slot('small', { metadata: { a: 1 } }), at).outcome.kind).toBe('acquired');
    const { state } = semaphoreTransition(semaphore, { kind: 'release', holder: 'h3' }, at);
    expect(semaphoreTransition(state, slot('late'), at).outcome.kind).toBe('acquired');
  });

  it('is refused to one that waited when its turn comes, and those behind it do not wait for it', () => {
    let semaphore = crowded(8);
    for (const id of ['big', 'bigger']) semaphore = semaphoreTransition(semaphore, slot(id), at).state;
    semaphore = semaphoreTransition(semaphore, slot('small', { metadata: 1 }), at).state;
    const step = semaphoreTransition(semaphore, { kind: 'resize', capacity: 9 }, at);
    expect(step.answers).toMatchObject([
      { id: 'big', outcome: { kind: 'too-large' } },
      { id: 'bigger', outcome: { kind: 'too-large' } },
      { id: 'small', outcome: { kind: 'acquired' } },
    ]);
    expect(step.state.waiting).toEqual([]);
  });

  it('can always be made smaller: by release, by reclaim and by force', () => {
    const semaphore = crowded();
    gone.add('h0');
    const reclaimed = semaphoreTransition(semaphore, { kind: 'maintain' }, at);
    gone.clear();
    expect(reclaimed.state.record.holds).toHaveLength(7);
    const full = crowded(8);
    const forced = semaphoreTransition(full, slot('chief', { force: true, reason: 'r'.repeat(50_000) }), at);
    expect(forced.outcome.kind).toBe('too-large');
    const smaller = semaphoreTransition(full, slot('chief', { force: true }), at);
    expect(smaller.outcome.kind).toBe('acquired');
    const reason = 'why '.repeat(16_000);
    const broken = semaphoreTransition(semaphore, { kind: 'break', holder: 'chief', reason }, at);
    expect(broken.state.record.holds).toEqual([]);
    // Told with each of them, so each tells its beginning.
    expect(JSON.stringify([broken.events, broken.losses.map(({ reason }) => reason)]).length).toBeLessThan(200_000);
  });

  it('takes a million slots in a row, and says at once that more can never be had', () => {
    const semaphore = newSemaphore(1_000_000_000);
    const light = { metadata: undefined };
    const step = semaphoreTransition(semaphore, slot('b', { ...light, weight: 900_000_000 }), at);
    expect(step.outcome).toMatchObject({
      kind: 'impossible',
      why: expect.stringMatching(/900000000 slots at once.*1000000/),
    });
    const held = semaphoreTransition(semaphore, slot('a', { ...light, weight: 1_000_000 }), at).state;
    const more = semaphoreTransition(held, slot('c', { ...light, weight: 1_000_000 }), at);
    expect(more.outcome).toMatchObject({ kind: 'acquired', hold: { slots: [[1_000_000, 1_999_999]] } });
  });

  it('has two thousand holders who say nothing of themselves', () => {
    let semaphore = newSemaphore(2000);
    for (let i = 0; i < 2000; i++) {
      semaphore = semaphoreTransition(semaphore, slot(`host-17.process-${i}`, { metadata: undefined }), at).state;
    }
    expect(semaphore.record.holds).toHaveLength(2000);
    expect(JSON.stringify(semaphore.record).length).toBeLessThan(LARGEST_RECORD_BYTES);
  });

  it('refuses a reader of a lock likewise, one that waited too, and never a writer', () => {
    let lock: Lock = freeLock;
    for (let i = 0; i < 8; i++) lock = lockTransition(lock, read(`h${i}`), at).state;
    expect(lockTransition(lock, read('late'), at)).toMatchObject({ state: lock, outcome: { kind: 'too-large' } });
    lock = lockTransition(freeLock, read('w', { mode: 'exclusive' }), at).state;
    for (let i = 0; i < 9; i++) lock = lockTransition(lock, read(`h${i}`), at).state;
    lock = lockTransition(lock, read('w2', { mode: 'exclusive' }), at).state;
    const step = lockTransition(lock, { kind: 'release', holder: 'w' }, at);
    expect(step.answers.map(({ outcome }) => outcome.kind)).toEqual([
      ...Array<string>(8).fill('acquired'),
      'too-large',
    ]);
    const rest = step.state.record.holds.reduce(
      (before, { holder }) => lockTransition(before, { kind: 'release', holder }, at).state,
      step.state,
    );
    expect(rest.record.holds).toMatchObject([{ holder: 'w2' }]);
  });
});
