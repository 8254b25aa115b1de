// docs/agents.md: three agents in three worktrees of a real repository, as it is printed.

import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built } from '../../support/run-processes.ts';
import { killAll, mostAtOnce, processesWith, Workshop } from './workshop.ts';

const AGENTS = ['ada', 'ben', 'cy'];
/** Until another one has begun too, and long enough for the third to begin beside them, if it may. */
const WORKING = `echo "begin work $1" >> "$LOG"
until [ "$(grep -c 'begin work' "$LOG")" -ge 2 ]; do sleep 0.02; done
sleep 0.3; echo "$1" > "$1.txt"; echo "end work $1" >> "$LOG"`;
/** The git that merges tells when. */
const GIT = `case " $* " in
  *" merge "*) echo "begin merge $PWD" >> "$LOG"; /usr/bin/git "$@"; echo "end merge $PWD" >> "$LOG" ;;
  *) exec /usr/bin/git "$@" ;;
esac`;

interface Listed {
  readonly pipeline: string;
  readonly state: string;
  readonly phase: string | null;
}

describe('three agents in one repository', () => {
  let shop: Workshop;
  /** The default store, in git's own directory. */
  const env = { SIGNALBOX_URL: undefined };
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
    shop.git('.', 'init', '--quiet', '--initial-branch=main', 'app');
    shop.keep('agent.yaml', 'app/agent.yaml');
    shop.keep('issues.json', 'app/issues.json');
    shop.standIn('app/plan.sh', 'echo "$1 does its part"');
    shop.standIn('app/work.sh', WORKING);
    shop.standIn('app/test.sh', 'test ! -e red');
    shop.git('app', 'add', 'agent.yaml', 'plan.sh', 'work.sh', 'test.sh');
    shop.git('app', 'commit', '--quiet', '-m', 'first');
  });
  afterEach(() => shop.leave());

  const list = async (): Promise<readonly Listed[]> => {
    const { stdout } = await shop.shell('signalbox pipeline list --json', { in: 'app', env }).ended;
    return (JSON.parse(stdout) as { pipelines: readonly Listed[] }).pipelines;
  };
  it('plan at once, work two at a time, wait for the issue, and merge one after the other', async () => {
    expect(await shop.try('agents-worktrees', { in: 'app', env }).ended).toMatchObject({ code: 0 });
    shop.standIn('git', GIT);
    const going = shop.try('agents-go', { in: 'app', env });
    await going.prints(/(merge: blocked[^]*){3}/);
    expect(await list()).toMatchObject(AGENTS.map(() => ({ state: 'blocked', phase: 'merge' })));
    expect(shop.git('app', 'log', '--format=%s', 'main')).toBe('first');

    const look = await shop.try('agents-look', { in: 'app', env }).ended;
    expect(look).toMatchObject({ code: 0, stderr: '' });
    expect(look.stdout).toContain('12 (in-progress)');
    expect(look.stdout).toContain('pipeline:ada');

    expect(await shop.try('agents-close', { in: 'app', env }).ended).toMatchObject({ code: 0 });
    expect(await going.ended).toMatchObject({ code: 0 });
    const landed = shop.git('app', 'log', '--no-merges', '--format=%s', 'main').split('\n');
    expect([...landed].sort()).toEqual(['first', ...AGENTS].sort());
    expect(mostAtOnce(shop.log.filter((line) => line.includes(' work ')))).toBe(2);
    expect(mostAtOnce(shop.log.filter((line) => line.includes(' merge ')))).toBe(1);
    expect((await list()).map(({ state }) => state)).toEqual(['done', 'done', 'done']);
  });

  it('keep a merge out whose tests are red, and let the others merge', async () => {
    await shop.try('agents-worktrees', { in: 'app', env }).ended;
    await shop.try('agents-close', { in: 'app', env }).ended;
    // Ignored, so that the branch is clean all the same.
    shop.write('app/.git/info/exclude', 'red\n');
    shop.write('ben/red', '');
    const going = shop.try('agents-go', { in: 'app', env });
    await going.prints(/(pipeline\/\w+: done[^]*){2}/);
    expect(shop.git('app', 'log', '--format=%s', 'main').split('\n')).not.toContain('ben');
    await going.ended;
    expect((await list()).find(({ pipeline }) => pipeline === 'ben')).toMatchObject({ state: 'failed' });
    shop.git('ben', 'clean', '-fxq', 'red');
    expect(await shop.try('agents-again', { in: 'app', env }).ended).toMatchObject({ code: 0 });
    expect(shop.git('app', 'log', '--format=%s', 'main').split('\n')).toContain('ben');
  });

  it('are resumed after a kill -9, and nothing is done twice', async () => {
    await shop.try('agents-worktrees', { in: 'app', env }).ended;
    await shop.try('agents-close', { in: 'app', env }).ended;
    shop.standIn('ben/work.sh', 'echo "begin work $1" >> "$LOG"; exec sleep 600');
    shop.git('ben', 'commit', '--quiet', '-a', '-m', 'a work that takes long');
    const going = shop.try('agents-go', { in: 'app', env });
    await going.prints(/(pipeline\/\w+: done[^]*){2}/);
    // Its machine goes down: the driver, and what it started.
    const ours = processesWith(`LOG=${shop.place.path('log')}`);
    const ofBen = ours.filter((pid) => isChildOf(pid, 'ben') || isDriverOf(pid, 'ben'));
    killAll(ofBen);
    await going.ended;

    const resumed = await shop.try('agents-resume', { in: 'app', env }).ended;
    expect(resumed.code).toBe(75);
    expect(resumed.stderr + resumed.stdout).toMatch(/--rerun/);
    expect(shop.log.filter((line) => line === 'begin work ben')).toHaveLength(1);
    shop.standIn('ben/work.sh', WORKING);
    const rerun = await shop.shell('signalbox pipeline resume ben --rerun', { in: 'app', env }).ended;
    expect(rerun).toMatchObject({ code: 0 });
    expect(shop.git('app', 'log', '--format=%s', 'main').split('\n')).toContain('ben');
  });
});

function isChildOf(pid: number, pipeline: string): boolean {
  return read(pid, 'environ').includes(`SIGNALBOX_PIPELINE=${pipeline}`);
}

function isDriverOf(pid: number, pipeline: string): boolean {
  const words = read(pid, 'cmdline').split('\0');
  return words.includes('pipeline') && words.includes('--id') && words.includes(pipeline);
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
