// A run inside a run has what the outer one has, and lets go of nothing that is not its own.

import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, isAlive, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

describe.each(stores)('a run inside a run, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let place: Place;
  beforeAll(built);
  beforeEach(() => {
    place = new Place(newStore);
  });
  afterEach(() => place.leave());

  const sh = (script: string, ...options: string[]): ReturnType<Place['run']> =>
    place.run([...options, '--', 'sh', '-c', `box() { "$NODE" "$ENTRY" run "$@"; }; ${script}`]);

  it('has what the outer one holds at once, with the same token, and does not release it', async () => {
    const { code, stdout } = await sh(
      `box --lock a --no-wait -- sh -c 'echo $SIGNALBOX_TOKEN'; box --lock a --no-wait -- sh -c 'echo $SIGNALBOX_TOKEN'; echo $SIGNALBOX_TOKEN; exit 4`,
      ...['--lock', 'a'],
    ).ended;
    const [first, second, outer] = stdout.trim().split('\n');
    expect(code).toBe(4);
    expect([first, second]).toEqual([outer, outer]);
  });

  it('is kept out by nobody, though others wait for what the outer one holds', async () => {
    const outer = sh(`echo begun; read -r line; box --lock a -- echo inside`, '--lock', 'a');
    await outer.prints(/begun/);
    const next = sh('echo next', '--lock', 'a', '--verbose');
    await next.prints(/next in line/, 'stderr');
    outer.write('\n');
    expect((await outer.ended).stdout).toMatch(/inside/);
    expect((await next.ended).code).toBe(0);
  });

  it('has what the outermost one holds, however deep it is', async () => {
    const { stdout } = await sh(
      `box --lock b -- sh -c '"$NODE" "$ENTRY" run --lock a --lock b --lock c --no-wait -- env' | grep ^SIGNALBOX_HOLDS`,
      ...['--lock', 'a'],
    ).ended;
    const holds = JSON.parse(stdout.trim().slice('SIGNALBOX_HOLDS='.length)) as Record<string, { holder: string }>;
    expect(Object.keys(holds).sort()).toEqual(['lock/a', 'lock/b', 'lock/c']);
    expect(new Set(Object.values(holds).map(({ holder }) => holder)).size).toBe(3);
  });

  it('side by side with another excludes it from what the outer one does not hold', async () => {
    const once = `box --lock b -- sh -c 'echo begin >> marks; sleep 0.2; echo end >> marks'`;
    expect((await sh(`${once} & ${once} & wait`, '--lock', 'a').ended).code).toBe(0);
    expect(place.read('marks')).toBe('begin\nend\nbegin\nend\n');
  });

  it('may write where the outer one only reads, once the other readers have left', async () => {
    const reader = sh('echo begun; read -r line', '--lock', 'a:shared');
    await reader.prints(/begun/);
    const outer = sh(`echo begun; box --lock a --verbose -- echo writes`, '--lock', 'a:shared');
    await outer.prints(/waiting for lock\/a/, 'stderr');
    reader.write('\n');
    expect(await outer.ended).toMatchObject({ code: 0 });
    expect(outer.stdout).toMatch(/writes/);
  });

  it('grows the slots of the outer one, if it wants more', async () => {
    const { stdout } = await sh(`box --sem s=3 -- sh -c 'echo $SIGNALBOX_SLOTS_S'`, '--sem', 's=1/4').ended;
    expect(stdout).toBe('0 1 2\n');
  });

  it('that outlived the outer one has nothing of it, and waits like everybody else', async () => {
    const outer = sh(`env | grep ^SIGNALBOX_ > left; exit 0`, '--lock', 'a');
    await outer.ended;
    const env = Object.fromEntries(
      place
        .read('left')
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    const box = await place.open();
    await box.lock('a').acquire({ holder: 'another' });
    const { code, stderr } = await place.run(['--lock', 'a', '--no-wait', '--', 'echo', 'ran'], { env }).ended;
    expect({ code, stderr }).toEqual({ code: 75, stderr: expect.stringContaining('lock/a: held by another for') });
  });

  it('on another store has nothing of the outer one', async () => {
    const script = `box --store file:other --lock a --no-wait -- env | grep ^SIGNALBOX_HOLDS`;
    const { stdout } = await sh(`echo "$SIGNALBOX_HOLDS"; ${script}`, '--lock', 'a').ended;
    const [outer, inner] = [...stdout.matchAll(/"holder":"([^"]*)"/g)].map(([, holder]) => holder);
    expect(inner).toMatch(/^run:/);
    expect(inner).not.toBe(outer);
  });

  it('that waits for somebody who waits for the outer one is told of the deadlock: 75, and the other one goes on', async () => {
    const crossed = (first: string, then: string): ReturnType<Place['run']> =>
      sh(`echo begun; read -r line; box --lock ${then} -- echo inside; echo "code $?"`, '--lock', first);
    const one = crossed('a', 'b');
    const other = crossed('b', 'a');
    await Promise.all([one.prints(/begun/), other.prints(/begun/)]);
    one.write('\n');
    other.write('\n');
    const ended = await Promise.all([one.ended, other.ended]);
    expect(ended.map(({ stdout }) => /code (\d+)/.exec(stdout)?.[1]).sort()).toEqual(['0', '75']);
    expect(ended.map(({ stderr }) => stderr).join('')).toMatch(
      /deadlock: run:\S+ \(inside run:\S+\) waits for lock\/[ab] behind run:/,
    );
  });

  it('is ended with the rest when the outer one was killed', async () => {
    const outer = sh(
      `box --lock a -- sh -c 'trap "echo end inner >> marks; exit 0" TERM; echo "pid $$"; while :; do sleep 0.02; done'`,
      ...['--lock', 'a', '--ttl', '2s'],
    );
    await outer.pidOf();
    outer.kill('SIGKILL');
    expect((await sh('echo begin next >> marks', '--lock', 'a').ended).code).toBe(0);
    expect(place.read('marks')).toBe('end inner\nbegin next\n');
  });

  it('that is ended with the rest lets its command clean up, although the next holder ends that run too', async () => {
    const outer = sh(
      `box --lock a --grace 5m -- sh -c 'trap "until [ -e go ]; do sleep 0.02; done; echo end inner >> marks; exit 0" TERM; echo "pid $$"; while :; do sleep 0.02; done'`,
      ...['--lock', 'a', '--ttl', '2s'],
    );
    const inner = await outer.pidOf();
    outer.kill('SIGKILL');
    // The command has lost its hold and cleans up when the next holder sends TERM to everything around it.
    await outer.prints(/the hold was lost.*ending the command/, 'stderr');
    const next = sh('echo begin next >> marks', '--lock', 'a', '--grace', '5m');
    await next.prints(/ending process.*left behind by run:/, 'stderr');
    expect(isAlive(inner)).toBe(true);
    writeFileSync(place.path('go'), '');
    expect((await next.ended).code).toBe(0);
    expect(place.read('marks')).toBe('end inner\nbegin next\n');
  });

  it('that was killed leaves its child to the next one, although the outer one ended well', async () => {
    const outer = sh(
      `box --lock a -- sh -c 'echo "inner $PPID"; trap "echo end inner >> marks; exit 0" TERM; echo "pid $$"; while :; do sleep 0.02; done'; exit 0`,
      ...['--lock', 'a'],
    );
    await outer.pidOf();
    process.kill(await outer.pidOf('inner'), 'SIGKILL');
    expect((await outer.exited).code).toBe(0);
    expect((await sh('echo begin next >> marks', '--lock', 'a').ended).code).toBe(0);
    expect(place.read('marks')).toBe('end inner\nbegin next\n');
  });

  it('that holds something else is ended before the next one has what the outer one held, though both runs were killed', async () => {
    const outer = sh(
      `box --lock b -- sh -c 'trap "" TERM; echo "pid $$"; while :; do sleep 0.02; done'`,
      ...['--lock', 'a', '--grace', '100ms'],
    );
    const inner = await outer.pidOf();
    const box = await place.open();
    // The outer run kills its whole group: the inner run too, but not what that one started.
    await box.lock('a').break({ holder: 'admin', reason: 'maintenance' });
    expect((await outer.exited).code).toBe(76);
    // One that nobody has collected yet is gone all the same.
    const look = `grep -q "^State:.[^ZX]" /proc/${inner}/status && echo alive || echo gone`;
    const next = await sh(look, '--lock', 'a', '--grace', '100ms').ended;
    expect(next.stdout).toBe('gone\n');
    expect(next.stderr).toMatch(/lock\/a: ending process.* left behind by run:/);
  });

  it('does not enter a later hold of the same holder', async () => {
    const ended = await sh('echo "$SIGNALBOX_HOLDS"', '--lock', 'a', '--holder', 'agent:7').ended;
    const box = await place.open();
    await box.lock('a').acquire({ holder: 'agent:7' });
    const env = { SIGNALBOX_HOLDS: ended.stdout.trim() };
    const { code, stderr } = await place.run(['--lock', 'a', '--no-wait', '--', 'echo', 'ran'], { env }).ended;
    expect({ code, stderr }).toEqual({ code: 75, stderr: expect.stringContaining('lock/a: held by agent:7 for') });
  });
});
