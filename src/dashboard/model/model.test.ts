import { describe, expect, it } from 'vitest';
import { continued, historyOf } from './history.ts';
import { readKey } from './keys.ts';
import { type Link, linkAfter, pauseBefore } from './link.ts';
import { aspectOf, LONG_WAIT_MS, mattersOf, routeOf } from './needs.ts';
import { usualWait } from './rates.ts';
import { boardIn } from './read.ts';
import { fragmentOf, routeIn, tokenIn, withFilters } from './route.ts';
import { inPlace, inSight, matching, ordered } from './rows.ts';
import { searched } from './search.ts';
import { SentEvents } from './sent.ts';
import { fits, letterOf, rangesOf, runsOf } from './slots.ts';
import { halves, shortened, visible } from './text.ts';
import { count, duration, span } from './time.ts';
import type { Happening, State } from './types.ts';
import { graphOf } from './waits.ts';

const NOW = 1_800_000_000_000;
const iso = (ago: number): string => new Date(NOW - ago).toISOString();

function board(more: object): State {
  return boardIn({ since: 1, revision: 1, at: iso(0), ...more });
}

function lock(name: string, holders: readonly string[], waiters: readonly string[] = [], more: object = {}): object {
  return {
    ...{ name, token: holders.length, onStale: 'reclaim' },
    holds: holders.map((holder, place) => ({ holder, token: place + 1, acquiredAt: iso(5000), mode: 'exclusive' })),
    waiting: waiters.map((holder, place) => ({ holder, since: iso(4000 - place), priority: 0 })),
    ...more,
  };
}

describe('the stream', () => {
  it('is read in pieces of any size', () => {
    const text = ': alive\n\nid: r1,t1\nevent: open\ndata: {}\n\nid: r2,t1\nevent: lock:acquired\ndata: {"a":"ü"}\n\n';
    for (const size of [1, 3, 1000]) {
      const sent = new SentEvents();
      const found = [...text.matchAll(new RegExp(`.{1,${size}}`, 'gs'))].flatMap(([piece]) => sent.push(piece));
      expect(found).toEqual([
        { id: 'r1,t1', event: 'open', data: '{}' },
        { id: 'r2,t1', event: 'lock:acquired', data: '{"a":"ü"}' },
      ]);
    }
  });

  it('counts as broken after ten silent seconds, and is live again when it is heard', () => {
    let link: Link = linkAfter({ kind: 'loading', since: 0 }, { kind: 'heard', at: 1000 });
    expect(linkAfter(link, { kind: 'tick', at: 10_999 })).toBe(link);
    link = linkAfter(link, { kind: 'tick', at: 11_000 });
    expect(link).toEqual({ kind: 'reconnecting', heardAt: 1000, tries: 0 });
    link = linkAfter(link, { kind: 'broken', at: 12_000 });
    expect(link).toMatchObject({ kind: 'reconnecting', heardAt: 1000, tries: 1 });
    expect(linkAfter(link, { kind: 'heard', at: 13_000 })).toEqual({ kind: 'live', heardAt: 13_000 });
    expect(linkAfter({ kind: 'loading', since: 5 }, { kind: 'broken', at: 9, why: 'no' })).toMatchObject({
      kind: 'failed',
      since: 5,
      why: 'no',
    });
    expect([1, 2, 3, 9].map(pauseBefore)).toEqual([250, 500, 1000, 5000]);
  });
});

describe('the address', () => {
  it('has the view, the name and the filters, and leads back to them', () => {
    for (const name of ['main', 'a/b', '..', '100%', 'ü ñ', '<script>', undefined]) {
      const route = { view: 'locks', name, filters: { q: 'x y&z', sort: 'name' } } as const;
      expect(routeIn(fragmentOf(route))).toEqual(route);
    }
    expect(fragmentOf(withFilters(routeIn('#/locks?q=a&is=held'), { q: '', sort: 'name' }))).toBe(
      '#/locks?is=held&sort=name',
    );
    expect(routeIn('#/nowhere')).toEqual({ view: 'overview', name: undefined, filters: {} });
    expect(routeIn('#/locks/%E0')).toMatchObject({ name: '%E0' });
  });

  it('gives the token away to nobody but the page', () => {
    expect(tokenIn('#token=sbx_a&view=%2Flocks%2Fmain')).toEqual({ token: 'sbx_a', rest: '#/locks/main' });
    expect(tokenIn('#token=sbx_a')).toEqual({ token: 'sbx_a', rest: '#/overview' });
    expect(tokenIn('#/locks?token=x')).toBeUndefined();
  });
});

describe('keys', () => {
  const press = (key: string, more: object = {}) =>
    readKey({ key, isTyping: false, isOnControl: false, hasModifier: false, isCommand: false, ...more }, false);
  it('mean nothing while somebody types, but for Escape', () => {
    expect(press('d', { isTyping: true }).deed).toBeUndefined();
    expect(press('Escape', { isTyping: true }).deed).toEqual({ kind: 'escape' });
    expect(press('k', { isCommand: true, isTyping: true }).deed).toEqual({ kind: 'palette' });
    expect(press('c', { isCommand: true }).deed).toBeUndefined();
  });
  it('freeze the page with Space, except on a button, where Space presses it', () => {
    const space = { key: ' ', isTyping: false, hasModifier: false, isCommand: false };
    expect(readKey({ ...space, isOnControl: false }, false).deed).toEqual({ kind: 'freeze' });
    expect(readKey({ ...space, isOnControl: true }, false).deed).toBeUndefined();
  });

  it('go to a view after G', () => {
    expect(press('g')).toEqual({ deed: undefined, isGoing: true });
    const went = readKey({ key: 'L', isTyping: false, isOnControl: false, hasModifier: false, isCommand: false }, true);
    expect(went).toEqual({ deed: { kind: 'go', view: 'locks' }, isGoing: false });
  });
});

describe('what needs a person', () => {
  it('comes worst first: lost holds, stuck guards, dead drivers, long waits', () => {
    const long = { waiting: [{ holder: 'w', since: iso(LONG_WAIT_MS + 1), priority: 0 }] };
    const lost = { onStale: 'alert', holds: [{ holder: 'gone', token: 9, acquiredAt: iso(9000), isStale: true }] };
    const state = board({
      locks: [lock('slow', ['a'], [], long), lock('fine', ['a'], ['b']), lock('lost', [], [], lost)],
      pipelines: [
        {
          pipeline: 'p',
          state: 'blocked',
          phase: 'merge',
          phases: [{}],
          blocked: { on: 'guard', reasons: ['x'], since: iso(60_000) },
          isDriven: true,
        },
        { pipeline: 'q', state: 'running', phase: 'build', phases: [{}], blocked: null, isDriven: false },
        {
          pipeline: 'ok',
          state: 'blocked',
          phase: 'merge',
          phases: [],
          blocked: { on: 'guard', reasons: [], since: iso(10) },
          isDriven: true,
        },
      ],
    });
    expect(mattersOf(state, NOW).map(({ kind, leads }) => [kind, leads])).toEqual([
      ['lost', '/locks/lost'],
      ['stuck', '/pipelines/p'],
      ['driver', '/pipelines/q'],
      ['wait', '/locks/slow'],
    ]);
    expect(mattersOf(board({ locks: [lock('fine', ['a'], ['b'])] }), NOW)).toEqual([]);
  });

  it('is no pipeline that waits for a lock or its next attempt, and no stuck guard where nobody drives', () => {
    const blocked = (on: string): object => ({ on, reasons: [], since: iso(60_000) });
    const pipeline = (id: string, on: string, isDriven: boolean): object => ({
      ...{ pipeline: id, state: 'blocked', phase: 'merge', isDriven, blocked: blocked(on) },
      phases: [{ name: 'build', state: 'done' }, { name: 'merge', state: 'interrupted', endedAt: iso(1) }, {}],
    });
    const pipelines = [
      pipeline('holds', 'holds', true),
      pipeline('pause', 'backoff', true),
      pipeline('dead', 'guard', false),
      pipeline('asks', 'person', false),
    ];
    expect(mattersOf(board({ pipelines }), NOW).map(({ title, leads, cost }) => [title, leads, cost])).toEqual([
      ['Asks you', '/pipelines/asks', '2 phases left'],
      ['No driver', '/pipelines/dead', '2 phases left'],
    ]);
  });

  it('says of a lost hold why it is lost, and since when only if that is known', () => {
    const lost = (health: string): object => ({
      onStale: 'alert',
      holds: [{ holder: 'h', token: 9, acquiredAt: iso(9000), isStale: true, health, maxHoldMs: 5000 }],
    });
    const locks = [lock('a', [], [], lost('slow')), lock('b', [], [], lost('silent'))];
    const told = mattersOf(board({ locks }), NOW).map(({ sentence, since }) => [sentence[1], since]);
    expect(told).toContainEqual([': h has held it longer than it may. Set to ', NOW - 4000]);
    expect(told).toContainEqual([': the lease of h ended. Set to ', undefined]);
  });

  it('does not count a wait as long that is usual here', () => {
    const waits = Array.from({ length: 5 }, () => ({ resource: 'lock/slow', at: NOW, ms: 50_000 }));
    const at = (ago: number): State =>
      ({
        ...board({ locks: [lock('slow', ['a'], [], { waiting: [{ holder: 'w', since: iso(ago), priority: 0 }] })] }),
        waits,
      }) as State;
    expect(usualWait(at(0), 'lock/slow')).toBe(50_000);
    expect(mattersOf(at(140_000), NOW)).toEqual([]);
    expect(mattersOf(at(151_000), NOW)).toHaveLength(1);
  });

  it('leaves out what was dismissed, and deadlocks of more than an hour ago', () => {
    const one = { id: '5.0', at: NOW - 1000, resource: 'lock/a', victim: 'v', cycle: [] };
    const state = { ...board({}), deadlocks: [one, { ...one, id: '4.0', at: NOW - 3_600_001 }] } as State;
    expect(mattersOf(state, NOW).map(({ key }) => key)).toEqual(['deadlock 5.0']);
    expect(mattersOf(state, NOW, new Set(['deadlock 5.0']))).toEqual([]);
  });
});

describe('lists', () => {
  const state = board({ locks: [lock('c', []), lock('b', ['agent:7'], ['w']), lock('a', ['x'])] });
  const names = (found: readonly { name: string }[]): string => found.map(({ name }) => name).join('');
  it('are filtered by name, holder, token and state', () => {
    const of = (text: string, is = ''): string => names(matching(state, { kind: 'lock', text, is }));
    expect([of(''), of('AGENT'), of('w'), of('1'), of('', 'free'), of('', 'queue')]).toEqual([
      'cba',
      'b',
      'b',
      'ba',
      'c',
      'b',
    ]);
  });
  it('are sorted by need, name and time, and keep their places in between', () => {
    const all = [...state.resources.values()];
    expect(names(ordered(state, all, 'need', NOW))).toBe('bac');
    expect(names(ordered(state, all, 'name', NOW))).toBe('abc');
    expect(names(inPlace(new Map(['lock/c', 'lock/gone', 'lock/a'].map((name, place) => [name, place])), all))).toBe(
      'cab',
    );
  });
  it('draw only what is in sight', () => {
    expect(inSight(10_000, 36, 0, 900)).toEqual({ first: 0, last: 31 });
    expect(inSight(10_000, 36, 180_000, 900)).toEqual({ first: 4994, last: 5031 });
    expect(inSight(3, 36, 0, 900)).toEqual({ first: 0, last: 3 });
    expect(inSight(0, 36, 500, 900)).toEqual({ first: 0, last: 0 });
  });
  it('are searched for names, holders and tokens', () => {
    expect(searched(state, 'agent:7').map(({ group, leads }) => [group, leads])).toEqual([['Holders', '/locks/b']]);
    expect(searched(state, '').some(({ leads }) => leads === '/locks')).toBe(true);
  });
});

describe('who waits for whom', () => {
  it('leads to the holder that waits for nobody', () => {
    const state = board({ locks: [lock('a', ['h'], ['w1', 'w2', 'w3']), lock('b', ['root'], ['h'])] });
    const graph = graphOf(state, state.resources.get('lock/a') as never);
    expect(graph.root).toBe('root');
    expect(graph.nodes.map(({ label, column }) => `${label} ${column}`)).toEqual([
      'w2 0',
      'w3 0',
      'w1 1',
      'a 2',
      'h 3',
      'b 4',
      'root 5',
    ]);
    expect(graph.edges.some(({ from, to }) => from === 'lock/a 1' && to === 'lock/b')).toBe(true);
  });
  it('ends in a circle, too', () => {
    const state = board({ locks: [lock('a', ['x'], ['y']), lock('b', ['y'], ['x'])] });
    expect(graphOf(state, state.resources.get('lock/a') as never).nodes.length).toBeLessThan(10);
  });
});

describe('history', () => {
  it('is made of the events of one resource', () => {
    const event = (type: string, at: number, holder: string, token: number, more = {}): Happening =>
      ({ type: `lock:${type}`, resource: 'lock/a', holder, at, id: `${at}.0`, token, ...more }) as Happening;
    const history = historyOf(
      [
        event('acquired', 100, 'a', 1),
        event('queued', 150, 'b', 0),
        event('released', 200, 'a', 1),
        event('acquired', 200, 'b', 2),
        event('forced', 500, 'b', 2, { by: 'ann' }),
        event('acquired', 600, 'c', 3),
      ],
      0,
      1000,
    );
    expect(history.holds).toMatchObject([
      { holder: 'a', to: 200 },
      { holder: 'b', end: 'forced', by: 'ann' },
      { holder: 'c', to: undefined },
    ]);
    expect(history.queue).toEqual([
      { at: 150, length: 1 },
      { at: 200, length: 0 },
    ]);
    expect(history.longest).toBe(300);
  });

  it('has one hold of a reader that became the writer, and those that began before the first event', () => {
    const event = (type: string, at: number, holder: string, token: number): Happening =>
      ({ type: `lock:${type}`, resource: 'lock/a', holder, at, id: `${at}.0`, token }) as Happening;
    const events = [event('acquired', 100, 'a', 1), event('acquired', 200, 'a', 5), event('released', 300, 'a', 5)];
    expect(historyOf(events, 0, 1000).holds).toMatchObject([{ holder: 'a', from: 100, to: 300 }]);
    const held = board({ locks: [lock('a', ['old'])] }).resources.get('lock/a')?.holds;
    expect(historyOf([], NOW - 1000, NOW, held).holds).toMatchObject([
      { holder: 'old', from: NOW - 5000, to: undefined },
    ]);
  });
});

describe('the events of one resource', () => {
  const one = (id: string, resource = 'lock/main') => ({ type: 'lock:acquired', resource, holder: 'a', at: 0, id });
  const ids = (events: readonly { readonly id: string }[]): readonly string[] => events.map(({ id }) => id);

  it('go on with the stream, each once, in the order of the store, and stay when the stream has gone on', () => {
    const first = continued([one('8.0'), one('9.0')], [one('10.1'), one('10.0', 'lock/x'), one('9.0')], 'lock/main');
    expect(ids(first)).toEqual(['8.0', '9.0', '10.1']);
    expect(ids(continued(first, [one('12.0'), one('11.0', 'lock/x')], 'lock/main'))).toEqual([
      ...['8.0', '9.0', '10.1', '12.0'],
    ]);
  });

  it('are bounded', () => {
    const many = Array.from({ length: 2_000 }, (_, place) => one(`${place}.0`));
    expect(continued(many, [one('5000.0')], 'lock/main')).toHaveLength(2_000);
  });
});

describe('figures', () => {
  it('are written as people read them', () => {
    expect([42_000, 252_000, 11_220_000, 187_200_000].map(duration)).toEqual(['42s', '4m 12s', '3h 07m', '2d 4h']);
    expect([359, 9800, 60_000].map(span)).toEqual(['359 ms', '9.8 s', '1m 00s']);
    expect([0, 999, 10_012, 1_000_000].map(count)).toEqual(['0', '999', '10,012', '1,000,000']);
  });
});

describe('strange names', () => {
  it('show what cannot be seen, and turn nothing around', () => {
    expect(visible('a\u202eb\u0000\n')).toBe('a⟨202e⟩b⟨0000⟩⟨000a⟩');
    expect(visible('日本 ü')).toBe('日本 ü');
    expect(halves('worktree/feature-backfill-2026-q4')).toEqual(['worktree/feature-backfill', '-2026-q4']);
    expect(halves('short')).toEqual(['short', '']);
    expect(shortened('x'.repeat(100), 10)).toBe('xxxxxxxxxx… (90 more)');
    expect(halves('y'.repeat(65_536)).join('').length).toBeLessThan(500);
    expect(routeOf('lock/a/b')).toBe('/locks/a%2Fb');
  });
});

describe('slots', () => {
  it('are shown in runs, with letters, and say what would let a waiter in', () => {
    const semaphores = [
      {
        ...{ name: 's', capacity: 6, token: 2 },
        holds: [
          { holder: 'a', token: 1, weight: 3, slots: [0, 1, 3] },
          { holder: 'b', token: 2, weight: 1, slots: [2] },
        ],
        waiting: [
          { holder: 'c', weight: 4 },
          { holder: 'd', weight: 1 },
        ],
      },
    ];
    const one = board({ semaphores }).resources.get('semaphore/s');
    if (one === undefined) throw new Error('it is missing');
    expect(runsOf(one).map(({ first, length, place }) => [first, length, place])).toEqual([
      [0, 2, 0],
      [2, 1, 1],
      [3, 1, 0],
      [4, 1, undefined],
      [5, 1, undefined],
    ]);
    expect([letterOf(0), letterOf(25), letterOf(26)]).toEqual(['A', 'Z', 'AA']);
    expect(rangesOf([8, 0, 1, 2, 9, 5])).toBe('0–2, 5, 8–9');
    expect([fits(one, 0), fits(one, 1)]).toEqual(['fits when a leaves', 'would fit now, waits its turn']);
    expect(aspectOf({ waits: [] }, one, NOW)).toBe('held');
  });
});
