// The driver of a pipeline is killed, in every state that a pipeline can be in, and another process goes on.

import type { Runbook } from 'signalbox/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { built, isAlive } from '../support/run-processes.ts';
import { inFile, newStoreOf, type NewStore, stores } from '../support/stores.ts';
import { book, guard, phase, shell } from './books.ts';
import { Crew, type Order } from './crew.ts';
import { DID } from './programs/functions.mjs';
import { until } from './stage.ts';

built();

/** Everything that a pipeline can wait for, fail at and hold. */
const LONG: Runbook = book(
  phase('plan', { pre: [guard({ lockFree: 'gate' })] }),
  shell('work', DID, { holds: [{ lock: 'main' }, { semaphore: 'agents', capacity: 2 }], idempotent: true }),
  shell('flaky', `${DID}; [ "$SIGNALBOX_ATTEMPT" = 2 ]`, { retries: 1, backoffMs: 20 }),
  shell('check', DID, { post: [guard({ lockFree: 'post' })] }),
  phase('last', { holds: [{ lock: 'main' }] }),
);
const IDEMPOTENT = 'work';

/** Starts a crew on the long book, which waits where it can, and is let through each time once it does. */
async function longCrew(newStore: NewStore): Promise<Crew> {
  const crew = await Crew.of(LONG, newStore);
  onTestFinished(() => crew.leave());
  const { box } = crew;
  const held = new Map([
    ['plan', await box.lock('gate').acquire()],
    ['work', await box.lock('main').acquire()],
    ['check', await box.lock('post').acquire()],
  ]);
  await box.on('pipeline:blocked', (event) => {
    const { phase: name, on } = event as unknown as { readonly phase: string; readonly on: string };
    if (on === 'guard' || on === 'holds') void held.get(name)?.release();
  });
  return crew;
}

/** Whether the driver lived long enough to come to that write. */
async function killedAt(stopAt: Order['stopAt'], newStore: NewStore): Promise<boolean> {
  const crew = await longCrew(newStore);
  const { driver, told } = crew.drive(stopAt === undefined ? {} : { stopAt });
  const { stopped, error, outcome } = await told;
  const where = JSON.stringify(stopAt);
  expect(error, where).toBeUndefined();
  await crew.kill(driver);
  const asked = await crew.finish();
  await until(() => crew.isOver);
  expect(crew.record, where).toMatchObject({ state: 'done' });
  const times = (name: string, attempt = 1): number =>
    crew.did.filter((did) => did.phase === name && did.attempt === attempt).length;
  const ran = { plan: times('plan'), flaky: times('flaky'), check: times('check'), last: times('last') };
  expect(ran, where).toEqual({ plan: 1, flaky: 1, check: 1, last: 1 });
  expect(times('flaky', 2), where).toBeLessThanOrEqual(1);
  expect([1, 2], where).toContain(times(IDEMPOTENT));
  for (const why of asked) {
    expect(why, where).toMatch(/^phase (plan|flaky|check|last) had begun when its driver was lost/);
    expect(why, where).toMatch(/rerun \(run it again\) or skip \(take it as done\)$/);
  }
  expect(asked.length, where).toBeLessThanOrEqual(1);
  await crew.expectOrder();
  expect(outcome === undefined, where).toBe(stopped !== undefined);
  return stopped !== undefined;
}

describe('a driver that is killed', () => {
  it('before or after any of its writes is replaced, and no phase runs twice that must not', async () => {
    let write = 0;
    let most = Number.POSITIVE_INFINITY;
    const kill = async (): Promise<void> => {
      for (let mine = write++; mine < most; mine = write++) {
        const isBefore = await killedAt({ write: mine, when: 'before' }, inFile);
        if (isBefore) await killedAt({ write: mine, when: 'after' }, inFile);
        else most = Math.min(most, mine);
      }
    };
    await Promise.all([kill(), kill()]);
    // Started, driven, thrice blocked, six times begun and ended, paused and rested, and what its last guards came to.
    expect(most).toBeGreaterThan(16);
  });
});

describe.each(stores)('on $on, a driver that is killed', ({ kind }) => {
  const newStore = newStoreOf(kind);

  async function crewOf(runbook: Runbook): Promise<Crew> {
    const crew = await Crew.of(runbook, newStore);
    onTestFinished(() => crew.leave());
    return crew;
  }

  // On a file each of its writes has its turn above.
  const onEtcd = kind === 'file' ? undefined : it;
  onEtcd?.('at one of its writes is replaced', async () => {
    const points = [
      ...([1, 3, 6, 16] as const).map((write) => ({ write, when: 'after' as const })),
      ...([4, 7] as const).map((write) => ({ write, when: 'before' as const })),
    ];
    expect(await Promise.all(points.map((at) => killedAt(at, newStore)))).toEqual(points.map(() => true));
  });

  it.each([
    ['waits for a guard', phase('work', { pre: [guard({ lockFree: 'gate' })] }), 'guard'],
    ['waits for what it is to hold', phase('work', { holds: [{ lock: 'gate' }] }), 'holds'],
    ['waits for a guard after its command', phase('work', { post: [guard({ lockFree: 'gate' })] }), 'guard'],
    [
      'pauses before the next attempt',
      shell('work', `${DID}; [ "$SIGNALBOX_ATTEMPT" = 2 ]`, { retries: 1, backoffMs: 5_000 }),
      'backoff',
    ],
  ])('while it %s is replaced, and nothing runs twice', async (_, work, what) => {
    const crew = await crewOf(book(work, phase('next')));
    const gate = await crew.box.lock('gate').acquire();
    const { driver } = crew.drive();
    await until(() => crew.record?.blocked?.on === what);
    if (what === 'holds') await until(async () => (await crew.box.lock('gate').inspect()).waiting.length === 1);
    await crew.kill(driver);
    const finishing = crew.finish();
    await until(() => (crew.record?.lastToken ?? 0) > (crew.history.find((record) => record.blocked)?.lastToken ?? 0));
    await gate.release();
    expect(await finishing).toEqual([]);
    await until(() => crew.isOver);
    const attempts = what === 'backoff' ? ['work 1', 'work 2'] : ['work 1'];
    expect(crew.did.map(({ phase: name, attempt }) => `${name} ${attempt}`)).toEqual([...attempts, 'next 1']);
    await crew.expectOrder();
  });

  it('while its function runs leaves it to a person, with a question', async () => {
    const crew = await crewOf(book(phase('work', { env: { HANGS: 'yes' }, holds: [{ lock: 'main' }] }), phase('next')));
    const { driver } = crew.drive();
    await until(() => crew.did.length === 1);
    await crew.kill(driver);
    const asked = await crew.finish();
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain('phase work had begun when its driver was lost, and nobody knows how far it came');
    await until(() => crew.isOver);
    expect(crew.record?.phases.map(({ state }) => state)).toEqual(['skipped', 'done']);
    expect(crew.did.map(({ phase: name }) => name)).toEqual(['work', 'next']);
    await crew.expectOrder();
  });

  it.each([true, false])(
    'while its command runs leaves an orphan, which is ended before anything else runs; idempotent: %s',
    async (idempotent) => {
      const line = [
        // Whoever is inside already has not been ended.
        '[ -e inside ] && echo overlap >> wrong',
        DID,
        '[ -e first ] && exit 0',
        // A shell that says that somebody ended its sleep, and whom nobody hears, would be ended by that.
        'exec > /dev/null 2>&1',
        'touch first inside; trap "rm inside; exit 1" TERM',
        'echo $$ >> pid; while :; do sleep 0.05; done',
      ].join('; ');
      const holds = [{ lock: 'main' }];
      const crew = await crewOf(
        book(shell('work', line, { idempotent, holds }), shell('next', `[ -e inside ] && exit 1; ${DID}`, { holds })),
      );
      const { driver } = crew.drive();
      const orphan = await crew.pidIn('pid');
      await crew.kill(driver);
      expect(isAlive(orphan)).toBe(true);
      const asked = await crew.finish();
      expect(isAlive(orphan)).toBe(false);
      await until(() => crew.isOver);
      expect(asked).toHaveLength(idempotent ? 0 : 1);
      expect(crew.linesOf('wrong')).toEqual([]);
      expect(crew.did.map(({ phase: name }) => name)).toEqual(idempotent ? ['work', 'work', 'next'] : ['work', 'next']);
      await crew.expectOrder();
    },
  );

  it('only stopped, past its lease, ends its command when it goes on, and writes nothing', async () => {
    const line = `${DID}; [ -e go ] && exit 0; touch go; echo $$ >> pid; exec sleep 1000`;
    const crew = await crewOf(book(shell('work', line, { idempotent: true }), phase('next')));
    const { driver, told } = crew.drive();
    const command = await crew.pidIn('pid');
    driver.kill('SIGSTOP');
    expect(await crew.finish()).toEqual([]);
    expect(isAlive(command)).toBe(false);
    await until(() => crew.isOver);
    const { length } = crew.history;
    driver.kill('SIGCONT');
    expect((await told).error).toMatch(/lost|ended/);
    expect(crew.history).toHaveLength(length);
    expect(crew.did.map(({ phase: name }) => name)).toEqual(['work', 'work', 'next']);
    await crew.expectOrder();
  });

  it('while another stands by is replaced by it, automatically', async () => {
    const crew = await crewOf(book(phase('work', { pre: [guard({ lockFree: 'gate' })] })));
    const gate = await crew.box.lock('gate').acquire();
    const { driver } = crew.drive();
    await until(() => crew.record?.blocked?.on === 'guard');
    const next = crew.drive({ standsBy: true });
    await until(async () => (await crew.box.lock('pipeline:p').inspect()).waiting.length === 1);
    await crew.kill(driver);
    await until(async () => (await crew.box.pipelines.show('p'))?.driver?.holder.includes(`:${next.driver.pid}:`));
    await gate.release();
    expect((await next.told).outcome).toMatchObject({ kind: 'left', record: { state: 'done' } });
    await until(() => crew.isOver);
    await crew.expectOrder();
  });
});
