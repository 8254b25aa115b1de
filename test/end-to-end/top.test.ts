// The board on a real terminal: it is live, obeys keys, fits the window, and leaves the terminal as it was.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Signalbox } from 'signalbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFailed } from 'vitest';
import { LockManager } from 'signalbox/github';
import { serveLocalGitHub } from '../../src/github/local/serve.ts';
import { isMissing } from '../support/programs.ts';
import { built, ENTRY, Place } from '../support/run-processes.ts';

describe.skipIf(isMissing('tmux'))('top', () => {
  let place: Place;
  let box: Signalbox;

  const tmux = (...args: readonly string[]): string => {
    const env = { ...process.env, TMUX_TMPDIR: place.directory, TMUX: '', LC_ALL: 'C.UTF-8' };
    return execFileSync('tmux', ['-u', '-f', '/dev/null', ...args], {
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  };
  const screen = (): string => tmux('capture-pane', '-p', '-t', 'box');
  const keys = (...names: readonly string[]): string => tmux('send-keys', '-t', 'box', ...names);
  /** The screen, once it shows this. */
  const shows = async (what: RegExp): Promise<string> => {
    for (;;) {
      const now = screen();
      if (what.test(now)) return now;
      await sleep(100);
    }
  };
  /** Whether the other screen is shown, whether the cursor is, whether lines are wrapped, and the modes of the terminal. */
  const modes = (): string => tmux('display', '-p', '-t', 'box', '#{alternate_on} #{cursor_flag} #{wrap_flag}').trim();
  const USUAL = '0 1 1';
  let runs = 0;
  /** Types a command, which says at its end how it ended and whether the terminal echoes. */
  const start = (command: string): { ended(code: number): Promise<void> } => {
    const run = ++runs;
    keys(`${command}; echo "run ${run} ended with $?" $(stty -a | grep -ow '.\\?echo')`, 'Enter');
    return {
      async ended(code) {
        await shows(new RegExp(`run ${run} ended with ${code} echo\\n`));
        expect(modes()).toBe(USUAL);
      },
    };
  };

  beforeAll(async () => {
    built();
    place = new Place();
    writeFileSync(place.path('box'), `#!/bin/sh\nexec "${process.execPath}" "${ENTRY}" "$@"\n`, { mode: 0o755 });
    box = await place.open();
    const path = `PATH=${place.directory}:${process.env['PATH']}`;
    const shell = `env ${path} SIGNALBOX_URL=${place.url} PS1='$ ' sh`;
    tmux(...'new-session -d -x 80 -y 24 -s box -c'.split(' '), place.directory, shell);
    await shows(/^\$/);
  });

  beforeEach(() => onTestFailed(() => console.error(screen())));

  afterAll(async () => {
    tmux('kill-server');
    await place.leave();
  });

  it('shows what happens as it happens, obeys keys, fits another window, and breaks a lock with reason and token', async () => {
    const first = start('box top');
    await shows(/NEEDS YOU +all clear[^]*LOCKS +none held/);
    expect(modes()).toBe('1 0 0');
    const hold = await box.lock('main').acquire({ holder: 'worker:1', reason: 'merging\x1b[2J change 42' });
    const waits = box.lock('main').acquire({ holder: 'agent:9', reason: 'hotfix' });
    await shows(
      /LOCKS +1 held, 1 waiting\n.*■ main +worker:1 +merging�\[2J change 42 .*1 waiting +\d+s\n +└ 1\. agent:9 \d+s \(hotfix\)\n/,
    );
    keys('2', 'Enter');
    await shows(/\[2 Locks 1\][^]*lock\/main[^]*worker:1[^]*Lately[^]*lock:acquired/);
    tmux('resize-window', '-t', 'box', '-x', '40', '-y', '12');
    const small = await shows(/^ signalbox top .*\n[^]*esc back/);
    expect(Math.max(...small.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(40);
    tmux('resize-window', '-t', 'box', '-x', '80', '-y', '24');
    keys('b');
    await shows(/Break lock\/main\?[^]*worker:1 loses it[^]*agent:9 is the next to get it[^]*Reason:/);
    keys('-l', 'it does not answer');
    keys('Enter');
    await shows(new RegExp(`Type the token ${hold.token} to break it`));
    keys(String(hold.token), 'Enter');
    const next = await waits;
    expect(hold.isValid).toBe(false);
    await shows(/lock\/main: ended 1 hold\n/);
    await shows(/■ main +agent:9/);
    keys('q');
    await first.ended(0);
    await next.release();
  });

  it('breaks nothing that has changed hands since the question was asked', async () => {
    const hold = await box.lock('docs').acquire({ holder: 'worker:1' });
    const again = start('box top');
    await shows(/■ docs +worker:1/);
    keys('2', '/');
    keys('-l', 'docs');
    keys('Enter', 'b');
    await shows(/Reason:/);
    await hold.release();
    await using other = await box.lock('docs').acquire({ holder: 'agent:4' });
    await shows(/It has changed hands meanwhile/);
    keys('x', 'Enter');
    keys(String(hold.token), 'Enter');
    await shows(/lock\/docs: nothing that was granted up to token \d+ is still held/);
    expect(other.isValid).toBe(true);
    keys('C-c');
    await again.ended(130);
  });

  it('lists the locked issues of a repository with the locks, each with a page, and breaks none of them', async () => {
    const github = await serveLocalGitHub({ repository: 'acme/app' });
    github.github.repository.addIssue(7, 'Seven', Date.now());
    const manager = new LockManager({ githubRepo: 'acme/app', baseUrl: github.url, token: 'local' });
    try {
      await manager.acquireLock(7, { workerId: 'agent:7', nodeId: 'runner-1' });
      const top = start(`GITHUB_API_URL=${github.url} GITHUB_TOKEN=local box top --github acme/app`);
      await shows(/ON GITHUB +acme\/app +1 held\n.*■ #7 +agent:7 +Seven .*renewed \d+s/);
      keys('2', 'b');
      await shows(/A lock on GitHub cannot be broken from here/);
      keys('Enter');
      await shows(/Issue #7\n[^]*worker +agent:7\n[^]*node +runner-1\n[^]*signalbox github queue 7 --repo acme\/app/);
      keys('q', 'q');
      await top.ended(0);
    } finally {
      await manager[Symbol.asyncDispose]();
      await github.close();
    }
  });

  it('gives the terminal back when it is killed, when it crashes, and while it is stopped', async () => {
    writeFileSync(place.path('crash.cjs'), `process.on('SIGUSR2', () => { throw new Error('a bug of ours'); });\n`);
    const killed = start("sh -c 'echo $$ > pid; exec box top'");
    await shows(/LOCKS/);
    process.kill(Number(place.read('pid')), 'SIGTERM');
    await killed.ended(143);
    const crashed = start(`NODE_OPTIONS="--require ${place.path('crash.cjs')}" sh -c 'echo $$ > pid; exec box top'`);
    await shows(/LOCKS/);
    process.kill(Number(place.read('pid')), 'SIGUSR2');
    await crashed.ended(1);
    const stopped = start('box top');
    await shows(/LOCKS/);
    keys('C-z');
    await stopped.ended(148);
    const continued = start('fg');
    await shows(/LOCKS/);
    expect(modes()).toBe('1 0 0');
    keys('q');
    await continued.ended(0);
  });

  it('has no colours but the same signs if nobody wants them', async () => {
    await using hold = await box.lock('main').acquire({ holder: 'worker:1' });
    const plain = start('NO_COLOR=1 box top');
    await shows(/▸■ main +worker:1/);
    expect(tmux('capture-pane', '-p', '-e', '-t', 'box')).not.toMatch(/\x1b\[\d*[1-9]m/);
    keys('q');
    await plain.ended(0);
    expect(hold.isValid).toBe(true);
  });

  it('says what to use where there is no terminal', async () => {
    const { code, stderr } = await place.start(process.execPath, [ENTRY, 'top'], { stdin: '' }).ended;
    expect(code).toBe(64);
    expect(stderr).toMatch(/^signalbox: top needs a terminal[^]*signalbox status --watch[^]*signalbox status --json/);
    const asked = await place.start(process.execPath, [ENTRY, 'top', '--json'], { stdin: '' }).ended;
    expect(asked.code).toBe(64);
    expect(asked.stderr).toContain('top has no JSON');
  });

  it('has a small sister, status --watch, that fits a small window and leaves what it last saw', async () => {
    await using hold = await box.lock('main').acquire({ holder: 'worker:1', reason: 'merging' });
    for (let at = 0; at < 12; at++) await box.tasks.publish(`t${at}`, {});
    tmux('resize-window', '-t', 'box', '-x', '60', '-y', '6');
    const watching = start('box status --watch');
    await shows(/Locks and slots\n[^]*… \d+ more lines; signalbox top scrolls\n/);
    tmux('resize-window', '-t', 'box', '-x', '80', '-y', '24');
    await shows(/Locks and slots\n[^]*Members/);
    keys('C-c');
    await watching.ended(130);
    expect(screen()).toMatch(/Locks and slots\n[^]*worker:1[^]*Tasks: 12 pending/);
    expect(hold.isValid).toBe(true);
  });
});
