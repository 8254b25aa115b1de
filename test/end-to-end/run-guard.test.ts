// `run --guard`: the guard is checked while the locks are held, so that what it saw is still true when the command begins.

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pauseBeforeWaitMs } from '../../src/cli/run/guarding.ts';
import { CLI, type Ended, Scratch, start } from '../support/cli.ts';
import { Repository } from '../support/repository.ts';
import { built } from '../support/run-processes.ts';

beforeAll(() => built());

describe('run --guard', () => {
  const scratch = new Scratch();
  afterAll(() => scratch.remove());
  const file = (name: string, text = ''): void => writeFileSync(scratch.path(name), text);

  it('does not begin while the guard does not pass: 75, with every reason, and nothing held', async () => {
    file('FREEZE');
    const condition = 'all: [{fileNotExists: FREEZE}, {fileExists: missing}]';
    const ended = await scratch.run('run', '--lock', 'a', '--guard', condition, '--no-wait', '--', 'touch', 'began');
    expect(ended).toEqual({
      code: 75,
      stdout: '',
      stderr: `signalbox: the command was not started: guard "${condition}" does not pass:\n  file "FREEZE" exists\n  file "missing" does not exist\n`,
    });
    expect(existsSync(scratch.path('began'))).toBe(false);
    expect((await scratch.run('run', '--lock', 'a', '--no-wait', '--', 'true')).code).toBe(0);
  });

  it('holds nothing while it waits, and begins when the guard passes', async () => {
    file('WAIT');
    const waits = scratch.start(
      'run',
      '-v',
      '--lock',
      'b',
      '--poll',
      '50ms',
      '--guard',
      'fileNotExists: WAIT',
      '--',
      'echo',
      'go',
    );
    await waits.complained('signalbox: waiting for guard "fileNotExists: WAIT"; file "WAIT" exists\n');
    expect((await scratch.run('run', '--lock', 'b', '--wait', '60s', '--', 'rm', 'WAIT')).code).toBe(0);
    expect(await waits.ended).toMatchObject({ code: 0, stdout: 'go\n' });
  });

  it('is checked once the lock is held: what the holder before has done counts', async () => {
    file('closed.yaml', 'id: open\ncondition: {fileNotExists: CLOSED}\nonFailure: {fail: it is closed}\n');
    const closes = 'echo on; until test -f close; do sleep 0.05; done; touch CLOSED';
    const first = scratch.start('run', '--lock', 'c', '--', 'sh', '-c', closes);
    await first.printed('on');
    const second = scratch.start('run', '-v', '--lock', 'c', '--guard', 'closed.yaml', '--', 'touch', 'second');
    await second.complained('waiting for lock/c');
    file('close');
    expect((await first.ended).code).toBe(0);
    expect(await second.ended).toMatchObject({ code: 75, stderr: expect.stringContaining('it is closed') as string });
    expect(existsSync(scratch.path('second'))).toBe(false);
  });

  it('does not count what the run itself holds; nor does guard check inside of it', async () => {
    const free = 'all: [{lockFree: d}, {not: {lockHeld: d}}]';
    const inside = ['run', '--lock', 'e', '--guard', 'lockFree: d', '--', process.execPath];
    expect((await scratch.run('run', '--lock', 'd', '--no-wait', '--guard', free, '--', 'true')).code).toBe(0);
    const check = `${process.execPath} ${CLI} guard check -e '${free}'`;
    const nested = `${process.execPath} ${CLI} ${inside.slice(0, -1).join(' ').replace('lockFree: d', '"lockFree: d"')} ${check}`;
    expect(await scratch.run('run', '--lock', 'd', '--', 'sh', '-c', nested)).toMatchObject({ code: 0 });
  });

  it('runs its commands only if everything else passes, and under the lock: they may use it', async () => {
    const cmd = `echo >> ran; ${process.execPath} ${CLI} run --lock f --no-wait -- true`;
    const guard = JSON.stringify({ all: [{ fileExists: 'ready' }, { command: { cmd } }] });
    const run = (): Promise<Ended> =>
      scratch.run('run', '--lock', 'f', '--no-wait', '--guard', guard, '--', 'echo', 'go');
    expect((await run()).code).toBe(75);
    expect(existsSync(scratch.path('ran'))).toBe(false);
    file('ready');
    expect(await run()).toMatchObject({ code: 0, stdout: 'go\n' });
    expect(readFileSync(scratch.path('ran'), 'utf8')).toBe('\n');
  });

  it('pauses longer and longer while the guard passes without the locks and fails under them', async () => {
    const guard = JSON.stringify({ command: { cmd: 'echo >> tried; test -z "$SIGNALBOX_HOLDER"' } });
    const ended = await scratch.run('run', '--lock', 'i', '--wait', '8s', '--guard', guard, '--', 'touch', 'began');
    expect(ended).toMatchObject({ code: 75, stdout: '' });
    // The first try is made under the lock, and two more follow each pause that fits into the wait, the first of them without
    // the lock. A slow machine makes fewer; none can make more, unless the pauses do not grow.
    const tries = readFileSync(scratch.path('tried'), 'utf8').length;
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThanOrEqual(1 + 2 * pausesWithin(8000));
  });

  it('says what is wrong with a guard before anything is acquired', async () => {
    const wrong = await scratch.run('run', '--lock', 'g', '--guard', 'lockFre: x', '--', 'true');
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining('lockFree') as string });
    expect((await scratch.run('run', '--guard', 'lockFree: x', '--', 'true')).stderr).toContain('add --lock NAME');
    expect((await scratch.run('run', '--lock', 'g', '--guard', 'no-such.yaml', '--', 'true')).code).toBe(64);
    const blind = await scratch.run('run', '--lock', 'g', '--guard', 'branchExists: x', '--no-wait', '--', 'true');
    expect(blind.code).toBe(69);
  });

  it('goes on with a warning where the guard says so', async () => {
    file('warn.yaml', 'id: nice\ncondition: {fileExists: nothing}\nonFailure: warn\n');
    expect(await scratch.run('run', '--lock', 'h', '--guard', 'warn.yaml', '--', 'echo', 'go')).toMatchObject({
      code: 0,
      stdout: 'go\n',
      stderr: 'signalbox: warning: guard "nice" does not pass: file "nothing" does not exist\n',
    });
  });
});

/** How many pauses of a run that waits for its guard again and again are over after so long, at most. */
function pausesWithin(waitMs: number): number {
  let count = 0;
  for (let overMs = 0; overMs < waitMs; overMs += pauseBeforeWaitMs(count)) count += 1;
  return count;
}

describe('sixteen shells that land their branches under one lock', () => {
  const SHELLS = 16;
  const ROOM = 9;
  const repo = new Repository();
  afterAll(() => repo.remove());

  /** Merges the branch with what is pushed, without a worktree, and tests the result; prints the merge if it is green. */
  const MERGED = `#!/bin/sh
set -e
base=$(git -C "$ORIGIN" rev-parse main)
git fetch -q "$ORIGIN" main
tree=$(git merge-tree --write-tree "$base" "$1")
test "$(git ls-tree --name-only "$tree" parts/ | wc -l)" -le ${ROOM}
echo "$tree" >> "$TESTED"
`;
  const LAND = `#!/bin/sh
set -e
base=$(git -C "$ORIGIN" rev-parse main)
tree=$(git merge-tree --write-tree "$base" "$1")
commit=$(git commit-tree -p "$base" -p "$1" -m "merge $1" "$tree")
git push -q "$ORIGIN" "$commit:main"
`;

  it('push nothing but merges that were tested as they are, and no red one', async () => {
    const origin = join(repo.folder, 'origin');
    repo.git('init', '-q', '--bare', '-b', 'main', origin);
    repo.git('push', '-q', origin, 'main');
    const tested = join(repo.folder, 'tested');
    const program = (name: string, text: string): string => {
      const path = join(repo.folder, name);
      writeFileSync(path, text);
      chmodSync(path, 0o755);
      return path;
    };
    const [green, land] = [program('green.sh', MERGED), program('land.sh', LAND)];
    // Each branch alone is green; nine of them together are, ten are not.
    const branches = Array.from({ length: SHELLS }, (_, at) => `part-${at}`);
    mkdirSync(join(repo.root, 'parts'));
    for (const branch of branches) {
      repo.git('checkout', '-q', '-b', branch, 'main');
      repo.commit(`parts/${branch}`);
    }
    const env = { ...repo.env, ORIGIN: origin, TESTED: tested, SIGNALBOX_URL: undefined };
    const ended = await Promise.all(
      branches.map((branch) => {
        const guard = JSON.stringify({
          id: 'green',
          condition: { command: { cmd: [green, branch] } },
          onFailure: { fail: 'the merge is red' },
        });
        return start(['run', '-q', '--lock', 'main', '--guard', guard, '--', land, branch], { env, cwd: repo.root })
          .ended;
      }),
    );
    const landed = ended.filter(({ code }) => code === 0);
    const refused = ended.filter(({ code }) => code === 75);
    expect(
      ended.map(({ stderr }) => stderr).filter((text) => text !== '' && !text.includes('the merge is red')),
    ).toEqual([]);
    expect([landed.length, refused.length]).toEqual([ROOM, SHELLS - ROOM]);
    const pushed = repo.gitIn(origin, 'log', '--first-parent', '--format=%T', 'main').trim().split('\n');
    expect(pushed).toHaveLength(ROOM + 1);
    // The first is what was there before.
    const greenTrees = readFileSync(tested, 'utf8').trim().split('\n');
    expect(pushed.slice(0, -1).filter((tree) => !greenTrees.includes(tree))).toEqual([]);
    expect(repo.gitIn(origin, 'ls-tree', '--name-only', 'main', 'parts/').trim().split('\n')).toHaveLength(ROOM);
  });
});
