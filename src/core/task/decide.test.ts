import { describe, expect, it } from 'vitest';
import { BACKOFF_OWNER, isOrphaned, statusOf, type Task, type TaskStatus, unpublished } from './task.ts';
import {
  type ClaimRequest,
  claimUntouched,
  decideClaim,
  decideEnd,
  decideForget,
  decideRepair,
  decideRequeue,
  type TaskWrite,
} from './decide.ts';
import { termsOf } from './terms.ts';

const REQUEST: ClaimRequest = { id: 'p.1', holder: 'worker:1', at: 100, capabilities: ['gpu'] };
const nothing = (): undefined => undefined;

function published(data: unknown = {}, more: Partial<Task> = {}): Task {
  const { terms, problem } = termsOf(data);
  return {
    ...unpublished('a'),
    data: { json: data as never, terms, problem, published: 5, mod: 5 },
    ...more,
  };
}

/** As the store has it after the write, which was its revision 10. */
function after(task: Task, { owner, status, bookkeeping }: TaskWrite, revision = 10): Task {
  const before = task.owner ?? { holder: REQUEST.holder, token: revision, mod: revision, lease: 'l' };
  const owners = {
    claim: { holder: REQUEST.holder, token: revision, mod: revision, lease: 'l' },
    delete: undefined,
    'keep-unleased': { ...before, mod: revision, lease: null },
    'back-off': { ...before, holder: BACKOFF_OWNER, mod: revision, lease: 'pause' },
  };
  return {
    ...task,
    owner: owners[owner],
    status: { word: status, mod: revision },
    bookkeeping: { entry: bookkeeping, mod: revision },
  };
}

function claimed(data?: unknown): Task {
  const task = published(data);
  return after(task, decideClaim(task, REQUEST, nothing) as TaskWrite);
}

const owned = (holder: string, lease: string | null = 'l'): NonNullable<Task['owner']> => ({
  holder,
  token: 7,
  mod: 7,
  lease,
});

describe('what a task is', () => {
  it.each<[string, Partial<Task>, TaskStatus]>([
    ['nothing said', {}, 'pending'],
    ['an owner', { owner: owned('x') }, 'running'],
    ['an owner, and pending said', { owner: owned('x'), status: { word: 'pending', mod: 6 } }, 'running'],
    ['an empty owner', { owner: owned('') }, 'pending'],
    ['running, but no owner', { status: { word: 'running', mod: 6 } }, 'pending'],
    ['complete, with its owner', { owner: owned('x', null), status: { word: 'complete', mod: 6 } }, 'complete'],
    ['failed, whose owner is gone', { status: { word: 'failed', mod: 6 } }, 'failed'],
    ['a word that nobody knows', { status: { word: 'on hold', mod: 6 } }, 'pending'],
  ])('with %s', (_, keys, status) => {
    expect(statusOf(published({}, keys))).toBe(status);
  });
});

describe('a claim', () => {
  it('of a task that nobody has writes who has it and how often it was tried', () => {
    expect(decideClaim(published(), REQUEST, nothing)).toEqual({
      kind: 'write',
      owner: 'claim',
      status: 'running',
      bookkeeping: {
        attempts: 1,
        claim: { id: 'p.1', holder: 'worker:1', at: 100 },
        events: [{ type: 'task:claimed', at: 100, holder: 'worker:1', attempts: 1 }],
      },
    });
    expect(claimUntouched(REQUEST)).toEqual(decideClaim(published(), REQUEST, nothing));
  });

  it.each<[string, Task, object]>([
    ['that is not there', unpublished('a'), { kind: 'missing' }],
    [
      'that somebody has',
      published({}, { owner: owned('x') }),
      { kind: 'taken', owner: 'x', token: 7, isLeased: true },
    ],
    [
      'that somebody has on no lease',
      published({}, { owner: owned('x', null) }),
      { kind: 'taken', owner: 'x', token: 7, isLeased: false },
    ],
    [
      'that is done',
      published({}, { owner: owned('x', null), status: { word: 'complete', mod: 6 } }),
      { kind: 'finished', status: 'complete' },
    ],
    ['that asks for more', published({ capabilities: ['gpu', 'rust'] }), { kind: 'unfit', lacking: ['rust'] }],
    [
      'that nobody can read',
      published({ priority: 'x' }),
      {
        kind: 'blocked',
        by: [{ why: 'unreadable', problem: 'priority is "x"; expected a whole number from -100 to 100' }],
      },
    ],
  ])('of one %s is refused', (_, task, refusal) => {
    expect(decideClaim(task, REQUEST, nothing)).toEqual(refusal);
  });

  it('waits for everything that it depends on, and says for what', () => {
    const statuses: Record<string, TaskStatus> = { done: 'complete', bad: 'failed', busy: 'running' };
    const task = published({ dependsOn: ['done', 'bad', 'busy', 'none', 'busy'] });
    expect(decideClaim(task, REQUEST, (id) => statuses[id])).toEqual({
      kind: 'blocked',
      by: [
        { why: 'failed', task: 'bad' },
        { why: 'unfinished', task: 'busy' },
        { why: 'missing', task: 'none' },
      ],
    });
    expect(decideClaim(task, REQUEST, () => 'complete').kind).toBe('write');
  });

  it('of a task whose owner died tells that it was pending again, too', () => {
    const orphan = { ...claimed(), owner: undefined };
    expect(isOrphaned(orphan)).toBe(true);
    const write = decideClaim(orphan, { ...REQUEST, id: 'q.1', holder: 'next' }, nothing) as TaskWrite;
    expect(write.bookkeeping).toMatchObject({
      attempts: 2,
      events: [
        { type: 'task:requeued', holder: 'worker:1', attempts: 1 },
        { type: 'task:claimed', holder: 'next', attempts: 2 },
      ],
    });
  });
});

describe('the end of a claim', () => {
  const at = { request: 'r', now: 200 };

  it.each([
    [{ token: 10 }, true],
    [{ holder: 'worker:1' }, true],
    [{ holder: 'worker:1', token: 10 }, true],
    [{ token: 9 }, false],
    [{ holder: 'worker:2' }, false],
    [{ holder: 'worker:1', token: 9 }, false],
  ])('is for who names it right: %j', (claim, isOwner) => {
    expect(decideEnd(claimed(), claim, { how: 'complete' }, at).kind).toBe(isOwner ? 'write' : 'not-owner');
  });

  it('is refused for a task that is done, pending or not there', () => {
    const done = after(claimed(), decideEnd(claimed(), { token: 10 }, { how: 'complete' }, at) as TaskWrite, 11);
    expect(decideEnd(done, { token: 10 }, { how: 'release' }, at)).toEqual({
      kind: 'not-owner',
      owner: 'worker:1',
      status: 'complete',
    });
    expect(decideEnd(published(), { holder: 'worker:1' }, { how: 'release' }, at).kind).toBe('not-owner');
    expect(decideEnd(unpublished('a'), { holder: 'worker:1' }, { how: 'release' }, at).kind).toBe('not-owner');
  });

  it('by completing keeps the owner on no lease, and the result', () => {
    expect(decideEnd(claimed(), { token: 10 }, { how: 'complete', result: [1] }, at)).toMatchObject({
      owner: 'keep-unleased',
      status: 'complete',
      bookkeeping: { attempts: 1, result: [1], ended: { token: 10, request: 'r', how: 'completed' }, endedAt: 200 },
    });
  });

  it('by releasing leaves it as if it had not been tried', () => {
    const { bookkeeping, ...write } = decideEnd(claimed(), { token: 10 }, { how: 'release' }, at) as TaskWrite;
    expect(write).toEqual({ kind: 'write', owner: 'delete', status: 'pending' });
    expect(bookkeeping.attempts).toBe(0);
    expect(bookkeeping.claim).toBeUndefined();
  });

  it('by failing lets it be tried again until the limit', () => {
    let task = published({ retries: 1 });
    const kinds = [];
    for (let attempt = 1; attempt <= 2; attempt++) {
      task = after(task, decideClaim(task, REQUEST, nothing) as TaskWrite, 10 * attempt);
      const write = decideEnd(task, {}, { how: 'fail', reason: 'x', retry: true }, at) as TaskWrite;
      kinds.push([write.owner, write.status, write.bookkeeping.attempts, write.bookkeeping.events[0]?.type]);
      task = after(task, write, 10 * attempt + 1);
    }
    expect(kinds).toEqual([
      ['delete', 'pending', 1, 'task:requeued'],
      ['keep-unleased', 'failed', 2, 'task:failed'],
    ]);
    const once = decideEnd(claimed({ retries: 9 }), {}, { how: 'fail', reason: 'x', retry: false }, at) as TaskWrite;
    expect(once.status).toBe('failed');
  });
});

describe('the pause before a retry', () => {
  const at = { request: 'r', now: 200 };
  const failing = (task: Task): TaskWrite =>
    decideEnd(task, {}, { how: 'fail', reason: 'x', retry: true }, at) as TaskWrite;

  it('doubles with each failure, up to a day, and shows as what blocks the task', () => {
    let task = published({ retries: 30, backoffMs: 5_000 });
    const pauses = [];
    for (let failure = 1; failure <= 20; failure++) {
      task = after(task, decideClaim({ ...task, owner: undefined }, REQUEST, nothing) as TaskWrite, 10 * failure);
      const write = failing(task);
      pauses.push(write.backoffMs);
      task = after(task, write, 10 * failure + 1);
    }
    expect(pauses.slice(0, 4)).toEqual([5_000, 10_000, 20_000, 40_000]);
    expect(pauses.at(-1)).toBe(86_400_000);
    expect(statusOf(task)).toBe('pending');
    expect(decideClaim(task, REQUEST, nothing)).toEqual({
      kind: 'blocked',
      by: [{ why: 'backoff', until: 200 + 86_400_000 }],
    });
    expect(decideEnd(task, { holder: BACKOFF_OWNER }, { how: 'complete' }, at).kind).toBe('not-owner');
  });

  it('counts failures alone: a worker that died in between uses up no retry', () => {
    let task = published({ retries: 1 });
    task = after(task, decideClaim(task, REQUEST, nothing) as TaskWrite);
    const next = { ...REQUEST, id: 'q.1' };
    task = after(task, decideClaim({ ...task, owner: undefined }, next, nothing) as TaskWrite, 20);
    expect(failing(task)).toMatchObject({ status: 'pending', bookkeeping: { attempts: 2, failures: 1, losses: 1 } });
  });
});

describe('a task that loses its workers', () => {
  const lost = (losses: number, data: unknown = {}): Task => {
    let task = published(data);
    for (let loss = 1; loss <= losses; loss++) {
      const request = { ...REQUEST, id: `p.${loss}`, holder: `worker:${loss}` };
      task = { ...after(task, decideClaim(task, request, nothing) as TaskWrite, 10 * loss), owner: undefined };
    }
    return task;
  };

  it('is failed with the third one, by a repair or by the next claim, and says why', () => {
    const failed = {
      owner: 'keep-unleased',
      status: 'failed',
      bookkeeping: {
        losses: 3,
        reason: '3 workers died or lost the claim while working on it, the last one worker:3',
        events: [{ type: 'task:failed', holder: 'worker:3' }],
      },
    };
    expect(decideRepair(lost(3), 300)).toMatchObject(failed);
    const claim = decideClaim(lost(3), { ...REQUEST, id: 'next' }, nothing);
    expect(claim).toMatchObject({ kind: 'lost-too-often', write: failed });
    expect(decideRepair(lost(2), 300)?.status).toBe('pending');
  });

  it('may be given more of them, or fewer', () => {
    expect(decideRepair(lost(3, { lossLimit: 4 }), 300)?.status).toBe('pending');
    expect(decideRepair(lost(1, { lossLimit: 1 }), 300)).toMatchObject({
      status: 'failed',
      bookkeeping: { reason: 'its worker died or lost the claim while working on it, the last one worker:1' },
    });
  });

  it('counts no loss where the same request claims again what it had lost before it knew', () => {
    const task = { ...claimed(), owner: undefined };
    expect((decideClaim(task, REQUEST, nothing) as TaskWrite).bookkeeping).toMatchObject({ attempts: 1 });
    expect((decideClaim(task, REQUEST, nothing) as TaskWrite).bookkeeping.losses).toBeUndefined();
  });
});

describe('a task that no worker has', () => {
  const who = { by: 'admin', request: 'q', now: 400 };
  const ended = (how: 'complete' | 'fail'): Task => {
    const ending = how === 'fail' ? { how, reason: 'x', retry: true } : { how };
    return after(claimed(), decideEnd(claimed(), {}, ending, { request: 'r', now: 200 }) as TaskWrite, 11);
  };

  it('is retried if it has failed, with all its retries, and requeued if it is complete', () => {
    const retried = decideRequeue(ended('fail'), 'failed', who);
    expect(retried).toMatchObject({ owner: 'delete', status: 'pending', bookkeeping: { attempts: 1, requeue: 'q' } });
    expect(Object.keys((retried as TaskWrite).bookkeeping)).not.toContain('failures');
    expect(decideRequeue(ended('complete'), 'failed', who)).toEqual({ kind: 'unchanged', status: 'complete' });
    expect(decideRequeue(ended('complete'), 'any', who)).toMatchObject({ kind: 'write', status: 'pending' });
    expect(decideRequeue(claimed(), 'any', who)).toEqual({ kind: 'running', owner: 'worker:1' });
    expect(decideRequeue(published(), 'any', who)).toEqual({ kind: 'unchanged', status: 'pending' });
    expect(decideRequeue(unpublished('a'), 'any', who)).toEqual({ kind: 'missing' });
  });

  it('stays as it is if it was claimed again since the attempt that was meant', () => {
    expect(decideRequeue(ended('fail'), 'failed', { ...who, attempts: 1 })).toMatchObject({ kind: 'write' });
    expect(decideRequeue(ended('fail'), 'failed', { ...who, attempts: 0 })).toEqual({
      ...{ kind: 'unchanged', status: 'failed' },
    });
    expect(decideRequeue(ended('complete'), 'any', { ...who, attempts: 2 })).toMatchObject({ kind: 'unchanged' });
  });

  it('is forgotten, whether it is finished or not', () => {
    expect([published(), ended('fail'), ended('complete')].map((task) => decideForget(task).kind)).toEqual(
      Array(3).fill('forget'),
    );
    expect(decideForget(claimed())).toEqual({ kind: 'running', owner: 'worker:1' });
    expect(decideForget(unpublished('a'))).toEqual({ kind: 'missing' });
  });
});

describe('a repair', () => {
  it('writes down that a task without an owner is pending, and leaves all others alone', () => {
    expect(decideRepair({ ...claimed(), owner: undefined }, 300)).toMatchObject({
      owner: 'delete',
      status: 'pending',
      bookkeeping: { attempts: 1, events: [{ type: 'task:requeued', at: 300, holder: 'worker:1' }] },
    });
    for (const task of [
      published(),
      claimed(),
      unpublished('a'),
      published({}, { status: { word: 'complete', mod: 1 } }),
      published({}, { owner: owned('py:1', null), status: { word: 'running', mod: 6 } }),
    ]) {
      expect(decideRepair(task, 300)).toBeUndefined();
    }
  });
});
