import { describe, expect, it } from 'vitest';
import { open } from '../runtime/open.ts';
import type { Want } from '../runtime/holds/wants.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { collectOrAsk } from './ticket.ts';
import { currentHolders, waitTold } from './waiting.ts';

const held = { holder: 'agent:7', acquiredAt: 1000, reason: undefined, metadata: undefined, isStale: false };
const wait = { resource: 'lock/main', place: 1, holders: [held], ahead: [] };

describe('the message about a wait', () => {
  it('is for what, how long, the place in the queue, and who has it since when', () => {
    expect(waitTold(wait, 13_000, 4000)).toBe('waiting 4 s for lock/main, next in line; held by agent:7 for 12 s');
  });

  it('says why the holder has it; if it gave no reason, which command it runs', () => {
    const reason = { ...held, reason: 'deploying', metadata: { command: 'git' } };
    expect(waitTold({ ...wait, holders: [reason] }, 2000, 0)).toMatch(/held by agent:7 \(deploying\) for 1 s$/);
    const command = { ...held, metadata: { command: 'git' } };
    expect(waitTold({ ...wait, holders: [command] }, 2000, 0)).toMatch(/held by agent:7 \(git\) for 1 s$/);
  });

  it('is the same text in a log for as long as nothing has changed', () => {
    const told = 'waiting for lock/main, next in line; held by agent:7 since 1970-01-01T00:00:01.000Z';
    expect([waitTold(wait, 2000), waitTold(wait, 60_000)]).toEqual([told, told]);
  });

  it('names a few of many holders, and says which is stale', () => {
    const holders = [{ ...held, isStale: true }, held, held, held];
    expect(waitTold({ ...wait, holders }, 2000, 0)).toMatch(
      /held by agent:7 for 1 s, stale, agent:7 for 1 s and 2 more$/,
    );
  });

  it('is who goes first where nobody has it', () => {
    expect(waitTold({ ...wait, place: 2, holders: [], ahead: ['b'] }, 0)).toMatch(/2nd in line; behind b$/);
    expect(waitTold({ ...wait, holders: [] }, 0)).toMatch(/next in line; about to be granted$/);
  });

  it('is why a hold lasts whose process is gone', () => {
    const lease = { ttlMs: 15_000, remainingMs: 12_000, renewedMs: 3_000 };
    const gone = { ...held, health: 'process-gone' as const, lease, orphans: [] };
    expect(waitTold({ ...wait, holders: [gone] }, 2000, 0)).toMatch(
      /held by agent:7 for 1 s; its process is gone; its lease ends in 12 s$/,
    );
    expect(waitTold({ ...wait, holders: [{ ...gone, orphans: [4712] }] }, 2000)).toMatch(
      /; its process is gone but its command still runs \(pid 4712\); the hold lasts until its lease ends$/,
    );
    // The line of a log names the time as it is when the line is printed.
    expect(waitTold({ ...wait, holders: [gone] }, 2000, undefined, false)).toMatch(
      /held by agent:7 since 1970-.*Z; its process is gone; its lease ends in 12 s$/,
    );
  });

  it('is the heavier request that goes first, where there would be room', () => {
    const behind = { holder: 'run:heavy', weight: 6, free: 2 };
    expect(waitTold({ ...wait, place: 2, ahead: ['run:heavy'], behind }, 2000, 0)).toMatch(
      /2nd in line; behind run:heavy, which waits for 6 slots and goes first; 2 free$/,
    );
  });

  it('is until when a turn is kept that nobody has collected', () => {
    const lease = { ttlMs: 60_000, remainingMs: 30_000, renewedMs: 30_000 };
    const kept = { ...held, metadata: { command: 'echo' }, isCollected: false, lease };
    expect(waitTold({ ...wait, holders: [kept] }, 2000, 0)).toMatch(
      /held by agent:7 \(echo\) for 1 s, not collected yet: its turn lapses in 30 s$/,
    );
    expect(waitTold({ ...wait, holders: [kept] }, 2000)).toMatch(
      /, not collected yet: its turn lapses with its lease$/,
    );
  });

  it.each([
    [2, '2nd'],
    [3, '3rd'],
    [4, '4th'],
    [11, '11th'],
    [12, '12th'],
    [21, '21st'],
    [113, '113th'],
  ])('counts places as people do: %i', (place, told) => {
    expect(waitTold({ ...wait, place }, 0)).toContain(`, ${told} in line`);
  });
});

it('a run that waited in vain never names itself as the one in its way', async () => {
  await using box = await open('memory:');
  const wants = [{ lock: 'a' }, { lock: 'b' }];
  // Granted when its time was over already, and on its way back.
  await box.lock('a').acquire({ holder: 'run:me' });
  expect(await currentHolders(box, wants, 'lock/a', 'run:me')).toBeUndefined();
  await box.lock('b').acquire({ holder: 'run:other', reason: 'deploys' });
  expect(await currentHolders(box, wants, 'lock/a', 'run:me')).toMatchObject({
    resource: 'lock/b',
    told: expect.stringContaining('run:other (deploys)') as string,
  });
});

describe('a refusal', () => {
  const told = async (box: Signalbox, want: Want, own: string): Promise<string | undefined> => {
    const resource = 'lock' in want ? `lock/${want.lock}` : `semaphore/${want.semaphore}`;
    return (await currentHolders(box, [want], resource, own))?.told;
  };

  it('names the ticket in the way where the hold is stale, or would let a reader in', async () => {
    await using box = await open('memory:');
    const lock = box.lock('main');
    await lock.acquireDetached({ holder: 'agent:a', mode: 'shared' });
    await lock.askDetached({ holder: 'agent:b' });
    const writer = 'behind agent:b, which waits and goes first';
    expect(await told(box, { lock: 'main', mode: 'shared' }, 'agent:c')).toBe(writer);
    expect(await told(box, { lock: 'main' }, 'agent:c')).toMatch(/^held by agent:a/);
    expect(await told(box, { lock: 'main', mode: 'shared' }, 'agent:b')).toMatch(/^held by agent:a/);
  });

  it('names the heavier request in the way of one that there would be room for', async () => {
    await using box = await open('memory:');
    const builds = box.semaphore('builds', { capacity: 8 });
    await builds.acquireDetached({ holder: 'agent:7', weight: 4 });
    await builds.askDetached({ holder: 'agent:8', weight: 6 });
    const heavy = 'behind agent:8, which waits for 6 slots and goes first; 4 free';
    expect(await told(box, { semaphore: 'builds', weight: 1 }, 'agent:9')).toBe(heavy);
    expect(await told(box, { semaphore: 'builds', weight: 5 }, 'agent:9')).toMatch(/^held by agent:7/);
  });

  it('says of a turn that nobody has collected when it lapses', async () => {
    await using box = await open('memory:');
    const lock = box.lock('main');
    const first = await lock.acquireDetached({ holder: 'agent:a' });
    const options = { holder: 'run:b', metadata: { command: 'echo' } };
    const terms = { ticket: undefined, waitMs: 0, signal: new AbortController().signal };
    const late = await collectOrAsk(lock, { ...terms, options, onWaiting: () => undefined, onGone: () => undefined });
    expect(late.kind).toBe('waiting');
    await lock.release(first);
    expect(await told(box, { lock: 'main' }, 'agent:c')).toMatch(
      /^held by run:b \(echo\) for .+, not collected yet: its turn lapses in .+$/,
    );
  });
});
