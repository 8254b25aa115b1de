import { describe, expect, it } from 'vitest';
import type { Everything } from '../../json/status.ts';
import type {
  SurveyedHold,
  SurveyedLock,
  SurveyedSemaphore,
  SurveyedWaiter,
} from '../../runtime/observe/survey/index.ts';
import type { ListedPipeline } from '../../runtime/pipelines/terms.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { paintFor, unpainted } from '../output.ts';
import { columnsOf, withoutEscapes } from '../pipeline/columns.ts';
import { type Board, emptyBoard, Heard } from './board.ts';
import { type Drawing, frameOf } from './frame.ts';
import { changesBetween } from '../full-screen.ts';
import { keysIn } from './keys.ts';
import { age } from './row.ts';
import { FIRST_UI, pressed, type Pressed, type Ui } from './ui.ts';

const NOW = 1_000_000_000;
const HOSTILE = 'a\x1b[31mred\x1b]0;title\x07 \u202egnol\n\x9b2J';

function hold(holder: string, more: Partial<SurveyedHold> = {}): SurveyedHold {
  return {
    ...{ id: `${holder}-id`, holder, token: 41, acquiredAt: NOW - 252_000, reason: undefined, metadata: undefined },
    ...{ maxHoldMs: undefined, isAttached: true, session: undefined, takenBy: undefined, orphans: [] },
    ...{ health: 'renewed', isStale: false, lease: { ttlMs: 15_000, remainingMs: 9_000, renewedMs: 6_000 } },
    ...{ isWarned: false, endsWithPid: undefined },
    ...more,
  };
}

function waiter(holder: string, position: number, more: Partial<SurveyedWaiter> = {}): SurveyedWaiter {
  return {
    ...{ id: holder, holder, position, mode: 'exclusive', weight: undefined, priority: 0, reason: undefined },
    ...{ metadata: undefined, since: NOW - 12_000, isGrowing: false, waitsFor: [], session: undefined },
    ...more,
  };
}

function lock(name: string, holds: readonly SurveyedHold[], waiting: readonly SurveyedWaiter[] = []): SurveyedLock {
  const held = holds.map((one) => ({ mode: 'exclusive' as const, ...one }));
  return { name, resource: `lock/${name}`, token: 41, onStale: 'reclaim', limits: {}, holds: held, waiting };
}

function semaphore(name: string, capacity: number, weights: Readonly<Record<string, number>>): SurveyedSemaphore {
  let next = 0;
  const holds = Object.entries(weights).map(([holder, weight]) => ({
    ...hold(holder),
    weight,
    slots: Array.from({ length: weight }, () => next++),
  }));
  const rest = { resource: `semaphore/${name}`, token: 7, onStale: 'reclaim' as const, limits: {}, waiting: [] };
  return { name, ...rest, holds, capacity, usedSlots: next, availableSlots: capacity - next, drained: undefined };
}

function everything(more: {
  readonly locks?: readonly SurveyedLock[];
  readonly semaphores?: readonly SurveyedSemaphore[];
  readonly tasks?: readonly Partial<TaskView>[];
  readonly pipelines?: readonly Partial<ListedPipeline>[];
  readonly malformed?: Everything['malformed'];
  readonly witness?: Everything['witness'];
}): Everything {
  const { locks = [], semaphores = [], tasks = [], pipelines = [], malformed = [] } = more;
  const { witness = { isFilling: false, damaged: [] } } = more;
  const base = { blockedBy: [], capabilities: [], dependsOn: [], attempts: 1, failures: 0, losses: 0, priority: 0 };
  return {
    survey: { revision: 9, at: NOW, locks, semaphores, sessions: [], maintainer: undefined, malformed },
    tasks: tasks.map((task) => ({ id: 'build-7', status: 'pending', isLeased: true, ...base, ...task }) as TaskView),
    pipelines: pipelines.map(
      (one) =>
        ({
          ...{ id: 'release-7', name: 'release', startedBy: 'ada', startedAt: NOW - 60_000, isDriven: true },
          ...{ state: 'running', step: { when: 'during', phase: 0, attempt: 1 }, outputs: {} },
          phases: [
            { name: 'plan', state: 'done', runs: 1 },
            { name: 'merge', state: 'waiting', runs: 0 },
          ],
          ...one,
        }) as unknown as ListedPipeline,
    ),
    witness,
    crew: { members: [], coordinator: null },
    malformed,
  };
}

function boardOf(state: Everything, more: Partial<Board> = {}): Board {
  return { ...emptyBoard('file:/src/app/.git/signalbox'), everything: state, ...more };
}

const wide: Drawing = { width: 100, height: 40, now: NOW, clock: '14:32:07', paint: unpainted };

function drawn(board: Board, ui: Partial<Ui> = {}, drawing: Partial<Drawing> = {}): string {
  return frameOf(board, { ...FIRST_UI, ...ui }, { ...wide, ...drawing }).lines.join('\n');
}

const much = everything({
  locks: [
    lock(
      'main',
      [hold('worker:1', { reason: 'merging change 42' })],
      [waiter('agent:9', 1, { reason: 'hotfix' }), waiter('agent:4', 2, { since: NOW - 3_000 })],
    ),
    lock(`evil`, [hold('工場:1', { reason: HOSTILE })]),
    lock('x'.repeat(200), [hold('y'.repeat(200), { reason: 'z'.repeat(3000) })]),
    lock('staging', [hold('agent:7', { health: 'process-gone' })]),
    ...Array.from({ length: 60 }, (_, at) => lock(`n${at}`, [hold(`w:${at}`)])),
  ],
  semaphores: [semaphore('builds', 8, { 'job:app': 3, 'job:web': 2 }), semaphore('api', 100, { crawler: 37 })],
  tasks: [
    { id: 'ok', status: 'running', owner: 'worker:2', claimedAt: NOW - 4_000 },
    { id: HOSTILE, status: 'failed', reason: HOSTILE, endedAt: NOW - 5_000 },
  ],
  pipelines: [{}, { id: 'nightly', state: 'failed', reason: HOSTILE, endedAt: NOW - 9_000 }],
});

describe('the board', () => {
  it('shows who holds a lock, why and for how long, and who waits, in order, for how long and why', () => {
    const screen = drawn(boardOf(much));
    expect(screen).toMatch(
      /■ main +worker:1 +merging change 42 +2 waiting +4m 12s\n +└ 1\. agent:9 12s \(hotfix\), 2\. agent:4 3s\n/,
    );
  });

  it('draws slots by weight, a letter for each hold; many slots as a bar', () => {
    const screen = drawn(boardOf(much));
    expect(screen).toMatch(/◧ builds +\[aaabb···\] 5\/8 +a job:app ×3, b job:web ×2\n/);
    expect(screen).toMatch(/◧ api +\[██████··········\] 37\/100 +crawler ×37\n/);
  });

  it('puts what needs a person first, the most urgent on top', () => {
    const state = everything({
      locks: [
        lock('slow', [hold('worker:1')], [waiter('agent:9', 1, { since: NOW - 61_000 })]),
        { ...lock('lost', [hold('agent:7', { health: 'silent', isStale: true })]), onStale: 'alert' },
        // The next in line gets it, so no person has to do anything.
        lock('harmless', [hold('agent:8', { health: 'silent', isStale: true })]),
        lock('ending', [hold('agent:6', { health: 'process-gone' })]),
      ],
      tasks: [{ id: 'lint', status: 'failed', reason: 'no disk', endedAt: NOW - 5_000 }],
      pipelines: [
        { id: 'asks', state: 'blocked', blocked: { on: 'person', why: 'it was interrupted', question: 1, since: NOW } },
        { id: 'left', isDriven: false },
      ],
    });
    const heard = new Heard();
    heard.hear({
      ...{ type: 'lock:deadlock', resource: 'lock/a', holder: 'one', at: NOW - 1_000, id: '7' },
      cycle: [
        { holder: 'one', resource: 'lock/a', blockedBy: 'two' },
        { holder: 'two', resource: 'lock/b', blockedBy: 'one' },
      ],
    });
    const lines = drawn(boardOf(state, heard.told(NOW))).split('\n');
    const from = lines.findIndex((line) => line.includes('NEEDS YOU  6'));
    const kinds = lines.slice(from + 1, from + 7).map((line) => line.slice(2, 14).trim());
    expect(kinds).toEqual(['✗ lost hold', '▲ decide', '▲ no driver', '◆ long wait', '✗ failed', '↻ deadlock']);
    expect(lines[from + 1]).toContain('lock/lost: agent:7 is silent: its lease has ended; a person decides');
    expect(lines.join('\n')).toContain('resolved: one gave way at lock/a (one → two → one)');
  });

  it('tells what is wrong with the store itself: a damaged record, keys that cannot be read, a record that fills', () => {
    const state = everything({
      malformed: [{ key: 'records/lock/main', why: 'its record is 7' }],
      witness: { isFilling: true, damaged: ['lock/main'], at: NOW - 5_000 },
    });
    const screen = drawn(boardOf(state));
    expect(screen).toContain('NEEDS YOU  3');
    expect(screen).toMatch(/✗ damaged +lock\/main: what the witness recorded of it does not verify/);
    expect(screen).toMatch(/✗ unreadable +records\/lock\/main cannot be read: its record is 7/);
    expect(screen).toMatch(/◆ filling +The record of the witness is nearly full/);
  });

  it('shows an event once, however often the past is read', () => {
    const heard = new Heard();
    const queued = { type: 'lock:queued', resource: 'lock/x', holder: 'a', priority: 0 } as const;
    const published = { type: 'task:published', resource: 'task/t', holder: '' } as const;
    for (let times = 0; times < 2; times++) {
      heard.hear({ ...queued, at: NOW, id: '7.0' });
      heard.hear({ ...queued, holder: 'b', at: NOW, id: '7.1' });
      // Tasks have an order of their own.
      heard.hear({ ...published, at: NOW, id: '6.0' });
    }
    expect(heard.told(NOW).events.map(({ id }) => id)).toEqual(['6.0', '7.1', '7.0']);
  });

  it('says that all is well if nothing waits for a person', () => {
    expect(drawn(boardOf(everything({})))).toContain('NEEDS YOU  all clear');
  });

  it('calls a wait long only if it is also several times the usual for that lock', () => {
    const state = everything({ locks: [lock('slow', [hold('a')], [waiter('b', 1, { since: NOW - 100_000 })])] });
    expect(drawn(boardOf(state, { usualWaits: new Map([['lock/slow', 20_000]]) }))).toContain('long wait');
    expect(drawn(boardOf(state, { usualWaits: new Map([['lock/slow', 50_000]]) }))).not.toContain('long wait');
  });

  it('learns from events how long a wait usually takes', () => {
    const heard = new Heard();
    for (const [holder, ms] of Object.entries({ a: 1_000, b: 30_000, c: 2_000 })) {
      heard.hear({ type: 'lock:queued', resource: 'lock/x', holder, at: NOW, priority: 0 });
      heard.hear({ type: 'lock:acquired', resource: 'lock/x', holder, at: NOW + ms, token: 1, mode: 'exclusive' });
    }
    expect(heard.told(NOW).usualWaits.get('lock/x')).toBe(2_000);
  });

  it('says for how long the store has not answered, and does not count ages on', () => {
    const trouble = { since: NOW - 9_000, message: 'the store cannot be reached' };
    const screen = drawn(boardOf(much, { trouble }));
    expect(screen).toContain('! not live for 9s');
    expect(screen).toContain('the store cannot be reached');
  });

  const views: readonly Partial<Ui>[] = [
    ...(['overview', 'locks', 'semaphores', 'tasks', 'pipelines', 'members', 'events'] as const).map((view) => ({
      view,
    })),
    { mode: 'help' },
    { mode: 'filter', filter: HOSTILE },
    { mode: 'detail', about: 'lock/main' },
    { mode: 'detail', about: 'semaphore/builds' },
    { mode: 'detail', about: 'pipeline/release-7' },
    { mode: 'detail', about: 'task/ok' },
    { mode: 'detail', about: `task/${HOSTILE}` },
    { mode: 'break', breaking: { resource: 'lock/main', token: 41, step: 'token', reason: HOSTILE, typed: '4' } },
    { message: HOSTILE.repeat(9) },
  ];

  it('never has more lines than the screen, nor wider ones, whatever is in it', () => {
    for (const state of [much, everything({})]) {
      for (const ui of views) {
        for (const [width, height] of [
          [80, 24],
          [120, 40],
          [40, 12],
          [20, 5],
          [200, 60],
          [16, 4],
          [1, 1],
          [7, 3],
          [33, 7],
        ]) {
          const size = { width: width ?? 1, height: height ?? 1 };
          const { lines } = frameOf(boardOf(state), { ...FIRST_UI, ...ui }, { ...wide, ...size });
          const told = `${JSON.stringify(ui)} at ${width}x${height}`;
          expect(lines.length, told).toBeLessThanOrEqual(size.height);
          expect(Math.max(...lines.map(columnsOf)), told).toBeLessThanOrEqual(size.width);
        }
      }
    }
  });

  it('lets no control character through, and no escape but its own colours', () => {
    const paint = paintFor({ isTTY: true }, {});
    for (const ui of views) {
      const screen = drawn(boardOf(much), ui, { paint, width: 100 });
      expect(screen.replace(/\x1b\[(?:1|2|7|22|27|31|32|33|36|39)m/g, '')).not.toMatch(/[^\P{C}\n]/u);
      expect(withoutEscapes(screen)).toBe(drawn(boardOf(much), ui));
    }
  });

  it('shows without colours what is selected and what is lost', () => {
    const screen = drawn(boardOf(much), { view: 'locks', selected: { locks: 'lock/staging' } });
    expect(screen).toMatch(/▸✗ staging +agent:7 +process gone/);
  });

  it('keeps what is selected on the screen, and the other rows in their places', () => {
    const ui = { ...FIRST_UI, view: 'locks' as const, selected: { locks: 'lock/n50' } };
    const { lines, offset } = frameOf(boardOf(much), ui, { ...wide, height: 12 });
    expect(lines.join('\n')).toMatch(/▸■ n50/);
    const next = frameOf(
      boardOf(much),
      { ...ui, selected: { locks: 'lock/n48' }, offsets: { locks: offset } },
      { ...wide, height: 12 },
    );
    expect(next.offset).toBe(offset);
  });

  it('filters by any text in a row, and says how many are left', () => {
    const screen = drawn(boardOf(much), { view: 'locks', filter: 'HOTFIX' });
    expect(screen).toContain('LOCKS  1 of 64');
    expect(screen).toContain('main');
    expect(screen).not.toContain('staging');
  });

  it('writes only the lines that have changed', () => {
    expect(changesBetween(['a', 'b', 'c'], ['a', 'B', 'c'])).toBe('\x1b[2;1HB\x1b[K');
    expect(changesBetween(['a', 'b'], ['a', 'b'])).toBe('');
    expect(changesBetween(['a', 'b'], ['a'])).toBe('\x1b[2;1H\x1b[K');
  });

  it.each([
    [999, '0s'],
    [42_000, '42s'],
    [252_000, '4m 12s'],
    [11_220_000, '3h 07m'],
    [187_200_000, '2d 4h'],
  ])('tells %i ms as %s', (ms, told) => expect(age(ms)).toBe(told));
});

describe('the keys', () => {
  it('are read from what a terminal sends, several at once', () => {
    expect(keysIn('j\x1b[A\x1bOB\r\x1b[5~\x7f/é\x1b')).toEqual([
      ...['j', 'up', 'down', 'enter', 'page-up', 'backspace', '/', 'é', 'escape'],
    ]);
    expect(keysIn('\x1b[200~\x9b')).toEqual(['unknown', 'unknown']);
  });

  const board = boardOf(much);
  const press = (ui: Ui, ...keys: readonly string[]): Pressed => {
    let last: Pressed = { ui };
    for (const key of keys) {
      const { sections, page, length } = frameOf(board, last.ui, wide);
      last = pressed(last.ui, key, { sections, page, length, tokenOf: (of) => (of === 'lock/main' ? 41 : undefined) });
    }
    return last;
  };

  it('choose views and rows', () => {
    const { ui } = press(FIRST_UI, '2', 'j', 'j', 'k');
    expect([ui.view, ui.selected.locks]).toEqual(['locks', 'lock/evil']);
    expect(press(ui, 'G').ui.selected.locks).toBe('lock/n59');
    expect(press(ui, 'G', 'g').ui.selected.locks).toBe('lock/main');
    expect(press(FIRST_UI, 'tab', 'right', 'back-tab').ui.view).toBe('locks');
  });

  it('open the page of a row, and lead back', () => {
    const { ui } = press(FIRST_UI, '2', 'enter');
    expect(ui).toMatchObject({ mode: 'detail', about: 'lock/main' });
    expect(drawn(board, ui)).toMatch(/lock\/main +worker:1/);
    expect(press(ui, 'escape').ui.mode).toBe('list');
  });

  it('filter while they are typed; esc clears the filter', () => {
    const { ui } = press(FIRST_UI, '/', 'm', 'a', 'x', 'backspace', 'enter');
    expect(ui).toMatchObject({ mode: 'list', filter: 'ma' });
    expect(press(ui, 'escape').ui.filter).toBe('');
  });

  it('break only with a reason and with the token, typed', () => {
    const { ui } = press(FIRST_UI, '2', 'b');
    expect(drawn(board, ui)).toMatch(
      /Break lock\/main\?[^]*worker:1 loses it, held for 4m 12s, token 41: merging change 42[^]*agent:9 is the next to get it/,
    );
    expect(press(ui, 'enter').ui.message).toContain('A reason is needed');
    const reason = press(ui, ...'gone', 'enter').ui;
    const wrong = press(reason, '4', '2', 'enter');
    expect(wrong.deed).toBeUndefined();
    expect(wrong.ui.message).toContain('type 41');
    expect(press(reason, '4', '1', 'enter').deed).toEqual({
      kind: 'break',
      resource: 'lock/main',
      token: 41,
      reason: 'gone',
    });
    expect(press(reason, 'escape').ui).toMatchObject({ mode: 'list', message: 'Nothing was broken.' });
  });

  it('break nothing that is not held, and nothing but locks and semaphores', () => {
    expect(press({ ...FIRST_UI, view: 'tasks' }, 'b').ui.message).toContain('Only locks and semaphores');
    expect(press({ ...FIRST_UI, view: 'semaphores' }, 'b').ui.message).toContain('is not held');
  });

  it('end it', () => {
    expect(press(FIRST_UI, 'q').deed).toEqual({ kind: 'quit' });
    expect(press(FIRST_UI, '/', 'ctrl-c').deed).toEqual({ kind: 'interrupt' });
  });
});
