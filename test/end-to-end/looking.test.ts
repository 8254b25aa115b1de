// Looking: who holds what, what happens, and whether all is well.

import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { open } from 'signalbox';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEmbedded, openEtcdUrl, Value } from 'signalbox/store';
import { Scratch, signalbox, startProgram } from '../support/cli.ts';
import { newStoreOf, stores } from '../support/stores.ts';
import { BETWEEN_PROCESSES_MS, until } from '../support/until.ts';

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
      let who: Who = { locks: [] };
      await until(async () => {
        who = await scratch.json<Who>('who');
        return who.locks.some((lock) => lock.waiting.length > 0);
      }, BETWEEN_PROCESSES_MS);
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
        /^RESOURCE .*\nlock\/main +worker:1 .* renewed \d+ m?s ago\n {2}merging · \S+ in \S+ · pid \d+ on .*\n +1\. agent:9 .* waiting behind worker:1\n/,
      );
      expect(stdout).not.toContain('docs');
      waiting.child.kill('SIGINT');
      await waiting.ended;
    });

    it('names the command, the user and the directory of a run, and what it left running when it is gone', async () => {
      const command = ['sh', '-c', 'echo $$ > pid; echo on; exec sleep 1000'];
      const run = scratch.start('run', '--lock', 'main', '--reason', 'deploying', '--', ...command);
      await run.printed('on\n');
      const pid = readFileSync(scratch.path('pid'), 'utf8').trim();
      const held = (await scratch.run('who')).stdout;
      expect(held).toContain(
        `deploying · runs sh · ${userInfo().username} in ${scratch.dir} · pid ${run.child.pid} on `,
      );
      run.child.kill('SIGKILL');
      await once(run.child, 'exit');
      const left = (await scratch.run('who')).stdout;
      expect(left).toMatch(
        /process gone\n {2}its process is gone but its command still runs \(pid \d+\); its lease ends in /,
      );
      expect(left).toContain(`(pid ${pid})`);
      expect(left).not.toContain(`pid ${run.child.pid}`);
      const waits = scratch.start('run', '-v', '--lock', 'main', '--', 'echo', 'next');
      await waits.complained(`(deploying) since `);
      await waits.complained(`its process is gone but its command still runs (pid ${pid}); its lease ends in `);
      process.kill(Number(pid), 'SIGKILL');
      expect(await waits.ended).toMatchObject({ code: 0, stdout: 'next\n' });
    });

    it('and status show the same again whenever it changes, with --watch', async () => {
      const lines = scratch.start('who', '--watch', '--json');
      const screen = scratch.start('status', '--watch');
      await lines.printed('"locks":[]');
      await screen.printed('Locks and slots: none\n\nTasks: none\n\nPipelines: none\n\nMembers: none\n');
      await using box = await open(scratch.store);
      await box.lock('main').acquire({ holder: 'worker:1' });
      await lines.printed('"holder":"worker:1"');
      await screen.printed('lock/main  worker:1');
      for (const { child } of [lines, screen]) child.kill('SIGINT');
      expect([(await lines.ended).code, (await screen.ended).code]).toEqual([130, 130]);
    });

    it('is part of status, with tasks, pipelines and members', async () => {
      await using box = await open(scratch.store);
      await box.lock('main').acquire({ holder: 'worker:1', reason: 'merging' });
      await box.tasks.publish('one', {});
      await box.tasks.publish('two', {});
      await box.tasks.claim('one', { holder: 'worker:2' });
      await box.members.join('alpha', { zone: 'b' });
      await box.pipelines.run({ name: 'r', phases: [{ name: 'a', run: 'exit 3' }] }, { id: 'r-1' });
      const { stdout } = await scratch.run('status');
      expect(stdout).toMatch(/^Locks and slots\n {2}RESOURCE .*\n {2}lock\/main +worker:1 .*\n {4}merging · /);
      expect(stdout).toMatch(/\nTasks: 1 pending, 1 running\n {2}TASK .*\n {2}one +running +0 +worker:2 /);
      expect(stdout).toMatch(/\nPipelines: 1 failed\n {2}PIPELINE .*\n {2}r-1 +failed .*\n {4}phase a: exit code 3\n/);
      expect(stdout).toMatch(/\nMembers\n {2}MEMBER .*\n {2}alpha .*coordinator\n$/);
      expect(await scratch.json('status')).toMatchObject({
        locks: [{ name: 'main' }, { name: 'pipeline:r-1' }],
        tasks: { counts: { pending: 1, running: 1, complete: 0, failed: 0 }, running: [{ task: 'one' }] },
        pipelines: [{ pipeline: 'r-1', state: 'failed', isDriven: false }],
        members: [{ id: 'alpha', metadata: { zone: 'b' } }],
      });
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
      const reason = plain.join('').match(/z{20,}/g) ?? [];
      expect(reason.join(''), 'the reason is never cut').toHaveLength(300);
      expect((await onTerminal({})).join('\n')).toContain('\x1b[1mlock/xxx');
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
      const none = `There is no store at ${scratch.store} yet.`;
      for (const [args, told] of [
        ['who', ' Nothing is held or waited for.'],
        ['who main', ' Nothing is held or waited for.'],
        ['status', ' There are no locks, tasks, pipelines or members.'],
        ['lock list', ' No lock has been used.'],
        ['sem list', ' No semaphore has been used.'],
        ['task list --status failed', ' No task is failed.'],
        ['pipeline list', ' There are no pipelines.'],
        ['members list', ' There are no members.'],
        ['lock show a', '\nlock/a is free.'],
        ['sem show a', '\nsemaphore/a has not been used.'],
      ] as const) {
        expect(await scratch.run(...args.split(' '))).toEqual({ code: 0, stdout: `${none}${told}\n`, stderr: '' });
      }
      expect(await scratch.run('lock', 'list', '--names')).toEqual({ code: 0, stdout: '', stderr: '' });
      expect(await scratch.json('who')).toMatchObject({ locks: [], semaphores: [] });
      expect(await scratch.json('lock', 'list')).toEqual({ locks: [], malformed: [] });
      expect(await scratch.json('lock', 'show', 'a')).toMatchObject({ name: 'a', isFree: true, holds: [] });
      expect(await scratch.run('export', scratch.path('backup'))).toMatchObject({
        code: 0,
        stderr: `signalbox: ${none} The files are empty.\n`,
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
    it('begin in the past with --since, by time and with reasons', async () => {
      await using box = await open(scratch.store);
      await using hold = await box.lock('main').acquire({ holder: 'worker:1', reason: 'merging change 42' });
      // On etcd tasks have keys that all stores of a server share.
      const task = `since-${process.pid}`;
      await box.tasks.publish(task, {});
      const waits = scratch.start('lock', 'acquire', 'main', '--holder', 'agent:9', '--reason', 'a hotfix');
      const queued = scratch.start('events', 'tail', 'lock:queued', '--since', '1h', '-n', '1');
      expect((await queued.ended).stdout).toMatch(/lock:queued .*agent:9 .*reason="a hotfix"\n$/);
      await hold.release();
      await waits.ended;
      const { code, stdout } = await scratch.run('events', 'tail', '--since', '1h', '--no-follow');
      expect(code).toBe(0);
      const lines = stdout.split('\n').filter((line) => line.includes(' lock/main ') || line.includes(` task/${task}`));
      const types = lines.map((line) => line.split(/ +/)[1]);
      expect(types).toEqual(['lock:acquired', 'task:published', 'lock:queued', 'lock:released', 'lock:acquired']);
      expect(stdout).toMatch(/lock:acquired .*worker:1 .*reason="merging change 42"\n/);
      expect((await scratch.run('events', 'tail', '--since', '1ms', '--no-follow')).stdout).toBe('');
      expect((await scratch.run('events', 'tail', '--no-follow')).code).toBe(64);
      expect((await scratch.run('events', 'tail', 'lock:aquired')).stderr).toContain('did you mean lock:acquired?');
    });

    it('are printed as they happen, one in a line, until as many have come as were asked for', async () => {
      await using box = await open(scratch.store);
      const plain = scratch.start('events', 'tail', 'lock:*', '-n', '2');
      const json = scratch.start('events', 'tail', '-n', '2', '--json');
      // Whoever follows hears of it; until then it happens again.
      await until(async () => {
        await box.lock('main').run(() => undefined, { holder: 'worker:1' });
        return plain.child.exitCode !== null && json.child.exitCode !== null;
      });
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
      await until(async () => {
        await box.lock('main').run(() => undefined);
        return isFollowing;
      });
      tail.child.kill('SIGINT');
      expect(await tail.ended).toMatchObject({ code: 130, stderr: '' });
    });
  });

  describe('maintenance', () => {
    it('frees what is stale, says what it freed, and leaves alone what a person has to decide', async () => {
      await using box = await open(scratch.store, { maintains: false });
      await box.lock('careful').configure({ onStale: 'alert' });
      for (const name of ['main', 'careful']) {
        await scratch.run('lock', 'acquire', name, '--holder', 'agent:7', '--ttl', '2s');
      }
      await until(async () => (await box.survey()).locks.every(({ holds }) => holds.every(({ isStale }) => isStale)));
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
      await scratch.run('lock', 'acquire', 'main', '--holder', 'a', '--ttl', '2s');
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
      await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:7', '--ttl', '2s');
      // Long enough for a busy machine: it must not be stale too when `main` is.
      await scratch.run('lock', 'acquire', 'other', '--holder', 'agent:7', '--ttl', '1h');
      // etcd grants no lease as short as that, and notices the end of one a little later.
      let code = -1;
      let stdout = '';
      await until(async () => {
        ({ code, stdout } = await scratch.run('doctor'));
        return stdout.includes('1 stale');
      }, BETWEEN_PROCESSES_MS);
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
