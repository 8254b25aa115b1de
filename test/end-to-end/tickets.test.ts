// A wait that ran out keeps its place: each command is a process of its own, and no other process runs in between.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { type Ended, Scratch } from '../support/cli.ts';
import { newStoreOf, stores } from '../support/stores.ts';
import { BETWEEN_PROCESSES_MS, until } from '../support/until.ts';

const A = ['--holder', 'agent:a'];
const B = ['--holder', 'agent:b'];
const C = ['--holder', 'agent:c'];

describe.each(stores)('a ticket on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch(newStore)));
  afterEach(() => scratch.remove());

  async function waiting(): Promise<readonly string[]> {
    const { waiting: all } = await scratch.json<{ waiting: { holder: string }[] }>('lock', 'show', 'main');
    return all.map(({ holder }) => holder);
  }

  function ticketIn({ code, stderr }: Ended): string {
    expect(code).toBe(75);
    return /--ticket (\S+)$/m.exec(stderr)?.[1] ?? '';
  }

  it('keeps the place of `lock acquire`, and the same call with it gets the lock in its turn', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A, '--reason', 'merging');
    const late = await scratch.run('lock', 'acquire', 'main', ...B, '--ttl', '30m', '--wait', '3', '--ticket');
    const ticket = ticketIn(late);
    expect(late.stdout).toBe(`${ticket}\n`);
    expect(late.stderr).toContain('held by agent:a (merging)');
    // A later request is behind it, although nobody waits with the ticket now.
    const later = await scratch.run('lock', 'acquire', 'main', ...C, '--no-wait', '--ticket', '--json');
    expect(JSON.parse(later.stderr)).toMatchObject({ error: { code: 'not-acquired', ticketMs: 60_000 } });
    expect(await waiting()).toEqual(['agent:b', 'agent:c']);
    const again = await scratch.run('lock', 'acquire', 'main', ...B, '--no-wait', '--ticket', ticket);
    expect(ticketIn(again)).toBe(ticket);
    await scratch.run('lock', 'release', 'main', ...A);
    const got = await scratch.json('lock', 'acquire', 'main', ...B, '--wait', '5m', '--ticket', ticket);
    // The ticket lasts 60 s, and the hold as long as was asked for.
    expect(got).toMatchObject({ holder: 'agent:b', outcome: 'acquired', ttlMs: 1_800_000 });
    expect(await waiting()).toEqual(['agent:c']);
  });

  it('keeps the place of `run`, for several locks at once, and the next run begins with what the first has', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A);
    const wants = ['run', '--lock', 'main', '--lock', 'docs', '--sem', 'builds/2'];
    const late = await scratch.run(...wants, '--no-wait', '--ticket', '--', 'echo', 'too soon');
    const ticket = ticketIn(late);
    expect(late.stdout).toBe('');
    const holder = (await waiting())[0] ?? '';
    expect(holder).toMatch(/^run:/);
    await scratch.run('lock', 'release', 'main', ...A);
    const print = 'echo "$SIGNALBOX_HOLDER $SIGNALBOX_TOKEN_MAIN $SIGNALBOX_TOKEN_DOCS"';
    const got = await scratch.run(...wants, '--wait', '5m', '--ticket', ticket, '--', 'sh', '-c', print);
    expect(got).toMatchObject({ code: 0, stderr: '' });
    expect(got.stdout).toMatch(new RegExp(`^${holder} \\d+ \\d+\n$`));
    const { locks, semaphores } = await scratch.json<{ locks: object[]; semaphores: object[] }>('who');
    expect([...locks, ...semaphores].filter((one) => (one as { holds: object[] }).holds.length > 0)).toEqual([]);
  });

  it('that has ended costs the place, and says so', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A);
    const late = await scratch.run('lock', 'acquire', 'main', ...B, '--no-wait', '--ticket', '0123456789abcdef.2');
    expect(late.stderr).toContain('this ticket has ended');
    expect(ticketIn(late)).not.toBe('0123456789abcdef.2');
    const run = await scratch.run('run', '--lock', 'free', '--ticket', '0123456789abcdef.2', '--', 'echo', 'begun');
    expect(run).toMatchObject({ code: 0, stdout: 'begun\n' });
    expect(run.stderr).toContain('this ticket has ended');
  });

  it('is given up by `release`: at once the next in line goes, also if its turn had come', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A);
    const first = ticketIn(await scratch.run('lock', 'acquire', 'main', ...B, '--no-wait', '--ticket'));
    const wants = ['run', '--lock', 'docs', '--lock', 'main', '--no-wait'];
    const second = ticketIn(await scratch.run(...wants, '--ticket', '--', 'echo', 'too soon'));
    const given = await scratch.json('lock', 'release', 'main', '--ticket', first);
    expect(given).toEqual({ resource: 'lock/main', holder: 'agent:b', ticket: first, outcome: 'withdrawn' });
    const again = await scratch.run('lock', 'release', 'main', '--ticket', first);
    expect(again).toMatchObject({ code: 77, stdout: '' });
    expect(again.stderr).toContain('this ticket keeps no place in line');
    const foreign = await scratch.run('lock', 'release', 'main', '--ticket', second, ...C);
    expect(foreign).toMatchObject({ code: 77, stdout: '' });
    await scratch.run('lock', 'release', 'main', ...A);
    // Its turn has come, and nothing runs.
    const { stdout: who } = await scratch.run('who', 'main');
    expect(who).toContain('not collected yet: its turn lapses in');
    expect(who).not.toContain('runs echo');
    const refused = await scratch.run('lock', 'acquire', 'main', ...C, '--no-wait');
    expect(refused.stderr).toContain(', not collected yet: its turn lapses in');
    const { stdout } = await scratch.run('lock', 'release', 'main', '--ticket', second);
    expect(stdout).toMatch(/^lock\/main: run:\S+ has given up its place in line\n$/);
    expect(await scratch.run('lock', 'acquire', 'main', ...C, '--no-wait')).toMatchObject({ code: 0 });
    expect(await scratch.json('lock', 'release', 'docs', '--ticket', second)).toMatchObject({ outcome: 'withdrawn' });
  });

  it('that is in the way of another request is named to that one, if the hold before it is stale', async () => {
    const { stdout: token } = await scratch.run('lock', 'acquire', 'main', ...A);
    await scratch.run('lock', 'acquire', 'main', ...B, '--ttl', '1h', '--no-wait', '--ticket');
    await scratch.run('lock', 'renew', 'main', ...A, '--token', token.trim(), '--ttl', '1s');
    type Shown = { readonly holds: readonly { readonly isStale: boolean }[] };
    await until(
      async () => (await scratch.json<Shown>('lock', 'show', 'main')).holds[0]?.isStale,
      BETWEEN_PROCESSES_MS,
    );
    const { code, stderr } = await scratch.run('lock', 'acquire', 'main', ...C, '--no-wait');
    expect([code, stderr]).toEqual([75, 'signalbox: lock/main: behind agent:b, which waits and goes first\n']);
  });

  it('is not named to a request for which too few slots are free anyway', async () => {
    await scratch.run('sem', 'acquire', 'api', ...A, '--capacity', '5', '--weight', '3');
    await scratch.run('sem', 'acquire', 'api', ...B, '--weight', '3', '--no-wait', '--ticket');
    const light = await scratch.run('sem', 'acquire', 'api', ...C, '--no-wait');
    expect(light.stderr).toContain('behind agent:b');
    const heavy = await scratch.run('sem', 'acquire', 'api', ...C, '--weight', '5', '--no-wait');
    expect([heavy.code, heavy.stderr.includes('behind'), heavy.stderr.includes('agent:a')]).toEqual([75, false, true]);
  });

  it('is given up with Ctrl-C: the request leaves the line', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A);
    const asking = scratch.start('lock', 'acquire', 'main', ...B, '--ticket');
    await asking.complained('waiting for lock/main');
    asking.child.kill('SIGINT');
    expect(await asking.ended).toMatchObject({ code: 130, stdout: '' });
    const running = scratch.start('run', '--lock', 'main', '--ticket', '--', 'echo', 'begun');
    await running.complained('waiting for lock/main');
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ stdout: '' });
    expect(await waiting()).toEqual([]);
  });
});

describe('a ticket', () => {
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch()));
  afterEach(() => scratch.remove());

  it('and a token exclude each other, because a hold has no place in line', async () => {
    const both = await scratch.run('lock', 'release', 'main', ...A, '--ticket', '0123456789abcdef.2', '--token', '7');
    expect(both).toMatchObject({ code: 64, stdout: '' });
    expect(both.stderr).toContain('--ticket and --token exclude each other');
  });

  it('in a wrong form is refused, and so is a name in its place', async () => {
    const wrong = await scratch.run('lock', 'acquire', 'main', ...A, '--ticket', 'docs');
    expect(wrong).toMatchObject({ code: 64, stdout: '' });
    expect(wrong.stderr).toContain('--ticket is "docs", which is no ticket');
    expect(await scratch.run('run', '--lock', 'main', '--ticket', 'git', 'push')).toMatchObject({ code: 64 });
  });

  it('keeps the place of slots', async () => {
    await scratch.run('sem', 'acquire', 'api', ...A, '--capacity', '2', '--weight', '2');
    const late = await scratch.run('sem', 'acquire', 'api', ...B, '--no-wait', '--ticket');
    expect(late.code).toBe(75);
    await scratch.run('sem', 'release', 'api', ...A);
    const got = await scratch.json('sem', 'acquire', 'api', ...B, '--wait', '5m', '--ticket', late.stdout.trim());
    expect(got).toMatchObject({ holder: 'agent:b', weight: 1, slots: [0] });
  });

  it('lets the run that goes on with it lose its lock like any other', async () => {
    await scratch.run('lock', 'acquire', 'main', ...A);
    const late = await scratch.run('run', '--lock', 'main', '--no-wait', '--ticket', '--', 'true');
    const ticket = /--ticket (\S+)$/m.exec(late.stderr)?.[1] ?? '';
    await scratch.run('lock', 'release', 'main', ...A);
    const running = scratch.start(
      'run',
      '--lock',
      'main',
      '--ticket',
      ticket,
      '--',
      'sh',
      '-c',
      'echo begun; sleep 60',
    );
    await running.printed('begun');
    expect(await scratch.json('lock', 'show', 'main')).toMatchObject({ holds: [{ isAttached: true }] });
    await scratch.run('lock', 'break', 'main', '--reason', 'for a test');
    expect(await running.ended).toMatchObject({ code: 76 });
  });
});

describe('a hold that is tied to a process', () => {
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch()));
  afterEach(() => scratch.remove());

  it('is free as soon as that process has ended, for a request that waits and for one that does not', async () => {
    for (const wait of [['--wait', '5m'], ['--no-wait']]) {
      const agent = spawn('sleep', ['1000']);
      const pid = String(agent.pid);
      const held = await scratch.json('lock', 'acquire', 'main', ...A, '--pid', pid, '--ttl', '1h');
      expect(held).toMatchObject({ endsWithPid: agent.pid });
      expect((await scratch.run('who')).stdout).toContain(`ends with pid ${pid}`);
      // It stays tied when it is renewed for another time.
      const { token } = held as { token: number };
      await scratch.run('lock', 'renew', 'main', ...A, '--token', String(token), '--ttl', '2h');
      expect((await scratch.run('lock', 'acquire', 'main', ...B, '--no-wait')).code).toBe(75);
      const ended = new Promise((resolve) => agent.on('exit', resolve));
      agent.kill('SIGKILL');
      await ended;
      expect(await scratch.run('lock', 'acquire', 'main', ...B, ...wait)).toMatchObject({ code: 0 });
      await scratch.run('lock', 'release', 'main', ...B);
    }
  });

  it('is the same hold that its holder had before, if that is asked for again with a process', async () => {
    const [agent, next] = [spawn('sleep', ['1000']), spawn('sleep', ['1000'])];
    const box = await open(scratch.store);
    const asked = { holder: 'agent:a', ttlMs: 3_600_000 };
    const { token } = await box.lock('main').acquireDetached(asked);
    const tied = await box.lock('main').acquireDetached({ ...asked, pid: agent.pid as number });
    expect(tied).toMatchObject({ token, endsWithPid: agent.pid });
    // The last word counts.
    expect(await box.lock('main').acquireDetached({ ...asked, pid: next.pid as number })).toMatchObject({
      ...{ token, endsWithPid: next.pid },
    });
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    expect(await box.lock('main').renew({ holder: 'agent:a', token })).toMatchObject({ kind: 'refreshed' });
    const waiting = box.lock('main').acquire({ holder: 'agent:b' });
    next.kill('SIGKILL');
    expect(await waiting).toMatchObject({ holder: 'agent:b' });
    await box.close();
  });

  it('that waits with a ticket leaves the line with it', async () => {
    const agent = spawn('sleep', ['1000']);
    await scratch.run('lock', 'acquire', 'main', ...A);
    await scratch.run('lock', 'acquire', 'main', ...B, '--pid', String(agent.pid), '--no-wait', '--ticket');
    const next = scratch.start('lock', 'acquire', 'main', ...C, '--wait', '5m');
    await next.complained('2nd in line');
    const ended = new Promise((resolve) => agent.on('exit', resolve));
    agent.kill('SIGKILL');
    await ended;
    await scratch.run('lock', 'release', 'main', ...A);
    expect(await next.ended).toMatchObject({ code: 0 });
  });

  it('names a process that runs: any other is refused', async () => {
    const agent = spawn('true');
    await new Promise((resolve) => agent.on('exit', resolve));
    const gone = await scratch.run('lock', 'acquire', 'main', ...A, '--pid', String(agent.pid));
    expect(gone).toMatchObject({ code: 64, stdout: '' });
    expect(gone.stderr).toContain('no such process runs here');
    expect(await scratch.run('sem', 'acquire', 'api', ...A, '--capacity', '1', '--pid', '0')).toMatchObject({
      code: 64,
    });
  });
});
