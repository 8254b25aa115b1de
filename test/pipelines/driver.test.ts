// One process drives a pipeline: what it does about each thing that can come of a phase.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fakeAdapters } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { transports } from '../support/fleet.ts';
import { errorOf, isPending, settled } from '../support/outcome.ts';
import { isAlive } from '../support/run-processes.ts';
import { book, guard, phase, shell } from './books.ts';
import { left, Stage, until } from './stage.ts';

/** The embedded engine is tried with real processes. */
const inMemory = transports.filter(({ atOnce }) => atOnce !== 'embedded');

describe.each(inMemory)('a pipeline on $transport', ({ atOnce }) => {
  const stage = (): Stage => new Stage(atOnce === true);

  it('runs its phases in order, and each gets what those before it have passed on', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const seen: unknown[] = [];
    on.does({
      plan: () => ({ VERSION: '7', COUNT: 3 }),
      look: ({ outputs, env, attempt, token }) => void seen.push(outputs, env, attempt, token),
    });
    const runbook = {
      ...book(
        phase('plan'),
        shell('work', 'echo "NAME=$VERSION-$COUNT" >> "$SIGNALBOX_OUTPUT"; echo "works on $VERSION"'),
        phase('look', { env: { COUNT: 'its own' } }),
      ),
      env: { COUNT: 'of the book', WHERE: 'here' },
    };
    const record = await left(on.run(driver, runbook, { env: { WHERE: 'there' } }));
    expect(record).toMatchObject({ state: 'done', outputs: { VERSION: '7', COUNT: '3', NAME: '7-3' } });
    expect(record.phases.map(({ name, state, runs }) => [name, state, runs])).toEqual([
      ['plan', 'done', 1],
      ['work', 'done', 1],
      ['look', 'done', 1],
    ]);
    expect(seen).toEqual([
      { VERSION: '7', COUNT: '3', NAME: '7-3' },
      { VERSION: '7', COUNT: 'its own', NAME: '7-3', WHERE: 'there' },
      1,
      record.lastToken,
    ]);
    expect(await driver.box.pipelines.logs('p')).toMatchObject([{ phase: 'work', run: 1, text: 'works on 7\n' }]);
    expect((await driver.box.lock('pipeline:p').inspect()).holders).toEqual([]);
  });

  it.each(['onChange', 'onOutput'] as const)(
    'runs to its end although %s throws, and tells the caller of it then',
    async (callback) => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const bug = new Error('bug in a progress callback');
      const throws = (): void => {
        throw bug;
      };
      const running = on.run(driver, book(shell('work', 'echo printed'), phase('next')), { [callback]: throws });
      expect(await errorOf(running)).toBe(bug);
      expect((await driver.box.pipelines.show('p'))?.phases.map(({ state }) => state)).toEqual(['done', 'done']);
    },
  );

  it('tells a command where it is, and under which tokens it works', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const names = [
      ...['SIGNALBOX_PIPELINE', 'SIGNALBOX_PHASE', 'SIGNALBOX_ATTEMPT', 'SIGNALBOX_DRIVER_TOKEN', 'SIGNALBOX_HOLDER'],
      ...['SIGNALBOX_TOKEN', 'SIGNALBOX_TOKEN_MAIN', 'SIGNALBOX_SLOT_AGENTS', 'SIGNALBOX_URL', 'WITH_SPACES'],
    ];
    const line = names.map((name) => `echo "${name}=[$${name}]"`).join('; ');
    const holds = [{ lock: 'main' }, { semaphore: 'agents', capacity: 2 }];
    const record = await left(
      on.run(driver, book(shell('work', `${line}; pwd`, { holds, env: { WITH_SPACES: 'a  "b" $HOME' } }))),
    );
    const { tokens = {} } = record.phases[0] ?? {};
    expect((await driver.box.pipelines.logs('p'))[0]?.text.split('\n')).toEqual([
      'SIGNALBOX_PIPELINE=[p]',
      'SIGNALBOX_PHASE=[work]',
      'SIGNALBOX_ATTEMPT=[1]',
      `SIGNALBOX_DRIVER_TOKEN=[${record.lastToken}]`,
      'SIGNALBOX_HOLDER=[pipeline:p]',
      `SIGNALBOX_TOKEN=[${tokens['lock/main']}]`,
      `SIGNALBOX_TOKEN_MAIN=[${tokens['lock/main']}]`,
      'SIGNALBOX_SLOT_AGENTS=[0]',
      // Nobody else could open this store.
      'SIGNALBOX_URL=[]',
      'WITH_SPACES=[a  "b" $HOME]',
      on.directory,
      '',
    ]);
  });

  it('keeps the beginning and the end of 10 MB that a command prints, and says how much is left out', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    let printed = 0;
    const line = 'echo begin; head -c 10000000 /dev/zero | tr "\\0" x; echo; echo end >&2';
    const onOutput = (_: string, text: string): void => void (printed += text.length);
    expect((await left(on.run(driver, book(shell('loud', line)), { onOutput }))).state).toBe('done');
    const [log] = await driver.box.pipelines.logs('p');
    expect(printed).toBe(10_000_011);
    expect(log?.text.length).toBeLessThan(70_000);
    expect(log?.text).toMatch(/^begin\nx/);
    expect(log?.text).toContain('end\n');
    expect(log?.text).toContain(`${log?.leftOut} bytes left out`);
    expect(log?.leftOut).toBeGreaterThan(9_900_000);
  });

  it('fails with what went wrong where its directory is not there', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const record = await left(on.run(driver, book(shell('work', 'true')), { cwd: '/there/is/none' }));
    expect(record.state).toBe('failed');
    expect(record.reason).toContain('/there/is/none');
  });

  it('ends with the phase that fails, and says how', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const record = await left(on.run(driver, book(shell('work', 'exit 3'), phase('never'))));
    expect(record).toMatchObject({ state: 'failed', reason: 'phase work: exit code 3' });
    expect(on.ran).toEqual([]);
    const killed = await left(on.run(driver, book(shell('work', 'kill -9 $$')), { id: 'q' }));
    expect(killed.reason).toBe('phase work: ended by SIGKILL');
  });

  it.each([
    ['no equals sign', 'echo nothing > "$SIGNALBOX_OUTPUT"', 'has no ='],
    ['a name of ours', 'echo SIGNALBOX_X=1 > "$SIGNALBOX_OUTPUT"', "signalbox's own"],
    ['a pipe, which nobody writes to', 'mkfifo "$SIGNALBOX_OUTPUT"', 'is no file to be read'],
    ['too much', 'head -c 70000 /dev/zero | tr "\\0" x > "$SIGNALBOX_OUTPUT"', 'larger than'],
  ])('fails where a phase passes on what cannot be: %s', async (_, line, why) => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const record = await left(on.run(driver, book(shell('work', line))));
    expect(record).toMatchObject({ state: 'failed', outputs: {} });
    expect(record.reason).toContain(why);
  });

  it('is refused with variables that it could not keep or give to a command, and nothing is started', async () => {
    const on = stage();
    const { box } = await on.fleet.start('driver');
    const start = (env: Record<string, string>): Promise<unknown> =>
      box.pipelines.start(book(shell('work', 'true')), { id: 'p', env });
    await expect(start({ BIG: 'x'.repeat(300_000) })).rejects.toThrow('env has 300010 characters as JSON');
    await expect(start({ ODD: 'a\0b' })).rejects.toThrow('env: the value of ODD has a NUL in it');
    expect(await box.pipelines.show('p')).toBeUndefined();
  });

  describe('whose phase fails', () => {
    it('runs it again after a pause that doubles, as often as it may, with the number of the attempt', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const attempts: [number, number][] = [];
      on.does({
        work: ({ attempt }) => {
          attempts.push([attempt, driver.clock.monotonic()]);
          if (attempt < 4) throw new Error(`not yet ${attempt}`);
        },
      });
      const driving = on.run(driver, book(phase('work', { retries: 3, backoffMs: 1_000 })));
      await on.advance(900);
      expect(await driver.box.pipelines.show('p')).toMatchObject({
        state: 'blocked',
        blocked: { on: 'backoff', why: 'not yet 1', againMs: 1_000 },
      });
      await on.advance(10_000);
      expect(await left(driving)).toMatchObject({ state: 'done', phases: [{ runs: 4 }] });
      const since = attempts[0]?.[1] ?? 0;
      expect(attempts.map(([attempt, at]) => [attempt, at - since])).toEqual([
        [1, 0],
        [2, 1_000],
        [3, 3_000],
        [4, 7_000],
      ]);
    });

    it('goes on with a warning', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const record = await left(on.run(driver, book(shell('work', 'exit 3', { onFailure: 'warn' }), phase('next'))));
      expect(record).toMatchObject({ state: 'done', phases: [{ warnings: ['phase work: exit code 3'] }, {}] });
      expect(on.ran).toEqual(['next']);
    });

    it('gives up with the message that it was given', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const record = await left(on.run(driver, book(shell('work', 'exit 3', { onFailure: { fail: 'call ops' } }))));
      expect(record).toMatchObject({ state: 'failed', reason: 'call ops (phase work: exit code 3)' });
    });

    it('tries again for ever where it is told to', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      on.does({
        work: ({ attempt }) => {
          if (attempt < 30) throw new Error('no');
        },
      });
      const driving = on.run(driver, book(phase('work', { onFailure: { retry: 5_000 } })));
      await on.advance(29 * 5_000);
      expect(await left(driving)).toMatchObject({ state: 'done', phases: [{ runs: 30 }] });
    });

    it.each(['rerun', 'skip'] as const)('waits for a person, who says %s', async (decision) => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      let isFixed = false;
      on.does({
        work: () => {
          if (!isFixed) throw new Error('broken');
        },
      });
      const blocked = await left(on.run(driver, book(phase('work', { onFailure: 'block' }), phase('next'))));
      expect(blocked).toMatchObject({ state: 'blocked', blocked: { on: 'person' } });
      expect(blocked.blocked?.on === 'person' && blocked.blocked.why).toContain(
        'phase work: broken. Look, then resume',
      );
      expect((await left(on.resume(driver))).blocked).toEqual(blocked.blocked);
      isFixed = true;
      const record = await left(on.resume(driver, { decision }));
      expect(record.state).toBe('done');
      expect(record.phases.map(({ state }) => state)).toEqual([decision === 'rerun' ? 'done' : 'skipped', 'done']);
      expect(on.ran).toEqual(decision === 'rerun' ? ['work', 'work', 'next'] : ['work', 'next']);
    });
  });

  describe('whose phase takes too long', () => {
    it('ends the command, with all that it started', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const line = 'sleep 1000 & echo $! > inner; trap "" TERM; sleep 1000';
      const driving = on.run(driver, book(shell('work', line, { timeoutMs: 60_000 })), { graceMs: 500 });
      const inner = join(on.directory, 'inner');
      await until(() => existsSync(inner) && readFileSync(inner, 'utf8').endsWith('\n'));
      await on.advance(59_000);
      expect(await isPending(driving)).toBe(true);
      await on.advance(1_000);
      expect(await left(driving)).toMatchObject({ state: 'failed', reason: 'phase work: timed out after 60 s' });
      expect(isAlive(Number(readFileSync(inner, 'utf8')))).toBe(false);
    });

    it('waits for a function that does not heed its signal, and takes nothing from it any more', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      let finish = (): void => undefined;
      on.does({ work: () => new Promise((resolve) => (finish = () => resolve({ LATE: 'yes' }))) });
      const driving = on.run(driver, book(phase('work', { timeoutMs: 1_000, holds: [{ lock: 'main' }] })));
      await on.advance(10_000);
      expect(await isPending(driving)).toBe(true);
      expect((await driver.box.lock('main').inspect()).holders).toHaveLength(1);
      finish();
      expect(await left(driving)).toMatchObject({
        state: 'failed',
        outputs: {},
        reason: 'phase work: timed out after 1 s',
      });
      expect((await driver.box.lock('main').inspect()).holders).toEqual([]);
    });
  });

  describe('whose guard does not pass', () => {
    it('is blocked, says why, and goes on when what it waits for happens', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const hold = await other!.box.lock('main').acquire({ holder: 'worker:1' });
      const driving = on.run(driver!, book(phase('merge', { pre: [guard({ lockFree: 'main' })] })));
      await on.advance(60_000);
      expect(await other!.box.pipelines.show('p')).toMatchObject({
        state: 'blocked',
        isDriven: true,
        blocked: {
          on: 'guard',
          guards: [{ id: 'guard', reasons: ['lock "main" is held by worker:1'], outlook: 'open' }],
          wakeOn: ['lock:released', 'lock:reclaimed', 'lock:forced'],
          polled: [],
        },
      });
      expect(on.ran).toEqual([]);
      await hold.release();
      await on.advance(0);
      expect(await left(driving)).toMatchObject({ state: 'done' });
    });

    it('lets a phase look after itself whether its own work was done', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const adapters = fakeAdapters();
      on.does({ work: () => undefined });
      const post = [guard({ fileExists: 'made' })];
      const driving = on.run(driver, book(phase('work', { post }), phase('next')), { adapters, pollMs: 500 });
      await on.advance(400);
      expect(await driver.box.pipelines.show('p')).toMatchObject({ state: 'blocked', step: { when: 'after' } });
      adapters.files.write('made', '');
      await on.advance(500);
      expect((await left(driving)).state).toBe('done');
      expect(on.ran).toEqual(['work', 'next']);
    });

    it('goes on with a warning', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      await driver.box.lock('main').acquire({ holder: 'worker:1' });
      const pre = [guard({ lockFree: 'main' }, { onFailure: 'warn' })];
      const record = await left(on.run(driver, book(phase('merge', { pre }))));
      expect(record).toMatchObject({
        state: 'done',
        phases: [{ warnings: ['guard guard: lock "main" is held by worker:1'] }],
      });
    });

    it('fails with the message that it was given, and runs nothing', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      await driver.box.lock('main').acquire({ holder: 'worker:1' });
      const pre = [guard({ lockFree: 'main' }, { onFailure: { fail: 'not today' } })];
      const record = await left(on.run(driver, book(phase('merge', { pre, retries: 3 }))));
      expect(record).toMatchObject({ state: 'failed' });
      expect(record.reason).toBe('not today (phase merge, guard guard: lock "main" is held by worker:1)');
      expect(on.ran).toEqual([]);
    });

    it('looks again after the time that it was given, although nobody announces anything', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const adapters = fakeAdapters();
      adapters.commands.set('make check', 1);
      const pre = [guard({ command: { cmd: 'make check' } }, { onFailure: { retry: 7_000 } })];
      const driving = on.run(driver, book(phase('merge', { pre })), { adapters, pollMs: 3_600_000 });
      await on.advance(6_900);
      // Once, and once more when nothing can be missed any more.
      expect(adapters.commands.asked).toHaveLength(2);
      adapters.commands.set('make check', 0);
      await on.advance(200);
      expect((await left(driving)).state).toBe('done');
      expect(adapters.commands.asked).toHaveLength(3);
    });

    it('does not pass by what could not be looked at, and looks again', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const adapters = fakeAdapters();
      adapters.commands.failWith('no more processes');
      const pre = [guard({ command: { cmd: 'make check' } }, { onFailure: { fail: 'broken' } })];
      const driving = on.run(driver, book(phase('merge', { pre })), { adapters, pollMs: 1_000 });
      await on.advance(500);
      const view = await driver.box.pipelines.show('p');
      expect(view?.blocked?.on === 'guard' && view.blocked.guards[0]?.reasons[0]).toContain('no more processes');
      adapters.commands.failWith(undefined);
      adapters.commands.set('make check', 0);
      await on.advance(1_000);
      expect((await left(driving)).state).toBe('done');
    });

    it('fails at once where it can never pass', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const record = await left(on.run(driver, book(phase('merge', { pre: [guard({ any: [] })], retries: 3 }))));
      expect(record.state).toBe('failed');
      expect(record.reason).toContain('can never pass');
    });

    it('says where somebody has to do something first', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      const slots = driver.box.semaphore('agents', { capacity: 2 });
      await (await slots.acquire()).release();
      const pre = [guard({ semaphoreAvailable: { name: 'agents', slots: 3 } })];
      const driving = on.run(driver, book(phase('merge', { pre })));
      await on.advance(0);
      expect(await driver.box.pipelines.show('p')).toMatchObject({ blocked: { guards: [{ outlook: 'stuck' }] } });
      await slots.resize(3);
      expect((await left(driving)).state).toBe('done');
    });

    it('does not spin where it waits for itself, and can be cancelled', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const pre = [
        guard({ pipelineComplete: 'p' }),
        guard({ pipelineInPhase: { pipeline: 'p', phase: 'b' } }, { id: 'g2' }),
      ];
      const driving = on.run(driver!, book(phase('a', { pre }), phase('b')));
      await on.advance(1_000);
      const before = await on.fleet.revision();
      await on.advance(10_000);
      expect(await on.fleet.revision()).toBe(before);
      const view = await other!.box.pipelines.show('p');
      expect(view?.blocked?.on === 'guard' && view.blocked.guards[0]?.reasons).toEqual(['pipeline "p" is blocked']);
      expect((await other!.box.pipelines.cancel('p', { reason: 'silly' }))?.state).toBe('cancelled');
      expect((await left(driving)).reason).toBe('silly');
    });
  });

  describe('that does not wait', () => {
    it('is left blocked at a guard, at what it would hold and before it tries again; and resumed from there', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const main = await other!.box.lock('main').acquire();
      const slot = await other!.box.lock('slot').acquire();
      let isBroken = true;
      on.does({
        work: () => {
          if (isBroken) throw new Error('broken');
        },
      });
      const pre = [guard({ lockFree: 'main' })];
      const runbook = book(phase('work', { pre, holds: [{ lock: 'slot' }], retries: 1 }));
      expect((await left(on.run(driver!, runbook, { waits: false }))).blocked?.on).toBe('guard');
      expect((await left(on.resume(driver!, { waits: false }))).blocked?.on).toBe('guard');
      await main.release();
      expect((await left(on.resume(driver!, { waits: false }))).blocked).toMatchObject({
        on: 'holds',
        resources: [expect.stringMatching(/^lock\/slot: held by /)],
      });
      await slot.release();
      expect((await left(on.resume(driver!, { waits: false }))).blocked?.on).toBe('backoff');
      isBroken = false;
      const driving = on.resume(driver!);
      await on.advance(1_000);
      expect((await left(driving)).state).toBe('done');
      expect(on.ran).toEqual(['work', 'work']);
    });
  });

  describe('whose phase holds something', () => {
    it('has all of it while its command runs, and nothing after, whatever came of it', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const free = async (): Promise<boolean> =>
        (await other!.box.lock('main').inspect()).holders.length === 0 &&
        (await other!.box.semaphore('agents').inspect()).holders.length === 0;
      const during: unknown[] = [];
      on.does({
        good: async ({ tokens }) => void during.push(Object.keys(tokens), await free()),
        bad: async () => {
          during.push(await free());
          throw new Error('bad');
        },
      });
      const holds = [{ lock: 'main' }, { semaphore: 'agents', weight: 2, capacity: 2 }];
      const record = await left(on.run(driver!, book(phase('good', { holds }), phase('bad', { holds }))));
      expect(record.state).toBe('failed');
      expect(during).toEqual([['lock/main', 'semaphore/agents'], false, false]);
      expect(await free()).toBe(true);
    });

    it('looks at its guards again when it had to wait for it', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const slot = await other!.box.lock('slot').acquire();
      const pre = [guard({ lockFree: 'main' })];
      const driving = on.run(driver!, book(phase('work', { pre, holds: [{ lock: 'slot' }] })));
      await until(async () => (await other!.box.pipelines.show('p'))?.blocked?.on === 'holds');
      const main = await other!.box.lock('main').acquire();
      await slot.release();
      await until(async () => (await other!.box.pipelines.show('p'))?.blocked?.on === 'guard');
      // It keeps nothing from others while it waits for a guard.
      expect((await other!.box.lock('slot').inspect()).holders).toEqual([]);
      expect(on.ran).toEqual([]);
      await main.release();
      expect((await left(driving)).state).toBe('done');
    });

    it('has its place in the queue where its guard waits for the same, and only then', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const main = await other!.box.lock('main').acquire();
      const gate = await other!.box.lock('gate').acquire();
      const pre = [guard({ lockFree: 'main' }), guard({ lockFree: 'gate' }, { id: 'gate' })];
      const order: string[] = [];
      on.does({ merge: () => void order.push('pipeline') });
      const driving = on.run(driver!, book(phase('merge', { pre, holds: [{ lock: 'main' }] })));
      await on.advance(0);
      // As long as something else is missing too, it keeps nobody waiting.
      expect((await other!.box.lock('main').inspect()).waiting).toEqual([]);
      await gate.release();
      await until(async () => (await other!.box.lock('main').inspect()).waiting.length === 1);
      expect(await other!.box.pipelines.show('p')).toMatchObject({
        blocked: { on: 'guard', guards: [{ id: 'guard' }] },
      });
      const later = other!.box.lock('main').run(() => void order.push('later'));
      await main.release();
      expect((await left(driving)).state).toBe('done');
      await later;
      expect(order).toEqual(['pipeline', 'later']);
    });

    it('fails where it asks for more than there is', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      await driver.box.semaphore('agents', { capacity: 2 }).tryAcquire();
      const record = await left(on.run(driver, book(phase('work', { holds: [{ semaphore: 'agents', weight: 3 }] }))));
      expect(record.state).toBe('failed');
      expect(record.reason).toMatch(/^phase work: .*agents/);
      expect(on.ran).toEqual([]);
    });

    it('ends the command when it is lost, and the phase has failed', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const line = 'echo $$ > pid; exec sleep 1000';
      const driving = on.run(driver!, book(shell('work', line, { holds: [{ lock: 'main' }] })));
      const pid = join(on.directory, 'pid');
      await until(() => existsSync(pid) && readFileSync(pid, 'utf8').endsWith('\n'));
      await other!.box.lock('main').break({ holder: 'ops', reason: 'stuck' });
      const record = await left(driving);
      expect(record.state).toBe('failed');
      expect(record.reason).toMatch(/^phase work: lock\/main: .*taken by ops \(stuck\) while it ran$/);
      expect(isAlive(Number(readFileSync(pid, 'utf8')))).toBe(false);
    });

    it('is told of a deadlock with another pipeline, and can try again', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      // One that keeps what it took beyond its phase, and another that waits for that.
      const y = await other!.box.lock('y').acquire({ holder: 'pipeline:q' });
      on.does({ take: async () => void (await driver!.box.lock('x').acquire({ holder: 'pipeline:p' })) });
      const driving = on.run(driver!, book(phase('take'), phase('both', { holds: [{ lock: 'y' }] })));
      await until(async () => (await other!.box.pipelines.show('p'))?.blocked?.on === 'holds');
      const waiting = other!.box.lock('x').acquire({ holder: 'pipeline:q', priority: 50 });
      const record = await left(driving);
      expect(record.state).toBe('failed');
      expect(record.reason).toMatch(/^phase both: .*deadlock/);
      await y.release();
      await driver!.box.lock('x').break({ holder: 'ops', reason: 'over' });
      await (await waiting).release();
    });
  });

  it('is driven by one at a time, and another is told by whom', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    let finish = (): void => undefined;
    on.does({ work: () => new Promise<void>((resolve) => (finish = resolve)) });
    const driving = on.run(driver!, book(phase('work')));
    await until(() => on.ran.length === 1);
    const view = await other!.box.pipelines.show('p');
    const second = on.resume(other!);
    // One that was killed would be found dead by then.
    await on.advance(500);
    expect(await second).toEqual({ kind: 'driven', by: view?.driver?.holder });
    expect(await on.run(other!, book(phase('work')))).toEqual({ kind: 'exists', id: 'p' });
    expect(await other!.box.pipelines.resume('nobody')).toEqual({ kind: 'missing' });
    const standing = on.resume(other!, { standsBy: true });
    await settled();
    finish();
    expect((await left(driving)).state).toBe('done');
    expect((await left(standing)).state).toBe('done');
    expect(on.ran).toEqual(['work']);
  });

  it('whose function nobody here knows is not failed by that, and says where it can be resumed', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const runbook = book(shell('build', 'echo x >> ran'), phase('work'));
    await driver.box.pipelines.start(runbook, { id: 'p', cwd: on.directory });
    await expect(driver.box.pipelines.resume('p')).rejects.toThrow(
      'pipeline/p: phase work is a function of the program that started the pipeline; resume it from there',
    );
    expect(await driver.box.pipelines.show('p')).toMatchObject({ state: 'running', isDriven: false });
    on.does({ work: () => undefined });
    expect(await left(on.resume(driver))).toMatchObject({ state: 'done', phases: [{ runs: 1 }, { runs: 1 }] });
  });

  it('tells those who look that it is not driven when nobody does', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    writeFileSync(join(on.directory, 'x'), '');
    await driver.box.pipelines.start(book(phase('work')), { id: 'p', by: 'ann' });
    expect(await driver.box.pipelines.show('p')).toMatchObject({ state: 'pending', isDriven: false, startedBy: 'ann' });
    expect(await driver.box.pipelines.show('q')).toBeUndefined();
    expect(await driver.box.pipelines.forget('p')).toBe(false);
    on.does({ work: () => undefined });
    await on.resume(driver);
    expect(await driver.box.pipelines.forget('p')).toBe(true);
    expect(await driver.box.pipelines.show('p')).toBeUndefined();
  });
});
