import { describe, expect, it } from 'vitest';
import { requestOf, type RunOptions } from './request.ts';

const request = (options: RunOptions): ReturnType<typeof requestOf> => requestOf(['true'], { lock: ['a'], ...options });

describe('what a run holds', () => {
  it.each([
    ['main', { lock: 'main' }],
    ['main:shared', { lock: 'main', mode: 'shared' }],
    ['main:exclusive', { lock: 'main' }],
    ['db:primary', { lock: 'db:primary' }],
    ['db:primary:shared', { lock: 'db:primary', mode: 'shared' }],
    [':shared:shared', { lock: ':shared', mode: 'shared' }],
    ['cfg:share:exclusive', { lock: 'cfg:share' }],
    ['web:8080', { lock: 'web:8080' }],
    ['lock/main', { lock: 'main' }],
    ['lock/main:shared', { lock: 'main', mode: 'shared' }],
  ])('is the lock that --lock %s names', (text, want) => {
    expect(request({ lock: [text] }).wants).toEqual([want]);
  });

  it.each([
    ['agents', { semaphore: 'agents' }],
    ['agents=2', { semaphore: 'agents', weight: 2 }],
    ['agents/4', { semaphore: 'agents', capacity: 4 }],
    ['agents=2/4', { semaphore: 'agents', weight: 2, capacity: 4 }],
    ['team/agents=2/4', { semaphore: 'team/agents', weight: 2, capacity: 4 }],
    ['team/agents=1', { semaphore: 'team/agents', weight: 1 }],
    ['team/7=1/4', { semaphore: 'team/7', weight: 1, capacity: 4 }],
    ['host:80=1/4', { semaphore: 'host:80', weight: 1, capacity: 4 }],
    ['host:80', { semaphore: 'host:80' }],
    ['semaphore/agents=2/4', { semaphore: 'agents', weight: 2, capacity: 4 }],
    ['sem/agents', { semaphore: 'agents' }],
    ['sem/4', { semaphore: 'sem', capacity: 4 }],
    ['a=b=3', { semaphore: 'a=b', weight: 3 }],
  ])('is the slots that --sem %s names', (text, want) => {
    expect(request({ lock: [], sem: [text] }).wants).toEqual([want]);
  });

  it.each(['', ':shared'])('cannot be a lock without a name: %j', (text) => {
    expect(() => request({ lock: [text] })).toThrow(/--lock/);
  });

  it.each(['', '=1', '/4', 'a=', 'a=x', 'a=0', 'a=-1', 'a=1.5', 'a/0', 'a=0/4', 'a=99999999999999999999'])(
    'cannot be slots such as %j, and the message says what is accepted',
    (text) => {
      expect(() => request({ lock: [], sem: [text] })).toThrow(/--sem .*(expected|name)/);
    },
  );

  it.each(['cfg:share', 'cfg:Shared', 'cfg:SHARED', 'cfg:shraed', 'cfg:read', 'cfg:ro'])(
    'is not a lock whose name only looks like a mode: %s',
    (text) => {
      expect(() => request({ lock: [text] })).toThrow(/did you mean cfg:shared\?/);
    },
  );

  it.each(['cfg:exlusive', 'cfg:write', 'cfg:rw'])('nor one such as %s', (text) => {
    expect(() => request({ lock: [text] })).toThrow(/did you mean cfg:exclusive\?/);
  });

  it.each([
    ['builds:2/8', 'a weight begins with ='],
    ['builds/8=2', 'the capacity comes last'],
    ['builds/x', '"x" is no capacity'],
    ['builds/8x', '"8x" is no capacity'],
  ])('is not a semaphore that nobody else uses, by a slip such as %s', (text, why) => {
    expect(() => request({ lock: [], sem: [text] })).toThrow(why);
    expect(() => request({ lock: [], sem: [text] })).toThrow('expected NAME[=WEIGHT][/CAPACITY]');
  });

  it('has to be something', () => {
    expect(() => requestOf(['true'], {})).toThrow('nothing to hold is named; use --lock NAME or --sem NAME');
  });
});

describe('the options of a run', () => {
  it('wait as long as it takes, unless told otherwise', () => {
    expect(request({}).waitMs).toBeUndefined();
    expect(request({ wait: '1.5' }).waitMs).toBe(1500);
    expect(request({ wait: '250ms' }).waitMs).toBe(250);
    expect(request({ wait: false }).waitMs).toBe(0);
  });

  it('end a command gently within five seconds, on a lease of fifteen', () => {
    expect(request({})).toMatchObject({ onLost: 'term', graceMs: 5000, ttlMs: 15_000, tells: 'now-and-then' });
  });

  it.each([
    [{ wait: 'soon' }, /^--wait is "soon"; expected/],
    [{ grace: '-1' }, /^--grace is "-1"; expected/],
    [{ ttl: '0' }, /^--ttl is "0"; expected at least 100ms/],
    [{ onLost: 'hope' }, /^--on-lost is "hope"; expected term, kill, warn/],
    [{ priority: 'high' }, /^--priority is "high"/],
    [{ priority: '101' }, /priority/],
    [{ holder: '' }, /holder/],
  ] as const)('are refused if they make no sense: %j', (options, message) => {
    expect(() => request(options)).toThrow(message);
  });
});
