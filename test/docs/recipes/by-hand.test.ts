// docs/shell.md: holds over several steps, and tokens that what is protected looks at.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, exitCodeFor } from '../../support/run-processes.ts';
import { Workshop } from './workshop.ts';

describe('the recipes for holds over several steps', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
    shop.standIn('./deploy-to-staging.sh', 'echo deploying; read -r _');
    shop.standIn('./smoke-test.sh', 'echo "testing" >> "$LOG"');
  });
  afterEach(() => shop.leave());

  const holders = async (): Promise<readonly string[]> => {
    const { holders: all } = await (await shop.place.open()).lock('staging').inspect();
    return all.map(({ holder }) => holder);
  };

  it('hold a lock for as long as somebody is in a shell', async () => {
    const shell = shop.try('by-shell', { stdin: 'open' });
    shell.write('echo "inside with $SIGNALBOX_TOKEN_STAGING"\n');
    await shell.prints(/inside with \d+/);
    expect(await holders()).toEqual([expect.stringMatching(/^run:/)]);
    shell.write('exit 3\n');
    expect(await shell.ended).toMatchObject({ code: 3 });
    expect(await holders()).toEqual([]);
  });

  it('hold a lock over the steps of a script, and give it back at its end', async () => {
    const script = shop.try('by-hand', { stdin: 'open' });
    await script.prints(/deploying/);
    expect(await holders()).toEqual([expect.stringMatching(/^script:.+:\d+$/)]);
    script.write('done\n');
    const { code, stdout } = await script.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/renewed for 10 min; renew it again within .*\n.*released\n$/);
    expect([await holders(), shop.log]).toEqual([[], ['testing']]);
  });

  it('give the lock back although a step failed', async () => {
    shop.standIn('./deploy-to-staging.sh', 'exit 4');
    expect(await shop.try('by-hand').ended).toMatchObject({ code: 4 });
    expect([await holders(), shop.log]).toEqual([[], []]);
  });

  it('give the lock back although the script was ended', async () => {
    shop.standIn('./deploy-to-staging.sh', 'echo deploying; until [ -e go ]; do sleep 0.02; done');
    const script = shop.try('by-hand', { stdin: 'open' });
    await script.prints(/deploying/);
    script.kill('SIGTERM');
    // A shell hears of it when its step has ended.
    shop.write('go', '');
    const { code, signal } = await script.exited;
    expect([exitCodeFor('SIGTERM'), 'SIGTERM']).toContain(code ?? signal);
    expect(await holders()).toEqual([]);
  });

  it('do no further step once the hold is lost, and do not touch the next one', async () => {
    const script = shop.try('by-hand', { stdin: 'open' });
    await script.prints(/deploying/);
    await shop.shell('signalbox lock break staging --reason "a test"').ended;
    await shop.shell('signalbox lock acquire staging --holder next').ended;
    script.write('done\n');
    expect((await script.ended).code).toBe(77);
    expect([await holders(), shop.log]).toEqual([['next'], []]);
  });

  it('do no step at all if the lock is not to be had in time', async () => {
    await shop.shell('signalbox lock acquire staging --holder other').ended;
    expect(await shop.try('by-hand', { with: { '5m': '50ms' } }).ended).toMatchObject({ code: 75, stdout: '' });
    expect(await holders()).toEqual(['other']);
  });

  it('let an agent go on in other shells, knowing just who it is', async () => {
    shop.standIn('./smoke-test.sh', 'signalbox lock show staging --json >> "$LOG"');
    const { code, stdout, stderr } = await shop.try('conversation').ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [token] = stdout.split('\n');
    const { holds } = JSON.parse(shop.log[0] ?? '') as { holds: readonly unknown[] };
    expect(holds).toMatchObject([{ holder: 'agent:7', token: Number(token), ttlMs: 1_800_000 }]);
    expect(stdout).toMatch(/^\d+\nlock\/staging: released\n$/);
    expect(await holders()).toEqual([]);
  });

  it('refuse what an earlier holder sends late', async () => {
    shop.keep('put.sh', 'put.sh');
    shop.standIn('./render.sh', 'echo "$SIGNALBOX_TOKEN" >> "$LOG"; echo "by $WHO"');
    for (const WHO of ['ada', 'ben'])
      expect(await shop.try('fence', { env: { WHO } }).ended).toMatchObject({ code: 0 });
    const [old = '', newest = ''] = shop.log;
    const late = await shop.shell(`echo 'by ada, late' | ./put.sh ${old}`).ended;
    expect(late).toMatchObject({ code: 1, stderr: `refused: token ${old} is older than ${newest}\n` });
    expect(shop.place.read('document')).toBe('by ben\n');
    expect(await shop.shell(`echo 'by ben, again' | ./put.sh ${newest}`).ended).toMatchObject({ code: 0 });
    expect(shop.place.read('document')).toBe('by ben, again\n');
  });
});
