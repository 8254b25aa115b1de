import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { SignalboxEvent } from 'signalbox';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

const CROWDS = { file: { SHELLS: 16, RUNS: 25 }, etcd: { SHELLS: 8, RUNS: 8 } };

/** Reads, sleeps and writes: without exclusion, most of what others add meanwhile would be lost. */
const INCREMENT = 'n=$(cat count); sleep 0.005; echo $((n + 1)) > count; echo "$SIGNALBOX_TOKEN" >> tokens';

let place: Place;

beforeAll(built);

afterEach(() => place.leave());

describe.each(stores)('many shells on one lock, on $on', ({ kind }) => {
  const { SHELLS, RUNS } = CROWDS[kind];
  const newStore = newStoreOf(kind);
  beforeEach(() => {
    place = new Place(newStore);
  });

  it('lose no update, and are served in the order in which they came', async () => {
    writeFileSync(place.path('count'), '0\n');
    const box = await place.open();
    const events: SignalboxEvent[] = [];
    const subscription = await box.on('lock:*', (event) => void events.push(event));
    const loop = `for i in $(seq ${RUNS}); do "$NODE" "$ENTRY" run --lock counter -- sh -c '${INCREMENT}' || exit 1; done`;
    const shells = Array.from({ length: SHELLS }, () => place.start('bash', ['-c', loop], { stdin: '' }));
    for (const { ended } of shells) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect(place.read('count').trim()).toBe(String(SHELLS * RUNS));

    const tokens = place.read('tokens').trim().split('\n').map(Number);
    expect(tokens).toHaveLength(SHELLS * RUNS);
    expect(tokens).toEqual([...tokens].sort((one, other) => one - other));
    expect(new Set(tokens).size).toBe(tokens.length);

    await expect.poll(() => events.filter(({ type }) => type === 'lock:acquired').length).toBe(SHELLS * RUNS);
    subscription.unsubscribe();
    expect(events.filter(({ type }) => type === 'resync')).toEqual([]);
    // Whoever had to wait is granted in the order in which the store has seen them come.
    const holdersOf = (wanted: string): unknown[] =>
      events.filter(({ type }) => type === wanted).map((event) => (event as { holder?: string }).holder);
    const queued = holdersOf('lock:queued');
    const served = holdersOf('lock:acquired').filter((holder) => queued.includes(holder));
    expect(queued.length).toBeGreaterThan(SHELLS);
    expect(served).toEqual(queued);
  });
});

describe('worktrees of one repository', () => {
  beforeEach(() => {
    place = new Place();
  });

  it('share one lock, so that a merge in one waits for a merge in the other', async () => {
    const git = (directory: string, ...args: string[]): void => {
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: directory });
    };
    const main = place.path('main');
    mkdirSync(main);
    git(main, 'init', '--quiet', '.');
    git(main, 'commit', '--quiet', '--allow-empty', '-m', 'first');
    git(main, 'worktree', 'add', '--quiet', place.path('agent'), '-b', 'agent');
    const environment = { SIGNALBOX_URL: undefined };
    const inMain = place.start(
      'sh',
      ['-c', 'cd main && exec "$NODE" "$ENTRY" run --lock merge -- sh -c "echo in; cat"'],
      {
        env: environment,
      },
    );
    await inMain.prints(/^in$/m);
    const refused = place.start('sh', ['-c', 'cd agent && exec "$NODE" "$ENTRY" run --no-wait --lock merge -- true'], {
      stdin: '',
      env: environment,
    });
    expect(await refused.ended).toMatchObject({ code: 75 });
    inMain.endInput();
    expect(await inMain.ended).toMatchObject({ code: 0 });
    const allowed = place.start('sh', ['-c', 'cd agent && exec "$NODE" "$ENTRY" run --no-wait --lock merge -- true'], {
      stdin: '',
      env: environment,
    });
    expect(await allowed.ended).toMatchObject({ code: 0 });
  });
});
