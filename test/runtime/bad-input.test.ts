import { Failure, type Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';

type Call = (box: Signalbox) => unknown;

const long = 'x'.repeat(201);
const claim = { holder: 'me', token: 1 };

const BOOK = { name: 'r', phases: [{ name: 'a', run: 'true' }] };

/** What is asked, what the message has to show of it, and what of what is accepted. */
const bad: readonly [string, Call, string, RegExp][] = [
  ['a lock without a name', (box) => box.lock(''), 'empty', /1 to 200 printable/],
  ['a name that is too long', (box) => box.lock(long), '201', /1 to 200 printable/],
  ['a name with a line break', (box) => box.lock('a\nb'), String.raw`a\nb`, /1 to 200 printable/],
  ['a name with a null', (box) => box.lock('a\0b'), 'U+0000', /1 to 200 printable/],
  ['half a character', (box) => box.lock('\ud800'), 'U+D800', /1 to 200 printable/],
  ['a name that is no string', (box) => box.lock(42 as never), '42', /1 to 200 printable/],
  ['no name at all', (box) => box.lock(undefined as never), 'undefined', /1 to 200 printable/],
  ['a semaphore without a name', (box) => box.semaphore('', { capacity: 1 }), 'empty', /1 to 200 printable/],
  ['a capacity that is no number', (box) => box.semaphore('s', { capacity: Number.NaN }), 'NaN', /whole number/],
  ['a capacity that is not in an object', (box) => box.semaphore('s', 3 as never), 'is 3', /\{ capacity: 3 \}/],
  ['settings without one', (box) => box.lock('a').configure({}), 'no setting', /onStale, maxHoldMs, ttlMs/],
  ['a misspelt setting', (box) => box.lock('a').configure({ maxHold: 1 } as never), 'maxHold', /there are onStale/],
  ['a negative limit', (box) => box.ensureLock('a', { maxHoldMs: -1 }), 'maxHoldMs is -1', /above zero/],
  ['a semaphore of nothing', (box) => box.ensureSemaphore('a', {} as never), 'capacity', /whole number/],
  ['an empty holder', (box) => box.lock('a').acquire({ holder: '' }), 'holder', /1 to 200 printable/],
  ['a holder with a tab', (box) => box.lock('a').acquire({ holder: 'a\tb' }), String.raw`a\tb`, /1 to 200 printable/],
  ['a priority that is no number', (box) => box.lock('a').acquire({ priority: Number.NaN }), 'NaN', /from -100 to 100/],
  ['a priority that is too high', (box) => box.lock('a').acquire({ priority: 101 }), '101', /from -100 to 100/],
  ['a fraction of a priority', (box) => box.lock('a').acquire({ priority: 0.5 }), '0.5', /from -100 to 100/],
  ['a negative wait', (box) => box.lock('a').acquire({ waitMs: -1 }), '-1', /not negative/],
  ['a wait that is no number', (box) => box.lock('a').acquire({ waitMs: Number.NaN }), 'NaN', /not negative/],
  ['a longest time of zero', (box) => box.lock('a').acquire({ maxHoldMs: 0 }), 'maxHoldMs is 0', /above zero/],
  ['a negative longest time', (box) => box.lock('a').tryAcquire({ maxHoldMs: -5 }), '-5', /above zero/],
  ['an unknown mode', (box) => box.lock('a').acquire({ mode: 'weird' as never }), 'weird', /"exclusive" or "shared"/],
  [
    'an unknown strategy',
    (box) => box.lock('a').acquire({ strategy: 'beg' as never }),
    'beg',
    /"retry" or "fail-fast"/,
  ],
  ['metadata over 64 KiB', (box) => box.lock('a').acquire({ metadata: 'x'.repeat(65 * 1024) }), '66562', /64 KiB/],
  [
    'metadata that is no JSON',
    (box) => box.lock('a').acquire({ metadata: { when: new Date(0) } as never }),
    'metadata.when is a Date',
    /plain JSON/,
  ],
  [
    'metadata with NaN',
    (box) => box.lock('a').acquire({ metadata: { load: [Number.NaN] } }),
    'metadata.load[0] is NaN',
    /JSON/,
  ],
  ['a reason that is no text', (box) => box.lock('a').acquire({ reason: 7 as never }), '7', /string/],
  ['a reason over 64 KiB', (box) => box.lock('a').acquire({ reason: 'x'.repeat(65 * 1024) }), 'reason', /64 KiB/],
  [
    'a time to live of zero',
    (box) => box.lock('a').acquireDetached({ holder: 'me', ttlMs: 0 }),
    'ttlMs is 0',
    /above zero/,
  ],
  ['a time to live that is no number', (box) => box.lock('a').extend(claim, Number.NaN), 'NaN', /above zero/],
  [
    'a claim without a token',
    (box) => box.lock('a').renew({ holder: 'me' } as never),
    'token is undefined',
    /whole number/,
  ],
  [
    'a claim with NaN as token',
    (box) => box.lock('a').release({ holder: 'me', token: Number.NaN }),
    'NaN',
    /whole number/,
  ],
  [
    'a claim without a holder',
    (box) => box.lock('a').release({ token: 1 } as never),
    'holder is undefined',
    /printable/,
  ],
  ['breaking without a reason', (box) => box.lock('a').break({ holder: 'me' } as never), 'reason', /string/],
  [
    'breaking without a name',
    (box) => box.lock('a').break({ holder: '', reason: 'x' }),
    'holder is empty',
    /printable/,
  ],
  [
    'an unknown onStale',
    (box) => box.lock('a').configure({ onStale: 'shrug' as never }),
    'shrug',
    /"reclaim" or "alert"/,
  ],
  [
    'a task that waits for itself',
    (box) => box.tasks.publish('a', {}, { dependsOn: ['b', 'a'] }),
    'dependsOn names the task itself',
    /could never begin/,
  ],
  [
    'a decision in other letters',
    (box) => box.pipelines.resume('p', { decision: 'Skip' as never }),
    'Skip',
    /"rerun" or "skip"/,
  ],
  ['no decision', (box) => box.pipelines.resume('p', { decision: null as never }), 'null', /"rerun" or "skip"/],
  ['a question without a decision', (box) => box.pipelines.resume('p', { question: 3 }), '3', /"rerun" or "skip"/],
  [
    'a question that is no number',
    (box) => box.pipelines.resume('p', { decision: 'skip', question: '3' as never }),
    'question is "3"',
    /whole number/,
  ],
  [
    'a wait that is neither',
    (box) => box.pipelines.run(BOOK, { waits: 'no' as never }),
    'waits is "no"',
    /true or false/,
  ],
  [
    'a standby that is neither',
    (box) => box.pipelines.resume('p', { standsBy: 1 as never }),
    'standsBy is 1',
    /true or false/,
  ],
  ['a negative grace', (box) => box.pipelines.run(BOOK, { graceMs: -1 }), 'graceMs is -1', /not negative/],
  [
    'functions that are no map',
    (box) => box.pipelines.resume('p', { functions: {} as never }),
    'functions is {}',
    /a Map/,
  ],
  ['a state of no pipeline', (box) => box.pipelines.list({ state: 'Done' as never }), 'Done', /"pending" or/],
  ['a reason that is no text', (box) => box.pipelines.cancel('p', { reason: 7 as never }), 'reason is 7', /text/],
  [
    'a misspelt reason',
    (box) => box.pipelines.cancel('p', { resaon: 'x' } as never),
    'resaon',
    /by, reason, expected, signal/,
  ],
  [
    'an unknown onFailure',
    (box) => box.guards.wait({ id: 'g', condition: { lockFree: 'a' }, onFailure: 'Warn' as never }),
    'Warn',
    /"block", "warn"/,
  ],
  [
    'a quietness that is neither',
    (box) => box.guards.check([{ id: 'g', condition: { lockFree: 'a' } }], { isQuiet: 'yes' as never }),
    'isQuiet is "yes"',
    /true or false/,
  ],
  ['an own that is no name', (box) => box.check({ lockFree: 'a' }, {}, { own: 7 as never }), 'own is 7', /a name/],
  [
    'an unknown status',
    (box) => box.tasks.list({ status: 'done' as never }),
    'status is "done"',
    /"pending" or "running"/,
  ],
  [
    'a pending that is neither',
    (box) => box.tasks.subscribe(() => undefined, { pending: 'yes' as never }),
    'pending is "yes"',
    /true or false/,
  ],
  [
    'a retry that is neither',
    (box) => box.tasks.fail('t', claim, 'x', { retry: 'no' as never }),
    'retry is "no"',
    /true or false/,
  ],
  [
    'a comparison with something else',
    (box) => box.bus.transaction([{ key: 'k', target: 'Version', is: '=', than: 0 } as never], [], []),
    'Version',
    /"version", "create" or "mod"/,
  ],
  [
    'a comparison by a word',
    (box) => box.bus.transaction([{ key: 'k', target: 'mod', is: '==', than: 0 } as never], [], []),
    '==',
    /"=", "!=", "<" or ">"/,
  ],
  [
    'a kind of no resource',
    (box) => box.survey({ resource: { kind: 'Lock' as never, name: 'a' } }),
    'kind is "Lock"',
    /"lock" or "semaphore"/,
  ],
  [
    'metadata of a member that is no JSON',
    (box) => box.members.join('m', { when: new Date(0) } as never),
    'metadata.when is a Date',
    /plain JSON/,
  ],
  ['a misspelt capacity', (box) => box.semaphore('s', { capicity: 2 } as never), 'capicity', /there are capacity/],
  [
    'a mode in other letters, wanted together',
    (box) => box.acquireAll([{ lock: 'a', mode: 'Shared' as never }]),
    'Shared',
    /"exclusive" or "shared"/,
  ],
  ['a capacity to resize to of zero', (box) => box.semaphore('s').resize(0), 'capacity is 0', /whole number/],
];

describe.each(transports)('bad input on $transport', ({ atOnce }) => {
  it.each(bad)(
    '%s: the error shows it and says what is accepted, and nothing is changed',
    async (_what, call, shown, accepted) => {
      const fleet = new Fleet(atOnce);
      const [process] = await fleet.startAll('process');
      const before = await fleet.revision();
      let error: unknown;
      try {
        await call(process!.box);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(Failure);
      expect(error).toMatchObject({ code: 'invalid' });
      expect((error as Failure).message).toContain(shown);
      expect((error as Failure).message).toMatch(accepted);
      expect(await fleet.revision()).toBe(before);
    },
  );

  it('what is just within the limits is accepted', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('process');
    const { box } = process!;
    const name = '🚦'.repeat(200);
    const metadata = 'x'.repeat(64 * 1024 - 2);
    const hold = await box.lock(name).acquire({ holder: 'y'.repeat(200), priority: 100, metadata, waitMs: 0 });
    expect(hold.isValid).toBe(true);
    expect((await box.lock(name).inspect()).holders[0]?.metadata).toBe(metadata);
    expect(await box.lock('low').tryAcquire({ priority: -100 })).toMatchObject({ kind: 'acquired' });
  });

  it('an error about something huge is not huge itself', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    expect(() => box.lock('x'.repeat(1_000_000))).toThrow(/^.{1,300}$/);
  });
});
