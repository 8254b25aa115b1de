// A driver on a bad day: cancelled, stopped, put out, or with a store that does not answer.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Transaction } from 'signalbox/store';
import { fakeAdapters } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { transports } from '../support/fleet.ts';
import { isPending } from '../support/outcome.ts';
import { isAlive } from '../support/run-processes.ts';
import { book, guard, phase, shell } from './books.ts';
import { left, Stage, until } from './stage.ts';

const inMemory = transports.filter(({ atOnce }) => atOnce !== 'embedded');

const writesRecord = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.startsWith('s/pipeline/'));

const notesChild = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.startsWith('c/'));

describe.each(inMemory)('a driver on $transport', ({ atOnce }) => {
  const stage = (): Stage => new Stage(atOnce === true);

  /** The command has begun, and is this process. */
  async function pidOf(on: Stage, name = 'pid'): Promise<string> {
    const path = join(on.directory, name);
    await until(() => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n'));
    return readFileSync(path, 'utf8').trim();
  }
  const isThere = (pid: string): boolean => isAlive(Number(pid));
  const STAYS = 'echo $$ > pid; exec sleep 1000';

  describe('whose pipeline is cancelled by another process', () => {
    it.each([
      ['waits for a guard', { pre: [guard({ lockFree: 'taken' })] }, 'guard'],
      ['waits for what it is to hold', { holds: [{ lock: 'taken' }] }, 'holds'],
      ['pauses before the next attempt', { run: { shell: 'exit 1' }, retries: 1 }, 'backoff'],
    ])('leaves at once while it %s', async (_, said, what) => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      await other!.box.lock('taken').acquire();
      const driving = on.run(driver!, book(phase('work', said), phase('next')));
      await until(async () => (await other!.box.pipelines.show('p'))?.blocked?.on === what);
      const record = await other!.box.pipelines.cancel('p', { by: 'ann', reason: 'no more' });
      expect(record).toMatchObject({ state: 'cancelled', reason: 'no more', cancel: { by: 'ann' } });
      expect(await left(driving)).toEqual(record);
      expect(on.ran).toEqual([]);
      expect((await other!.box.lock('taken').inspect()).waiting).toEqual([]);
      expect((await other!.box.lock('pipeline:p').inspect()).holders).toEqual([]);
    });

    it('leaves at once while a guard takes its time', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const adapters = fakeAdapters();
      adapters.commands.set('slow', () => new Promise(() => undefined));
      const pre = [guard({ command: { cmd: 'slow' } })];
      const driving = on.run(driver!, book(phase('work', { pre })), { adapters });
      await until(() => adapters.commands.asked.length === 1);
      expect((await other!.box.pipelines.cancel('p'))?.state).toBe('cancelled');
      expect((await left(driving)).state).toBe('cancelled');
    });

    it('ends its command first, and answers when that is over', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const line = 'trap "echo ending >> ended; exit 0" TERM; echo $$ > pid; while :; do sleep 0.01; done';
      const driving = on.run(driver!, book(shell('work', line, { holds: [{ lock: 'main' }] }), phase('next')));
      const pid = await pidOf(on);
      const record = await other!.box.pipelines.cancel('p', { by: 'ann', reason: 'no more' });
      expect(record).toMatchObject({ state: 'cancelled', phases: [{ state: 'cancelled' }, { state: 'waiting' }] });
      expect(isThere(pid)).toBe(false);
      expect(readFileSync(join(on.directory, 'ended'), 'utf8')).toBe('ending\n');
      expect((await left(driving)).state).toBe('cancelled');
      expect((await other!.box.lock('main').inspect()).holders).toEqual([]);
      expect(on.ran).toEqual([]);
    });

    it('tells its function, and waits for it', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      let finish = (): void => undefined;
      let isTold = false;
      on.does({
        work: ({ signal }) => {
          signal.addEventListener('abort', () => (isTold = true));
          return new Promise<void>((resolve) => (finish = resolve));
        },
      });
      const driving = on.run(driver!, book(phase('work')));
      await until(() => on.ran.length === 1);
      const cancelling = other!.box.pipelines.cancel('p');
      await until(() => isTold);
      expect(await isPending(cancelling)).toBe(true);
      finish();
      expect((await cancelling)?.state).toBe('cancelled');
      expect((await left(driving)).state).toBe('cancelled');
    });

    it('and dies before it has ended its command is replaced by the process that cancels', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      on.does({ work: () => new Promise(() => undefined) });
      void on.run(driver!, book(phase('work'))).catch(() => undefined);
      await until(() => on.ran.length === 1);
      driver!.crash();
      const cancelling = other!.box.pipelines.cancel('p', { reason: 'it hangs' });
      await on.advance(60_000);
      expect(await cancelling).toMatchObject({ state: 'cancelled', reason: 'it hangs' });
    });
  });

  describe('that is told to stop', () => {
    it.each([true, false])('ends its command and can be resumed; the phase is idempotent: %s', async (idempotent) => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const stop = new AbortController();
      const line = `echo x >> ran; [ -e go ] && exit 0; ${STAYS}`;
      const driving = on.run(driver!, book(shell('work', line, { idempotent }), phase('next')), {
        signal: stop.signal,
      });
      const pid = await pidOf(on);
      stop.abort();
      const record = await left(driving);
      expect(isThere(pid)).toBe(false);
      expect(record.state).toBe(idempotent ? 'running' : 'blocked');
      expect(await other!.box.pipelines.show('p')).toMatchObject({ isDriven: false });
      if (!idempotent) expect((await left(on.resume(other!))).blocked?.on).toBe('person');
      writeFileSync(join(on.directory, 'go'), '');
      const resumed = await left(on.resume(other!, idempotent ? {} : { decision: 'rerun' }));
      expect(resumed).toMatchObject({ state: 'done', phases: [{ runs: 2 }, { runs: 1 }] });
      expect(readFileSync(join(on.directory, 'ran'), 'utf8')).toBe('x\nx\n');
    });

    it('leaves a blocked pipeline blocked, for the next one', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const hold = await other!.box.lock('main').acquire();
      const stop = new AbortController();
      const pre = [guard({ lockFree: 'main' })];
      const driving = on.run(driver!, book(phase('work', { pre })), { signal: stop.signal });
      await on.advance(0);
      stop.abort();
      expect((await left(driving)).blocked?.on).toBe('guard');
      const next = on.resume(other!);
      await on.advance(0);
      await hold.release();
      expect((await left(next)).state).toBe('done');
    });
  });

  describe('that is put out by an administrator', () => {
    it('ends its command before the next driver begins', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      const line = [
        '[ -e inside ] && echo overlap >> wrong',
        'touch inside',
        'trap "sleep 0.2; rm inside; exit 0" TERM',
        'echo "$SIGNALBOX_DRIVER_TOKEN" >> tokens; echo $$ > pid',
        '[ "$(wc -l < tokens)" = 2 ] && rm inside && exit 0',
        'while :; do sleep 0.01; done',
      ].join('; ');
      const driving = on.run(driver!, book(shell('work', line, { idempotent: true, holds: [{ lock: 'main' }] })));
      driving.catch(() => undefined);
      const pid = await pidOf(on);
      await other!.box.lock('pipeline:p').break({ holder: 'ops', reason: 'stuck' });
      const next = left(on.resume(other!));
      await until(() => !isThere(pid));
      // Time stands still here, and the next one looks again after a while whether the old one let go.
      for (; await isPending(next); await new Promise((resolve) => setTimeout(resolve, 5))) await on.advance(200);
      expect(await next).toMatchObject({ state: 'done', phases: [{ runs: 2 }] });
      await expect(driving).rejects.toMatchObject({ name: 'HoldLost' });
      expect(existsSync(join(on.directory, 'wrong'))).toBe(false);
      const [first, second] = readFileSync(join(on.directory, 'tokens'), 'utf8').trim().split('\n').map(Number);
      expect(second).toBeGreaterThan(first ?? 0);
    });

    it('writes nothing after the next one has taken over', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      let finish = (): void => undefined;
      on.does({ work: () => new Promise<void>((resolve) => (finish = resolve)) });
      const driving = on.run(driver!, book(phase('work'), phase('next')));
      driving.catch(() => undefined);
      await until(() => on.ran.length === 1);
      await other!.box.lock('pipeline:p').break({ holder: 'ops', reason: 'stuck' });
      const record = await left(on.resume(other!));
      expect(record.blocked?.on).toBe('person');
      finish();
      await expect(driving).rejects.toMatchObject({ name: 'HoldLost' });
      expect(await other!.box.pipelines.show('p')).toMatchObject({ lastToken: record.lastToken, state: 'blocked' });
      expect(on.ran).toEqual(['work']);
    });

    it('and has its last words heard while the next one takes over', async () => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      let finish = (): void => undefined;
      on.does({ work: () => new Promise<void>((resolve) => (finish = resolve)) });
      const main = await other!.box.lock('main').acquire();
      const driving = on.run(driver!, book(phase('work'), phase('next', { pre: [guard({ lockFree: 'main' })] })));
      driving.catch(() => undefined);
      await until(() => on.ran.length === 1);
      // The old one has not heard of it, and its command ends just then.
      driver!.link.holdNews();
      await other!.box.lock('pipeline:p').break({ holder: 'ops', reason: 'stuck' });
      let isTaking = false;
      other!.link.next('transaction', 'refused', (transaction) => {
        if (!writesRecord(transaction)) return false;
        isTaking = true;
        return true;
      });
      const next = left(on.resume(other!));
      await until(() => isTaking);
      finish();
      await on.advance(0);
      driver!.link.deliverNews();
      await on.advance(5_000);
      await main.release();
      expect(await next).toMatchObject({ state: 'done', phases: [{ runs: 1 }, { runs: 1 }] });
      expect(on.ran).toEqual(['work', 'next']);
      await expect(driving).rejects.toMatchObject({ name: 'HoldLost' });
    });
  });

  describe.each(['refused', 'lost', 'unanswered', 'late'] as const)('whose store has a write %s', (trouble) => {
    it('runs every phase once, whichever write it is', async () => {
      let isThrough = false;
      for (let k = 0; !isThrough; k++) {
        const on = stage();
        const [driver, other] = await on.fleet.startAll('driver', 'other');
        const hold = await other!.box.lock('main').acquire();
        on.does({
          flaky: ({ attempt }) => {
            if (attempt === 1) throw new Error('not yet');
            return { MADE: 'it' };
          },
        });
        const runbook = book(
          phase('first', { pre: [guard({ lockFree: 'main' })] }),
          phase('flaky', { holds: [{ lock: 'slot' }], retries: 1, post: [guard({ lockFree: 'main' })] }),
          shell('last', 'echo x >> ran'),
        );
        let writes = 0;
        isThrough = true;
        driver!.link.next('transaction', trouble, (transaction) => {
          const isIt = writesRecord(transaction) && writes++ === k;
          if (isIt) isThrough = false;
          return isIt;
        });
        const driving = left(on.run(driver!, runbook));
        for (let turn = 0; await isPending(driving); turn++) {
          await on.advance(500);
          await new Promise((resolve) => setTimeout(resolve, 1));
          if (turn === 3) await hold.release();
          if (turn === 6) driver!.link.applyLate();
        }
        driver!.link.applyLate();
        await on.advance(500);
        expect({ k, ...(await driving) }).toMatchObject({
          k,
          state: 'done',
          phases: [{ runs: 1 }, { runs: 2 }, { runs: 1 }],
        });
        expect(on.ran).toEqual(['first', 'flaky', 'flaky']);
        expect(readFileSync(join(on.directory, 'ran'), 'utf8')).toBe('x\n');
        expect((await other!.box.pipelines.show('p'))?.state).toBe('done');
        expect((await other!.box.lock('slot').inspect()).holders).toEqual([]);
        // Started, driven, blocked, begun and ended thrice, paused, rested: there are some.
        if (isThrough) expect(k).toBeGreaterThan(8);
      }
    });

    it('runs a command once although the note of it is what goes wrong', async () => {
      const on = stage();
      const driver = await on.fleet.start('driver');
      driver.link.next('transaction', trouble, notesChild);
      const driving = left(on.run(driver, book(shell('work', 'echo x >> ran'))));
      for (; await isPending(driving); await new Promise((resolve) => setTimeout(resolve, 1))) await on.advance(200);
      expect(await driving).toMatchObject({ state: 'done', phases: [{ runs: 1 }] });
      expect(readFileSync(join(on.directory, 'ran'), 'utf8')).toBe('x\n');
      driver.link.applyLate();
    });
  });

  it('whose store goes away while its command runs waits for it to come back, and tells the result then', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    let finish = (): void => undefined;
    on.does({ work: () => new Promise<void>((resolve) => (finish = resolve)) });
    const driving = on.run(driver!, book(phase('work'), phase('next')));
    await until(() => on.ran.length === 1);
    driver!.link.cutOff('refusing');
    finish();
    await on.advance(5_000);
    expect(await isPending(driving)).toBe(true);
    driver!.link.reconnect();
    await on.advance(5_000);
    expect(await left(driving)).toMatchObject({ state: 'done', phases: [{ runs: 1 }, { runs: 1 }] });
    expect((await other!.box.pipelines.show('p'))?.state).toBe('done');
  });

  it('whose store stays away ends its command before its lease is over, and another may go on', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const driving = on.run(driver!, book(shell('work', `[ -e go ] && exit 0; ${STAYS}`, { idempotent: true })));
    driving.catch(() => undefined);
    const pid = await pidOf(on);
    driver!.link.cutOff('refusing');
    await on.advance(13_600);
    await until(() => !isThere(pid));
    await on.advance(20_000);
    writeFileSync(join(on.directory, 'go'), '');
    const next = left(on.resume(other!));
    for (; await isPending(next); await new Promise((resolve) => setTimeout(resolve, 1))) await on.advance(200);
    expect((await next).state).toBe('done');
    driver!.link.reconnect();
    await on.advance(5_000);
    await expect(driving).rejects.toThrow();
    expect((await other!.box.pipelines.show('p'))?.state).toBe('done');
  });
});
