// docs/shell.md: deploys, jobs, readers and writers, several things at once.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, type Started } from '../../support/run-processes.ts';
import { recipe, shapeOf } from './page.ts';
import { mostAtOnce, Workshop } from './workshop.ts';

/** At work until the test says that it is done. */
const AT_WORK = 'echo "begin ${0##*/}" >> "$LOG"; echo at work; read -r _; echo "end ${0##*/}" >> "$LOG"';

describe('the recipes for locks', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
  });
  afterEach(() => shop.leave());

  const atWork = async (started: Started): Promise<Started> => {
    await started.prints(/at work/);
    return started;
  };
  const done = async (started: Started): Promise<void> => {
    started.write('done\n');
    expect(await started.ended).toMatchObject({ code: 0 });
  };
  const waiting = async (lock: string, count: number): Promise<void> => {
    const box = await shop.place.open();
    await expect.poll(async () => (await box.lock(lock).inspect()).waiting.length).toBe(count);
  };

  it('deploy once at a time: the second one learns who deploys and why, and does nothing', async () => {
    shop.standIn('./deploy.sh', AT_WORK);
    const first = await atWork(shop.try('deploy', { env: { VERSION: '7.2' }, stdin: 'open' }));
    const second = await shop.try('deploy', { env: { VERSION: '7.3' } }).ended;
    expect(second).toMatchObject({ code: 75, stdout: '' });
    expect(shapeOf(second.stderr)).toBe(shapeOf(recipe('deploy').shows[0] ?? ''));
    await done(first);
    expect(first.stdout).toContain('deployed 7.2');
    expect(shop.log).toEqual(['begin deploy.sh', 'end deploy.sh']);
  });

  it('tell a deploy that failed from one that was not let in or lost its lock', async () => {
    shop.standIn('./deploy.sh', 'exit 3');
    const failed = await shop.try('deploy', { env: { VERSION: '7.2' } }).ended;
    expect(failed).toMatchObject({ code: 3, stderr: 'deploy.sh failed (3)\n' });

    shop.standIn('./deploy.sh', AT_WORK);
    const robbed = await atWork(shop.try('deploy', { env: { VERSION: '7.2' }, stdin: 'open' }));
    await shop.shell('signalbox lock break deploy-production --reason "a test"').ended;
    expect(await robbed.ended).toMatchObject({ code: 76 });
    expect(robbed.stderr).toContain('the lock was taken away meanwhile');
  });

  it('deploy after the one that deploys, and tell for whom they wait', async () => {
    shop.standIn('./deploy.sh', AT_WORK);
    const first = await atWork(shop.try('deploy', { env: { VERSION: '7.2' }, stdin: 'open' }));
    const late = await shop.try('deploy-later', { env: { VERSION: '7.3' }, with: { '10m': '10ms' } }).ended;
    expect(late.code).toBe(75);
    const second = shop.try('deploy-later', { env: { VERSION: '7.3' }, stdin: 'open' });
    const [line] = await second.prints(/.*next in line.*/, 'stderr');
    expect(shapeOf(line)).toBe(shapeOf(recipe('deploy-later').shows[0] ?? ''));
    await done(first);
    await done(await atWork(second));
    expect(mostAtOnce(shop.log)).toBe(1);
  });

  it('deploy from a CI step as from everywhere else', async () => {
    shop.standIn('./deploy.sh', AT_WORK);
    const [, step = ''] = /run: >\n((?: {10}.*\n)+)/.exec(shop.text('actions')) ?? [];
    const command = step.trim().replace(/\n +/g, ' ');
    expect(shop.text('actions')).toContain('SIGNALBOX_URL: file:');
    const env = { GITHUB_REPOSITORY: 'acme/app', GITHUB_RUN_ID: '42' };
    const first = await atWork(shop.shell(`set -eo pipefail; ${command}`, { env, stdin: 'open' }));
    const second = shop.shell(`set -eo pipefail; ${command}`, { env, stdin: 'open' });
    await second.prints(/held by run:\S+ \(acme\/app, run 42\)/, 'stderr');
    await done(first);
    await done(await atWork(second));
  });

  it('leave out a cron job that still runs, silently, and pass on how it failed otherwise', async () => {
    shop.standIn('./srv/sync.sh', AT_WORK);
    const here = { '/var/lib/app': '$HOME/lib', '/srv/app': '$HOME/srv', '/var/log': '$HOME' };
    const lines = shop.text('cron', here).trim().split('\n');
    const [, job = ''] = /^(?:\S+ +){5}(.*)$/.exec(lines.at(-1) ?? '') ?? [];
    const [url = ''] = lines.filter((line) => line.startsWith('SIGNALBOX_URL='));
    // As cron does it: by sh, with hardly anything in the environment.
    const cron = `env -i HOME="$HOME" PATH="$PATH" LOG="$LOG" ${url} sh -c '${job}'`;
    const first = await atWork(shop.shell(cron, { stdin: 'open' }));
    expect(await shop.shell(cron).ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(shop.place.read('sync.log')).toMatch(/lock\/sync: held by/);
    await done(first);
    shop.standIn('./srv/sync.sh', 'echo broken >&2; exit 7');
    // `[` answers for every code but 75.
    expect(await shop.shell(cron).ended).toMatchObject({ code: 1 });
    expect(shop.place.read('sync.log')).toContain('broken');
  });

  it('run reports side by side, and a migration alone and before the reports that came later', async () => {
    shop.standIn('./report.sh', AT_WORK);
    shop.standIn('./migrate.sh', AT_WORK);
    const reports = [shop.try('report', { stdin: 'open' }), shop.try('report', { stdin: 'open' })];
    for (const report of reports) await atWork(report);
    const migration = shop.try('migrate', { stdin: 'open' });
    await waiting('database', 1);
    const later = shop.try('report', { stdin: 'open' });
    await waiting('database', 2);
    for (const report of reports) await done(report);
    await done(await atWork(migration));
    await done(await atWork(later));
    const [side, alone] = [shop.log.slice(0, 4), shop.log.slice(4)];
    expect(mostAtOnce(side)).toBe(2);
    expect(alone).toEqual(['begin migrate.sh', 'end migrate.sh', 'begin report.sh', 'end report.sh']);
  });

  it('come to an end although each of two scripts holds what the other one wants inside', async () => {
    shop.standIn('./meet', 'echo "$1" >> "$LOG"; until [ "$(grep -c . "$LOG")" -ge 2 ]; do sleep 0.02; done');
    const script = (outer: string, inner: string): Started =>
      shop.shell(`signalbox run --lock ${outer} -- bash -c './meet ${outer}; signalbox run --lock ${inner} -- true'`);
    const ended = await Promise.all([script('a', 'b').ended, script('b', 'a').ended]);
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 75]);
    expect(ended.map(({ stderr }) => stderr).join('')).toContain('deadlock');
  });

  it('begin when they have all that they named, and hold nothing after a refusal', async () => {
    shop.standIn('./rebuild.sh', 'echo "begin rebuild" >> "$LOG"; sleep 0.05; echo "end rebuild" >> "$LOG"');
    const others = 'signalbox run --sem builds/3 --lock cache --lock database -- ./rebuild.sh';
    const many = [1, 2, 3].flatMap(() => [shop.try('several'), shop.shell(others)]);
    for (const { ended } of many) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect([shop.log.length, mostAtOnce(shop.log)]).toEqual([12, 1]);

    shop.standIn('./work', AT_WORK);
    const busy = await atWork(shop.shell('signalbox run --lock database -- ./work', { stdin: 'open' }));
    const atOnce = { 'signalbox run': 'signalbox run --no-wait' };
    expect((await shop.try('several', { with: atOnce }).ended).code).toBe(75);
    const box = await shop.place.open();
    expect(await box.lock('cache').isFree()).toBe(true);
    await done(busy);
  });
});
