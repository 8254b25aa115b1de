// Locks and semaphores by hand, as scripts and agents use them: each command is a process of its own.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Scratch, signalbox, startProgram } from '../support/cli.ts';
import { newStoreOf, stores } from '../support/stores.ts';
import { BETWEEN_PROCESSES_MS, until } from '../support/until.ts';

describe.each(stores)('on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch(newStore)));
  afterEach(() => scratch.remove());

  const A = ['--holder', 'agent:a'];
  const B = ['--holder', 'agent:b'];

  async function acquired(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await scratch.run(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^\d+\n$/);
    return stdout.trim();
  }

  describe('a lock by hand', () => {
    it('is taken by one process, renewed by another and released by a third, by its token', async () => {
      const token = await acquired('lock', 'acquire', 'main', ...A, '--ttl', '5m', '--reason', 'merging');
      const claim = [...A, '--token', token];
      expect(await scratch.run('lock', 'renew', 'main', ...claim)).toMatchObject({
        code: 0,
        stdout: 'lock/main: renewed for 5 min; renew it again within 75 s\n',
      });
      expect(await scratch.json('lock', 'renew', 'main', ...claim, '--ttl', '90s')).toEqual({
        resource: 'lock/main',
        holder: 'agent:a',
        token: Number(token),
        outcome: 'refreshed',
        ttlMs: 90_000,
        renewWithinMs: 22_500,
      });
      expect(await scratch.run('lock', 'release', 'main', ...claim)).toMatchObject({
        code: 0,
        stdout: 'lock/main: released\n',
      });
      expect(await scratch.run('lock', 'show', 'main')).toMatchObject({ code: 0, stdout: 'lock/main is free.\n' });
    });

    it('is given to the same holder again with the same token, and to the next with a larger one', async () => {
      const first = await acquired('lock', 'acquire', 'main', ...A);
      expect(await acquired('lock', 'acquire', 'main', ...A)).toBe(first);
      await scratch.run('lock', 'release', 'main', ...A, '--token', first);
      expect(Number(await acquired('lock', 'acquire', 'main', ...B))).toBeGreaterThan(Number(first));
    });

    it('is refused with 75 while somebody else has it, and says who and why', async () => {
      await acquired('lock', 'acquire', 'main', ...A, '--reason', 'merging');
      const refused = { code: 75, stdout: '' };
      const atOnce = await scratch.run('lock', 'acquire', 'main', ...B, '--no-wait');
      expect(atOnce).toMatchObject(refused);
      expect(atOnce.stderr).toMatch(/^signalbox: lock\/main: held by agent:a \(merging\) for \d+(?:\.\d+)? m?s\n$/);
      const later = await scratch.run('lock', 'acquire', 'main', ...B, '--wait', '0.1', '--json');
      expect(later).toMatchObject(refused);
      expect(JSON.parse(later.stderr)).toMatchObject({
        error: {
          code: 'not-acquired',
          // A store that does not say in time who holds it is not waited for.
          message: expect.stringMatching(
            /^lock\/main: not granted within 100 ms(?:; held by agent:a \(merging\) for .*)?$/,
          ),
          resource: 'lock/main',
          refusal: { kind: 'timed-out', waitedMs: 100 },
        },
      });
      expect(await scratch.run('lock', 'acquire', 'main', ...B, '--wait', '0')).toMatchObject(refused);
    });

    it('passes to whoever waits as soon as it is released', async () => {
      const token = await acquired('lock', 'acquire', 'main', ...A);
      const next = scratch.start('lock', 'acquire', 'main', ...B);
      await waitedFor('lock', 'main');
      await scratch.run('lock', 'release', 'main', ...A, '--token', token);
      expect(Number((await next.ended).stdout)).toBeGreaterThan(Number(token));
    });

    it('is not renewed or released by one who does not have it: 77, and 76 for one that was lost', async () => {
      const token = await acquired('lock', 'acquire', 'main', ...A, '--ttl', '2s');
      const stranger = [...B, '--token', token];
      expect(await scratch.run('lock', 'release', 'main', ...stranger)).toMatchObject({ code: 77 });
      expect(await scratch.run('lock', 'renew', 'main', ...A, '--token', '1')).toMatchObject({ code: 77 });
      await until(async () => (await holdOf('main'))?.isStale, BETWEEN_PROCESSES_MS);
      const lost = await scratch.run('lock', 'renew', 'main', ...A, '--token', token, '--json');
      expect(lost.code).toBe(76);
      expect(JSON.parse(lost.stderr)).toMatchObject({ error: { code: 'hold-lost', outcome: 'lost' } });
      await acquired('lock', 'acquire', 'main', ...B);
      expect(await scratch.run('lock', 'release', 'main', ...A, '--token', token)).toMatchObject({ code: 77 });
      expect((await holdOf('main'))?.holder).toBe('agent:b');
    });

    it('is told as it is held, and not as it was asked for', async () => {
      await acquired('lock', 'acquire', 'docs', ...A);
      expect(await scratch.json('lock', 'acquire', 'docs', ...A, '--shared')).toMatchObject({ mode: 'exclusive' });
      expect(await scratch.json('lock', 'acquire', 'read', ...A, '--shared')).toMatchObject({ mode: 'shared' });
    });

    it('is shared by readers, and ends for all of them when it is broken', async () => {
      await acquired('lock', 'acquire', 'docs', ...A, '--shared');
      await acquired('lock', 'acquire', 'docs', ...B, '--shared');
      const events = scratch.start('events', 'tail', 'lock:forced', '-n', '2', '--json');
      let broken = { broken: 0 };
      // Until it follows, there is nothing to be heard: they are taken and broken again.
      for (let isOver = false; !isOver;) {
        broken = await scratch.json('lock', 'break', 'docs', '--reason', 'both are gone', '--holder', 'user:me');
        expect(broken).toMatchObject({ broken: 2, by: 'user:me', reason: 'both are gone' });
        await acquired('lock', 'acquire', 'docs', ...A, '--shared');
        await acquired('lock', 'acquire', 'docs', ...B, '--shared');
        isOver = events.child.exitCode !== null;
      }
      const { stdout } = await events.ended;
      expect(
        stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as object),
      ).toMatchObject([
        { type: 'lock:forced', holder: 'agent:a', by: 'user:me', reason: 'both are gone' },
        { type: 'lock:forced', holder: 'agent:b', by: 'user:me', reason: 'both are gone' },
      ]);
      await scratch.run('lock', 'break', 'docs', '--reason', 'again');
      expect(await scratch.run('lock', 'break', 'docs', '--reason', 'x')).toMatchObject({
        code: 1,
        stdout: '',
        stderr: 'signalbox: lock/docs: it is not held, so there is nothing to break\n',
      });
    });

    it('is not broken if it has changed hands since its token was seen', async () => {
      const seen = await acquired('lock', 'acquire', 'docs', ...A);
      await scratch.run('lock', 'release', 'docs', ...A, '--token', seen);
      const newer = await acquired('lock', 'acquire', 'docs', ...B);
      const breaking = ['lock', 'break', 'docs', '--reason', 'agent:a is gone', '--token'];
      expect(await scratch.run(...breaking, seen)).toEqual({
        code: 1,
        stdout: '',
        stderr: `signalbox: lock/docs: nothing that was granted up to token ${seen} is still held, so nothing was broken\n`,
      });
      expect((await holdOf('docs'))?.holder).toBe('agent:b');
      expect(await scratch.run(...breaking, newer)).toMatchObject({ code: 0, stdout: 'lock/docs: ended 1 hold\n' });
    });

    it('is named as it is printed, too', async () => {
      const token = await acquired('lock', 'acquire', 'lock/main', ...A);
      expect((await holdOf('main'))?.holder).toBe('agent:a');
      expect(await scratch.run('lock', 'release', 'lock/main', ...A, '--token', token)).toMatchObject({ code: 0 });
      await acquired('sem', 'acquire', 'semaphore/api', '--capacity', '1', ...A);
      expect((await scratch.run('sem', 'show', 'sem/api')).stdout).toMatch(
        /^semaphore\/api: 1 of 1 slot in use, 0 free\n/,
      );
    });

    it('that a run has is not given back in the middle of it by a script that has the name of the run', async () => {
      const script = `
      signalbox() { "$NODE" "$CLI" "$@"; }
      TOKEN=$(signalbox lock acquire main) || exit 9
      signalbox lock release main --token "$TOKEN"; echo "release $?"
      signalbox lock renew main --token "$TOKEN" --ttl 5m; echo "renew $?"
      signalbox lock renew main --token "$TOKEN"; echo "plain $?"`;
      const env = { SIGNALBOX_URL: scratch.store, NODE: process.execPath, CLI };
      const ended = await signalbox(['run', '--lock', 'main', '--', 'bash', '-c', script], { env });
      expect(ended).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^release 77\nrenew 77\n(.*\n)?plain 0\n$/),
      });
      expect(ended.stderr).toContain('lock/main: held by a run, which releases it itself');
    });

    it('takes its holder from SIGNALBOX_HOLDER where none is named', async () => {
      const env = { SIGNALBOX_URL: scratch.store, SIGNALBOX_HOLDER: 'agent:env' };
      expect((await signalbox(['lock', 'acquire', 'main'], { env })).code).toBe(0);
      expect((await holdOf('main'))?.holder).toBe('agent:env');
    });

    it('is stale once it has been held for longer than its limit, however well it is renewed', async () => {
      const token = await acquired('lock', 'acquire', 'main', ...A, '--max-hold', '200ms');
      await until(async () => (await holdOf('main'))?.isStale, BETWEEN_PROCESSES_MS);
      expect((await holdOf('main'))?.health).toBe('slow');
      const late = await scratch.run('lock', 'renew', 'main', ...A, '--token', token);
      const why = 'the hold was lost because it was held for its --max-hold of 200 ms; acquire it again';
      expect([late.code, late.stderr]).toEqual([76, `signalbox: lock/main: ${why}\n`]);
    });
  });

  describe('interrupted while it waits, a command', () => {
    it.each([
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)('leaves the queue at once and ends with the code of %s', async (signal, code) => {
      await acquired('lock', 'acquire', 'main', ...A);
      const waiting = scratch.start('lock', 'acquire', 'main', ...B, '--quiet');
      await waitedFor('lock', 'main');
      waiting.child.kill(signal);
      expect(await waiting.ended).toEqual({ code, stdout: '', stderr: '' });
      expect(await scratch.json('lock', 'show', 'main')).toMatchObject({ waiting: [] });
    });
  });

  describe('a token that nobody takes', () => {
    it('is not held on to: the lock is free again', async () => {
      const script = `set -o pipefail; signalbox() { "$NODE" "$CLI" "$@"; }; signalbox lock acquire main --holder a | true; echo $?`;
      const env = { NODE: process.execPath, CLI, SIGNALBOX_URL: scratch.store };
      const { stdout } = await startProgram('bash', ['-c', script], { env }).ended;
      // Where the pipe swallowed it in time, it was handed over all the same.
      const { isFree } = await scratch.json<{ isFree: boolean }>('lock', 'show', 'main');
      expect({ code: stdout.trim(), isFree }).toEqual(isFree ? { code: '75', isFree } : { code: '0', isFree });
    });
  });

  describe('slots by hand', () => {
    it('are drained with a reason, and granted again after --undo', async () => {
      await scratch.json('sem', 'acquire', 'moved', '--capacity', '3', ...A);
      const drained = await scratch.json('sem', 'drain', 'moved', '--reason', 'a new database', '--holder', 'ops');
      expect(drained).toMatchObject({ resource: 'semaphore/moved', outcome: 'drained', drained: { by: 'ops' } });
      const refused = await scratch.run('sem', 'acquire', 'moved', '--no-wait', ...B);
      expect(refused).toMatchObject({ code: 75, stderr: expect.stringContaining('drained by ops (a new database)') });
      const who = await scratch.run('who');
      expect(who.stdout).toMatch(/semaphore\/moved +ops .*drained: grants nothing new/);
      expect(who.stdout).toContain('signalbox sem drain moved --undo');
      expect(await scratch.run('sem', 'drain', 'moved', '--undo')).toMatchObject({
        stdout: 'semaphore/moved: grants slots again\n',
      });
      expect(await scratch.run('sem', 'drain', 'moved', '--undo')).toMatchObject({ code: 1 });
      expect(await scratch.run('sem', 'drain', 'movd', '--reason', 'x')).toMatchObject({
        ...{ code: 64, stderr: expect.stringContaining('did you mean moved?') },
      });
    });

    it('are taken, counted, resized and given back', async () => {
      const held = await scratch.json<{ token: number }>(
        'sem',
        'acquire',
        'api',
        '--capacity',
        '3',
        '--weight',
        '2',
        ...A,
      );
      expect(held).toMatchObject({
        resource: 'semaphore/api',
        holder: 'agent:a',
        ttlMs: 60_000,
        weight: 2,
        slots: [0, 1],
      });
      expect(await scratch.json('sem', 'acquire', 'api', ...B)).toMatchObject({ slots: [2] });
      const full = await scratch.run('sem', 'acquire', 'api', '--no-wait', '--holder', 'c');
      expect(full).toMatchObject({ code: 75, stderr: expect.stringContaining('only 0 free') });
      expect(await scratch.run('sem', 'acquire', 'api', '--capacity', '9', '--holder', 'c')).toMatchObject({
        code: 64,
      });
      expect(await scratch.json('sem', 'resize', 'api', '--capacity', '4')).toEqual({
        resource: 'semaphore/api',
        capacity: 4,
      });
      expect(await scratch.json('sem', 'acquire', 'api', '--holder', 'c')).toMatchObject({ slots: [3] });
      const claim = [...A, '--token', String(held.token)];
      expect(await scratch.run('sem', 'renew', 'api', ...claim)).toMatchObject({ code: 0 });
      expect(await scratch.run('sem', 'renew', 'api', ...claim, '--ttl', '2m')).toMatchObject({ code: 0 });
      expect(await scratch.run('sem', 'release', 'api', ...claim)).toMatchObject({ code: 0 });
      expect(await scratch.run('sem', 'release', 'api', ...claim)).toMatchObject({ code: 77 });
      expect(await scratch.json('sem', 'show', 'api')).toMatchObject({ capacity: 4, usedSlots: 2, availableSlots: 2 });
      expect(await scratch.json('sem', 'break', 'api', '--reason', 'too slow', '--holder', 'user:me')).toEqual({
        resource: 'semaphore/api',
        broken: 2,
        by: 'user:me',
        reason: 'too slow',
      });
      expect(await scratch.run('sem', 'break', 'api', '--reason', 'again', '--json')).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('"code":"negative"'),
      });
      await scratch.run('sem', 'acquire', 'api', ...B);
      await scratch.run('sem', 'acquire', 'api', '--holder', 'c');
      expect((await scratch.run('sem', 'list', '--names')).stdout).toBe('api\n');
      expect((await scratch.run('sem', 'list')).stdout).toMatch(
        /^SEMAPHORE +USED +HOLDERS +WAITING\napi +2 of 4 +agent:b, c +0\n$/,
      );
    });
  });

  interface ShownHold {
    readonly holder: string;
    readonly isStale: boolean;
    readonly health: string;
  }

  async function holdOf(name: string): Promise<ShownHold | undefined> {
    return (await scratch.json<{ holds: ShownHold[] }>('lock', 'show', name)).holds[0];
  }

  async function waitedFor(kind: 'lock' | 'sem', name: string): Promise<void> {
    const isWaitedFor = async (): Promise<boolean> =>
      (await scratch.json<{ waiting: unknown[] }>(kind, 'show', name)).waiting.length > 0;
    await until(isWaitedFor, BETWEEN_PROCESSES_MS);
  }
});
