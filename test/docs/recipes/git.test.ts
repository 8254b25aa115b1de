// docs/shell.md: merges, pushes and worktrees, in real repositories.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built } from '../../support/run-processes.ts';
import { mostAtOnce, Workshop } from './workshop.ts';

const AGENTS = ['ada', 'ben', 'cy', 'dot', 'eve'];
const TESTING = 'echo "begin $PWD" >> "$LOG"; sleep 0.05; echo "end $PWD" >> "$LOG"';
/** Tests end when all agents are at them: so all have rebased before anybody goes on. */
const TOGETHER = `echo "begin $PWD" >> "$LOG"
for _ in $(seq 10000); do [ "$(grep -c begin "$LOG")" -ge ${AGENTS.length} ] && break; sleep 0.02; done`;

describe('the recipes for git', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
    shop.git('.', 'init', '--quiet', '--bare', '--initial-branch=main', 'origin.git');
    shop.git('.', 'init', '--quiet', '--initial-branch=main', 'app');
    shop.git('app', 'remote', 'add', 'origin', '../origin.git');
    shop.commit('app', 'first');
    shop.git('app', 'push', '--quiet', '--set-upstream', 'origin', 'main');
  });
  afterEach(() => shop.leave());

  /** The default store, in git's own directory. */
  const inRepository = { SIGNALBOX_URL: undefined };
  const worktrees = (): void => {
    for (const agent of AGENTS) {
      shop.git('app', 'worktree', 'add', '--quiet', '-b', agent, `../${agent}`);
      shop.commit(agent, agent);
    }
  };
  const landed = (directory: string): readonly string[] =>
    shop.git(directory, 'log', '--format=%s', 'main').split('\n');
  const expectAllLanded = (directory: string): void => {
    expect([...landed(directory)].sort()).toEqual([...AGENTS, 'first'].sort());
    expect(shop.git(directory, 'rev-list', '--merges', '--count', 'main')).toBe('0');
    expect(shop.git(directory, 'ls-tree', '--name-only', 'main').split('\n')).toEqual([...AGENTS, 'first'].sort());
  };

  it('push as usual, and end as the push ended', async () => {
    shop.commit('app', 'second');
    expect(await shop.try('first', { in: 'app', env: inRepository }).ended).toMatchObject({ code: 0 });
    expect(landed('origin.git')).toEqual(['second', 'first']);
    shop.git('app', 'reset', '--quiet', '--hard', 'HEAD~1');
    shop.commit('app', 'another second');
    expect(await shop.try('first', { in: 'app', env: inRepository }).ended).toMatchObject({ code: 1 });
  });

  it('land every branch by push, one after the other, and nobody is rejected', async () => {
    worktrees();
    shop.standIn('make', TESTING);
    const agents = AGENTS.map((agent) => shop.try('land-by-push', { in: agent, env: inRepository }));
    for (const { ended } of agents) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expectAllLanded('origin.git');
    expect(mostAtOnce(shop.log)).toBe(1);
    expect(shop.log).toHaveLength(2 * AGENTS.length);
  });

  it('land by push, where without the lock all but one are rejected', async () => {
    worktrees();
    shop.standIn('make', TOGETHER);
    const env = { ...inRepository, ...shop.withoutLocks() };
    const agents = AGENTS.map((agent) => shop.try('land-by-push', { in: agent, env }));
    const rejected = (await Promise.all(agents.map(({ ended }) => ended))).filter(({ code }) => code !== 0);
    expect(rejected).toHaveLength(AGENTS.length - 1);
    for (const { stderr } of rejected) expect(stderr).toContain('failed to push');
    expect(landed('origin.git')).toHaveLength(2);
  });

  it('leave a worktree as it was if there is a conflict, and not in the middle of a rebase', async () => {
    worktrees();
    shop.standIn('make', 'true');
    shop.write('app/ada', 'another');
    shop.git('app', 'add', 'ada');
    shop.git('app', 'commit', '--quiet', '-m', 'in the way');
    shop.git('app', 'push', '--quiet', 'origin', 'main');
    const before = shop.git('ada', 'rev-parse', 'HEAD');
    for (const recipe of ['land-by-push', 'land-locally']) {
      const { code } = await shop.try(recipe, { in: 'ada', env: inRepository }).ended;
      expect(code).toBe(1);
      expect([shop.git('ada', 'status', '--porcelain'), shop.git('ada', 'branch', '--show-current')]).toEqual([
        '',
        'ada',
      ]);
      expect(shop.git('ada', 'rev-parse', 'HEAD')).toBe(before);
    }
    expect(await shop.try('land-by-push', { in: 'ben', env: inRepository }).ended).toMatchObject({ code: 0 });
  });

  it('push only what a guard allows, and wait for it without the lock', async () => {
    shop.keep('before-push.yaml', 'app/before-push.yaml');
    shop.git('app', 'add', 'before-push.yaml');
    shop.git('app', 'commit', '--quiet', '-m', 'a guard');
    shop.write('app/.git/info/exclude', 'FREEZE\n');
    shop.write('app/FREEZE', '');
    shop.standIn('make', 'echo "$1" >> "$LOG"');
    const push = shop.try('guarded-push', { in: 'app', env: inRepository });
    const thaw = 'signalbox run --lock main-branch -- rm FREEZE';
    expect(await shop.shell(thaw, { in: 'app', env: inRepository }).ended).toMatchObject({ code: 0 });
    expect(await push.ended).toMatchObject({ code: 0, stderr: '' });
    expect(landed('origin.git')).toEqual(['a guard', 'first']);
    expect(shop.log.length, 'commands run once everything else passes').toBeGreaterThan(0);
  });

  it('land nothing that failed its tests, and let the next one go on', async () => {
    worktrees();
    shop.standIn('make', '[ "${PWD##*/}" != ada ]');
    expect(await shop.try('land-by-push', { in: 'ada', env: inRepository }).ended).toMatchObject({ code: 1 });
    expect(await shop.try('land-by-push', { in: 'ben', env: inRepository }).ended).toMatchObject({ code: 0 });
    expect(landed('origin.git')).toEqual(['ben', 'first']);
  });

  it('land every branch on a main that is checked out beside them', async () => {
    worktrees();
    shop.standIn('make', TESTING);
    const agents = AGENTS.map((agent) => shop.try('land-locally', { in: agent, env: inRepository }));
    for (const { ended } of agents) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expectAllLanded('app');
    expect(shop.git('app', 'status', '--porcelain')).toBe('');
    expect(mostAtOnce(shop.log)).toBe(1);
  });

  it('take a lock again that the script around them has', async () => {
    shop.standIn('make', 'echo "$1 $SIGNALBOX_TOKEN_MAIN_BRANCH" >> "$LOG"; git commit --quiet --allow-empty -m "$1"');
    expect(await shop.try('nested', { in: 'app', env: inRepository }).ended).toMatchObject({ code: 0, stderr: '' });
    expect(landed('origin.git')).toEqual(['changelog', 'first']);
    expect(shop.log).toEqual([expect.stringMatching(/^changelog \d+$/)]);
  });

  it('let nobody push to main but by the alias, which holds the lock', async () => {
    worktrees();
    expect(await shop.try('alias', { in: 'app' }).ended).toMatchObject({ code: 0 });
    shop.keep('pre-push', 'app/.git/hooks/pre-push');
    const past = await shop.shell('git push origin HEAD:main', { in: 'ada', env: inRepository }).ended;
    expect(past.code).toBe(1);
    expect(past.stderr).toContain('main is pushed to with: git land');
    expect((await shop.shell('git push origin HEAD:review', { in: 'ada', env: inRepository }).ended).code).toBe(0);

    const agents = AGENTS.map((agent) => shop.shell('git land', { in: agent, env: inRepository }));
    for (const { ended } of agents) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expectAllLanded('origin.git');
  });
});
