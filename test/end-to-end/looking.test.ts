// Looking: who holds what, what happens, and whether all is well.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { open } from 'signalbox';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEmbedded, openEtcdUrl, Value } from 'signalbox/store';
import { Scratch, signalbox, startProgram } from '../support/cli.ts';
import { newStoreOf, stores } from '../support/stores.ts';

describe.each(stores)('on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  const onFile = kind === 'file' ? it : undefined;
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch(newStore)));
  afterEach(() => scratch.remove());

  interface Who {
    readonly locks: readonly {
      readonly name: string;
      readonly holds: readonly { readonly holder: string; readonly health: string; readonly session: unknown }[];
      readonly waiting: readonly { readonly holder: string; readonly waitsFor: readonly string[] }[];
    }[];
  }

  describe('who', () => {
    it('shows holds of programs and of scripts, and who waits for whom', async () => {
      await using box = await open(scratch.store);
      await box.lock('main').acquire({ holder: 'worker:1', reason: 'merging' });
      await scratch.run('lock', 'acquire', 'docs', '--holder', 'agent:7');
      const waiting = scratch.start('lock', 'acquire', 'main', '--holder', 'agent:9');
      let who = await scratch.json<Who>('who');
      while (who.locks.every((lock) => lock.waiting.length === 0)) who = await scratch.json<Who>('who');
      expect(who.locks).toMatchObject([
        { name: 'docs', holds: [{ holder: 'agent:7', isAttached: false, session: null, health: 'renewed' }] },
        {
          name: 'main',
          holds: [{ holder: 'worker:1', isAttached: true, session: { pid: process.pid }, reason: 'merging' }],
          waiting: [{ holder: 'agent:9', position: 1, waitsFor: ['worker:1'], session: { pid: waiting.child.pid } }],
        },
      ]);
      const { stdout } = await scratch.run('who', 'lock/main');
      expect(stdout).toMatch(
        /^RESOURCE .*\nlock\/main +worker:1 .* renewed \d+ m?s ago\n {2}merging · pid \d+ on .*\n +1\. agent:9 /,
      );
      expect(stdout).not.toContain('docs');
      waiting.child.kill('SIGINT');
      await waiting.ended;
    });

    it('fits a terminal, in colour unless NO_COLOR says otherwise', async () => {
      await scratch.run('lock', 'acquire', 'x'.repeat(150), '--holder', 'y'.repeat(150), '--reason', 'z'.repeat(300));
      const onTerminal = async (env: Record<string, string>): Promise<string[]> => {
        const command = `stty cols 80; "${process.execPath}" "${(await import('../support/cli.ts')).CLI}" who`;
        const all = { SIGNALBOX_URL: scratch.store, TERM: 'xterm', ...env };
        const { stdout } = await startProgram('script', ['-qec', command, '/dev/null'], { env: all }).ended;
        return stdout.split(/\r?\n/);
      };
      const plain = await onTerminal({ NO_COLOR: '1' });
      expect(plain.filter((line) => [...line].length > 80)).toEqual([]);
      expect(plain.join('\n')).toContain('x…');
      expect(plain.join('\n')).not.toContain('\x1b');
      expect((await onTerminal({})).join('\n')).toContain('\x1b[1mRESOURCE');
    });

    it('and lists make no session and write nothing', async () => {
      await scratch.run('lock', 'acquire', 'main', '--holder', 'a');
      const before = await scratch.json<{ revision: number }>('who');
      await scratch.run('lock', 'list');
      await scratch.run('lock', 'show', 'main');
      await scratch.run('sem', 'list');
      expect((await scratch.json<{ revision: number }>('who')).revision).toBe(before.revision);
      expect((await scratch.run('lock', 'list', '--names')).stdout).toBe('main\n');
    });

    onFile?.('and lists make no store where there is none', async () => {
      const told = `No store at ${scratch.store} yet: nothing is held or waited for.\n`;
      for (const args of [
        ['who'],
        ['who', 'main'],
        ['lock', 'list'],
        ['sem', 'list'],
        ['lock', 'show', 'a'],
        ['sem', 'show', 'a'],
      ]) {
        expect(await scratch.run(...args)).toEqual({ code: 0, stdout: told, stderr: '' });
      }
      expect(await scratch.run('lock', 'list', '--names')).toEqual({ code: 0, stdout: '', stderr: '' });
      expect(await scratch.json('who')).toMatchObject({ locks: [], semaphores: [] });
      expect(await scratch.json('lock', 'list')).toEqual({ locks: [], malformed: [] });
      expect(await scratch.json('lock', 'show', 'a')).toMatchObject({ name: 'a', isFree: true, holds: [] });
      expect(await scratch.run('export', scratch.path('backup'))).toMatchObject({
        code: 0,
        stderr: `signalbox: ${told}`,
      });
      expect(existsSync(scratch.path('store'))).toBe(false);
    });

    it('takes a plain name for the lock and the semaphore of that name, and says where it looked', async () => {
      await scratch.run('lock', 'acquire', 'main', '--holder', 'a');
      await scratch.run('sem', 'acquire', 'main', '--capacity', '2', '--holder', 'a');
      await scratch.run('lock', 'acquire', 'other', '--holder', 'a');
      expect(await scratch.json('who', 'main')).toMatchObject({
        locks: [{ name: 'main' }],
        semaphores: [{ name: 'main' }],
      });
      expect((await scratch.run('who', 'main')).stdout).not.toContain('other');
      expect((await scratch.run('who', 'nobody')).stdout).toBe(
        `Neither lock/nobody nor semaphore/nobody is held or waited for in ${scratch.store}.\n`,
      );
      expect((await scratch.run('who', 'lock/nobody')).stdout).toBe(
        `lock/nobody is neither held nor waited for in ${scratch.store}.\n`,
      );
    });
  });

  describe('events', () => {
    it('are printed as they happen, one in a line, until as many have come as were asked for', async () => {
      await using box = await open(scratch.store);
      const plain = scratch.start('events', 'tail', 'lock:*', '-n', '2');
      const json = scratch.start('events', 'tail', '-n', '2', '--json');
      // Whoever follows hears of it; until then it happens again.
      while (plain.child.exitCode === null || json.child.exitCode === null) {
        await box.lock('main').run(() => undefined, { holder: 'worker:1' });
        await new Promise(setImmediate);
      }
      const lines = (await plain.ended).stdout.trimEnd().split('\n');
      expect(lines).toHaveLength(2);
      expect(lines.join('\n')).toMatch(/^\S+Z {2}lock:(acquired|released) +lock\/main {2}worker:1 {2}token=\d+/);
      const events = (await json.ended).stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as object);
      expect(events).toHaveLength(2);
      expect(events[0]).toMatchObject({ resource: 'lock/main', holder: 'worker:1', at: expect.stringMatching(/Z$/) });
    });

    it('end after the time that was asked for, and with Ctrl-C', async () => {
      expect(await scratch.run('events', 'tail', '--for', '100ms')).toEqual({ code: 0, stdout: '', stderr: '' });
      await using box = await open(scratch.store);
      const tail = scratch.start('events', 'tail');
      const follows = tail.printed('lock:acquired');
      let isFollowing = false;
      void follows.then(() => (isFollowing = true));
      while (!isFollowing) {
        await box.lock('main').run(() => undefined);
        await new Promise(setImmediate);
      }
      tail.child.kill('SIGINT');
      expect(await tail.ended).toMatchObject({ code: 130, stderr: '' });
    });
  });

  describe('maintenance', () => {
    it('frees what is stale, says what it freed, and leaves alone what a person has to decide', async () => {
      await using box = await open(scratch.store, { maintains: false });
      await box.lock('careful').configure({ onStale: 'alert' });
      for (const name of ['main', 'careful']) {
        await scratch.run('lock', 'acquire', name, '--holder', 'agent:7', '--ttl', '100ms');
      }
      while ((await box.survey()).locks.some(({ holds }) => holds.some(({ isStale }) => !isStale)));
      const warned = await scratch.json('maintain', '--no-reclaim');
      expect(warned).toMatchObject({ resources: 2, freed: 0, stale: [{ isFreed: false }, { isFreed: false }] });
      const { code, stdout } = await scratch.run('maintain');
      expect(code).toBe(0);
      expect(stdout).toMatch(/^lock\/careful: the hold of agent:7 \(token \d+\) is stale; not freed$/m);
      expect(stdout).toMatch(/^lock\/main: the hold of agent:7 \(token \d+\) is stale; freed$/m);
      expect(stdout).toMatch(/^checked 2 resources: freed 1 stale hold, left 1 alone, forgot 0 unused locks$/m);
      expect(await box.lock('main').isFree()).toBe(true);
    });

    it('goes on until it is interrupted, where that was asked for', async () => {
      const watching = scratch.start('maintain', '--watch', '--every', '50ms');
      await watching.printed('checked 0 resources');
      await scratch.run('lock', 'acquire', 'main', '--holder', 'a', '--ttl', '100ms');
      await watching.printed('lock/main: the hold of a');
      watching.child.kill('SIGINT');
      expect(await watching.ended).toMatchObject({ code: 130, stderr: '' });
    });

    it('pauses as long as it was told, also where that is longer than the timers of Node can', async () => {
      const watching = scratch.start('maintain', '--watch', '--every', '90d');
      await watching.printed('checked 0 resources');
      watching.child.kill('SIGINT');
      // Node warns of a timer that is too long, and lets it ring at once.
      expect(await watching.ended).toMatchObject({ code: 130, stderr: '' });
    });
  });

  describe('keys that hold what nobody wrote', () => {
    it('are passed over and named by every command that looks at all, and fail one that wants just that', async () => {
      await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:7');
      const store = kind === 'file' ? await openEmbedded(scratch.path('store')) : await openEtcdUrl(scratch.store);
      const broken = ['r/lock/broken', 's/pipeline/broken'];
      const success = broken.map((key) => ({ do: 'put' as const, key, value: Value.text('{"record":') }));
      await store.transaction({ compare: [], success, failure: [] });
      await store.close();
      const named = /skipped: "r\/lock\/broken" cannot be read: it does not hold JSON/;
      for (const args of [['who'], ['lock', 'list'], ['maintain'], ['export', scratch.path('saved')]]) {
        const { code, stderr } = await scratch.run(...args);
        expect([args, code, named.test(stderr)]).toEqual([args, 0, true]);
      }
      expect(await scratch.json('who')).toMatchObject({
        locks: [{ name: 'main' }],
        malformed: [{ key: 'r/lock/broken' }],
      });
      expect(await scratch.json('pipeline', 'list')).toMatchObject({ malformed: [{ key: 's/pipeline/broken' }] });
      const { code, stdout } = await scratch.run('doctor');
      expect(code).toBe(1);
      expect(stdout).toMatch(/^fail +keys +.*r\/lock\/broken.*s\/pipeline\/broken/m);
      for (const args of [
        ['who', 'broken'],
        ['lock', 'show', 'broken'],
        ['run', '--lock', 'broken', '--', 'true'],
      ]) {
        expect(await scratch.run(...args)).toMatchObject({
          code: 65,
          stderr: expect.stringContaining('r/lock/broken'),
        });
      }
    });
  });

  describe('the doctor', () => {
    it('finds a store healthy, line by line', async () => {
      const { code, stdout } = await scratch.run('doctor');
      expect(code).toBe(0);
      const checks = [
        'store',
        'write',
        'wake',
        'history',
        'stale-holds',
        'leases',
        ...(kind === 'file' ? ['file-system', 'disk', 'database'] : ['etcd']),
        'clock',
        'versions',
      ];
      for (const check of checks) expect(stdout).toMatch(new RegExp(`^(ok|warn)  +${check} `, 'm'));
      expect(await scratch.json('doctor')).toMatchObject({ store: scratch.store, isHealthy: true });
    });

    it('warns of stale holds, and says what to do', async () => {
      await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:7', '--ttl', '50ms');
      await scratch.run('lock', 'acquire', 'other', '--holder', 'agent:7');
      // etcd grants no lease as short as that, and notices the end of one a little later.
      let { code, stdout } = await scratch.run('doctor');
      while (!stdout.includes('1 stale')) ({ code, stdout } = await scratch.run('doctor'));
      expect(code).toBe(0);
      expect(stdout).toMatch(
        /warn +stale-holds +1 stale: lock\/main of agent:7 .*\n +→ signalbox maintain.*signalbox lock break NAME/,
      );
    });

    onFile?.('is not content with a file that is not a store, and does not touch it', async () => {
      mkdirSync(scratch.path('store'));
      writeFileSync(scratch.path('store', 'store.db'), 'my diary, page one');
      const { code, stdout } = await scratch.run('doctor');
      expect(code).toBe(1);
      expect(stdout).toMatch(/^fail +store +.*is not a store of signalbox/m);
      expect(await scratch.run('who')).toMatchObject({ code: 65 });
    });

    it('tells of a store that cannot be reached with 69', async () => {
      writeFileSync(scratch.path('plain-file'), '');
      // Port 1 is for a service that nobody has.
      const nowhere = kind === 'file' ? `file:${scratch.path('plain-file')}` : 'etcd://127.0.0.1:1';
      const { code, stdout } = await signalbox(['doctor', '--json', '--store', nowhere]);
      expect(code).toBe(69);
      const { isHealthy, findings } = JSON.parse(stdout) as { isHealthy: boolean; findings: readonly object[] };
      expect(isHealthy).toBe(false);
      expect(findings[0]).toMatchObject({
        check: 'store',
        verdict: 'fail',
        advice: expect.stringContaining('SIGNALBOX_URL'),
      });
    });
  });
});
