import { describe, expect, it } from 'vitest';
import { open } from '../runtime/open.ts';
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
      /; its process is gone but its command still runs \(pid 4712\); its lease ends soon$/,
    );
  });

  it('is the heavier request that goes first, where there would be room', () => {
    const behind = { holder: 'run:heavy', weight: 6, free: 2 };
    expect(waitTold({ ...wait, place: 2, ahead: ['run:heavy'], behind }, 2000, 0)).toMatch(
      /2nd in line; behind run:heavy, which waits for 6 slots and goes first; 2 free$/,
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
