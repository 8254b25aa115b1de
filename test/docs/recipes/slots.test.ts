// docs/shell.md: slots of semaphores, for builds, requests, links and browsers.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built } from '../../support/run-processes.ts';
import { mostAtOnce, sharedKeys, Workshop } from './workshop.ts';

/** Ends when `atOnce` have begun: so they were side by side. */
const beside = (atOnce: number, key: string): string => `echo "begin ${key}" >> "$LOG"
for _ in $(seq 10000); do [ "$(grep -c begin "$LOG")" -ge ${atOnce} ] && break; sleep 0.02; done
sleep 0.02; echo "end ${key}" >> "$LOG"`;

describe('the recipes for slots', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
  });
  afterEach(() => shop.leave());

  const tryMany = async (count: number, name: string, env: NodeJS.ProcessEnv = {}): Promise<void> => {
    const many = Array.from({ length: count }, () => shop.try(name, { env }));
    for (const { ended } of many) expect(await ended).toMatchObject({ code: 0, stderr: '' });
  };

  it('give three builds a port and a database each, and let the others wait', async () => {
    shop.standIn('make', `[ "\${DATABASE_URL##*_}" = "$SIGNALBOX_SLOT_BUILDS" ]; ${beside(3, '$PORT')}`);
    await tryMany(8, 'builds');
    expect(shop.log).toHaveLength(16);
    expect(mostAtOnce(shop.log)).toBe(3);
    expect(sharedKeys(shop.log)).toEqual([]);
    expect(new Set(shop.log.map((line) => line.split(' ')[1]))).toEqual(new Set(['4000', '4001', '4002']));
  });

  it('give builds what they would not have without a semaphore', async () => {
    shop.standIn('make', beside(4, '$PORT'));
    await tryMany(4, 'builds', { ...shop.withoutLocks(), SIGNALBOX_SLOT_BUILDS: '0' });
    expect([mostAtOnce(shop.log), sharedKeys(shop.log)]).toEqual([4, ['4000']]);
  });

  it('use no more cores than there are, by weight', async () => {
    shop.standIn('make', `${beside(2, 'make')}; [ "$SIGNALBOX_SLOTS_CORES" != "" ]`);
    shop.standIn('npm', 'echo "begin npm" >> "$LOG"; sleep 0.05; echo "end npm" >> "$LOG"');
    await tryMany(4, 'cores');
    expect(shop.log).toHaveLength(16);
    expect(mostAtOnce(shop.log, (key) => (key === 'make' ? 4 : 1))).toBe(8);
  });

  it('set the capacity once, and refuse a run that names another', async () => {
    shop.standIn('make', beside(5, '$SIGNALBOX_SLOT_BUILDS'));
    const [resize, run] = shop.text('capacity').split('\n') as [string, string];
    expect(await shop.shell(resize).ended).toMatchObject({ code: 0 });
    const many = Array.from({ length: 7 }, () => shop.shell(run));
    for (const { ended } of many) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect([mostAtOnce(shop.log), sharedKeys(shop.log)]).toEqual([5, []]);
    const refused = await shop.try('builds').ended;
    expect(refused.code).toBe(64);
    expect(refused.stderr).toContain('the capacity is 5, not 3');
  });

  it('send no more requests than are allowed, by weight, and every request in the end', async () => {
    shop.standIn('curl', `for file; do case $file in @*) ${beside(2, '$file')}; cat "\${file#@}";; esac; done`);
    const agents = ['ada', 'ben', 'cy', 'dot'];
    for (const agent of agents) {
      shop.write(`${agent}/short.json`, `short of ${agent}`);
      shop.write(`${agent}/long.json`, `long of ${agent}`);
    }
    const asking = agents.map((agent) => shop.try('api', { in: agent }));
    for (const { ended } of asking) expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect(mostAtOnce(shop.log, (key) => (key === '@long.json' ? 3 : 1))).toBeLessThanOrEqual(6);
    expect(mostAtOnce(shop.log)).toBeGreaterThan(1);
    for (const agent of agents) expect(shop.place.read(`${agent}/long.answer`)).toBe(`long of ${agent}`);
  });

  it('answer 75 to a request that finds no slot in time', async () => {
    shop.standIn('curl', 'echo began; read -r _');
    const busy = shop.shell('signalbox run --sem api=6/6 -- curl', { stdin: 'open' });
    await busy.prints(/began/);
    expect(await shop.try('api', { with: { '2m': '50ms' } }).ended).toMatchObject({ code: 75 });
    expect(shop.place.read('short.answer')).toBe('');
    busy.endInput();
    await busy.ended;
  });

  it('link two at a time, however many jobs make has', async () => {
    shop.keep('make', 'Makefile');
    shop.standIn('./link', `${beside(2, '$2')}; cp "$3" "$2"`);
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) shop.write(`obj/${name}.o`, name);
    shop.write('bin/.keep', '');
    const targets = names.map((name) => `bin/${name}`).join(' ');
    expect(await shop.shell(`make -j5 CC=./link ${targets}`).ended).toMatchObject({ code: 0 });
    expect(mostAtOnce(shop.log)).toBe(2);
    expect(names.map((name) => shop.place.read(`bin/${name}`))).toEqual(names);
  });

  it('are found by npm where the package is installed', async () => {
    shop.keep('npm', 'package.json');
    shop.standIn('node_modules/.bin/playwright', `[ "$1" = test ]; ${beside(2, '$SIGNALBOX_SLOT_BROWSERS')}`);
    const many = Array.from({ length: 3 }, () => shop.shell('npm run --silent test:e2e'));
    for (const { ended } of many) expect(await ended).toMatchObject({ code: 0 });
    expect([mostAtOnce(shop.log), sharedKeys(shop.log)]).toEqual([2, []]);

    shop.standIn('./release.sh', 'echo releasing; read -r _');
    const release = shop.shell('npm run --silent release', { stdin: 'open' });
    await release.prints(/releasing/);
    expect((await shop.shell('npm run --silent release').ended).code).toBe(75);
    release.write('done\n');
    expect((await release.ended).code).toBe(0);
  });
});
