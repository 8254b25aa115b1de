// Guards on the command line, as scripts and people use them: on a real repository, with real files, commands, sessions and
// issues; and across processes, on both engines that several can share.

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';
import { type Ended, inResident, Scratch, signalbox, type Started, start, startProgram } from '../support/cli.ts';
import { isMissing } from '../support/programs.ts';
import { built } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

/** Nothing is polled within a test: what ends was told by an event. */
const NEVER = '10h';

beforeAll(() => built());

describe('signalbox guard', () => {
  const scratch = new Scratch();
  const env = { SIGNALBOX_URL: scratch.store, TMUX_TMPDIR: scratch.dir, TMUX: undefined, SIGNALBOX_ISSUES: undefined };
  const repo = scratch.path('repo');

  const guard = (...args: readonly string[]): Promise<Ended> => inResident(['guard', ...args], { env, cwd: repo });
  const git = (...args: readonly string[]): void => {
    const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'init.defaultBranch=main'];
    execFileSync('git', [...identity, ...args], { cwd: repo, stdio: 'ignore' });
  };

  beforeAll(() => {
    mkdirSync(repo);
    git('init');
    writeFileSync(scratch.path('repo', 'notes.md'), 'Version 2\n');
    git('add', '.');
    git('commit', '-m', 'first');
    git('branch', 'done');
    git('checkout', '-b', 'feature');
    writeFileSync(scratch.path('repo', 'more.md'), 'more\n');
    git('add', '.');
    git('commit', '-m', 'second');
    writeFileSync(scratch.path('repo', 'dirt.txt'), 'not committed\n');
  });

  afterAll(() => scratch.remove());

  it.each([
    ['branchExists: feature', 0, 'passed: branch "feature" exists\n'],
    ['branchExists: nowhere', 1, 'failed: branch "nowhere" does not exist\n'],
    ['branchMerged: {branch: done, into: feature}', 0, 'passed: branch "done" is merged into "feature"\n'],
    ['branchMerged: {branch: feature, into: main}', 1, 'failed: branch "feature" is not merged into "main"\n'],
    ['branchClean: main', 0, 'passed: branch "main" is checked out nowhere\n'],
    ['branchClean: nowhere', 1, 'failed: branch "nowhere" does not exist; branchClean cannot pass as things stand\n'],
    ['not: {branchClean: nowhere}', 69, /^cannot be judged: worktrees:nowhere .* branch "nowhere" does not exist/],
    ['worktreeClean:', 1, /^failed: worktree .*\/repo has uncommitted changes\n$/],
    ['command: {cmd: no-such-program, expectSuccess: false}', 69, /exited with 127, which is no answer/],
    ['fileContains: {path: notes.md, pattern: "/^version/i"}', 0, 'passed: file "notes.md" contains "/^version/i"\n'],
    ['{"fileNotExists":"dirt.txt"}', 1, 'failed: file "dirt.txt" exists\n'],
    ['command: {cmd: "test -f notes.md"}', 0, 'passed: command "test -f notes.md" exited with 0\n'],
    ['command: {cmd: [sh, -c, exit 3]}', 1, 'failed: command ["sh","-c","exit 3"] exited with 3, 0 was expected\n'],
    ['taskDone: build', 1, /^failed: task "build" does not exist.* cannot pass as things stand\n$/],
    ['any: []', 1, 'can never pass: "any" of no conditions can never pass\n'],
    [
      'branchMerged: {branch: feature, into: nowhere}',
      1,
      /^failed: .*branch "nowhere" does not exist; branchMerged cannot pass as things stand\n$/,
    ],
    ['semaphoreAvailable: {name: agents, slots: 2}', 1, /nobody has created it; .*cannot pass as things stand\n$/],
  ])('check -e %j ends with %d', async (expression, code, stdout) => {
    expect(await guard('check', '-e', expression)).toMatchObject({
      code,
      stdout: typeof stdout === 'string' ? stdout : (expect.stringMatching(stdout) as string),
      stderr: '',
    });
  });

  it('says where a branch has uncommitted changes', async () => {
    const { code, stdout } = await guard('check', '-e', 'branchClean: feature');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^failed: branch "feature" has uncommitted changes in .*repo\n$/);
  });

  it('looks elsewhere if it is told to', async () => {
    const elsewhere = scratch.path('elsewhere');
    mkdirSync(elsewhere);
    expect((await guard('check', '-e', 'fileExists: notes.md', '--root', elsewhere)).code).toBe(1);
    const outside = await guard('check', '-e', 'branchExists: main', '--root', elsewhere);
    expect([outside.code, outside.stdout]).toEqual([69, expect.stringContaining('cannot be judged: branch:main')]);
    expect(await guard('check', '-e', 'fileExists: x', '--root', '/nowhere')).toMatchObject({ code: 64 });
  });

  it('takes what looks like an option for the name of a branch, which it cannot be', async () => {
    const { code, stdout } = await guard('check', '-e', 'branchExists: --upload-pack=touch hacked');
    expect(code).toBe(69);
    expect(stdout).toContain('cannot be judged');
    expect((await guard('check', '-e', 'fileExists: hacked')).code).toBe(1);
  });

  it('ends a command that takes too long, and says that it cannot tell', async () => {
    const { code, stdout } = await guard('check', '-e', 'command: {cmd: sleep 600}', '--command-timeout', '200ms');
    expect(code).toBe(69);
    expect(stdout).toMatch(/^cannot be judged: command:"sleep 600" could not be checked: .*200 ms/);
  });

  it('reads issues from a tracker', async () => {
    const issues = [{ id: '7', title: 'Ship it', status: 'blocked', labels: ['release'] }];
    writeFileSync(scratch.path('repo', 'issues.json'), JSON.stringify({ version: 1, issues }));
    const blocked = await guard('check', '-e', 'noBlockedIssues: {labels: [release]}', '--issues', 'issues.json');
    expect(blocked).toMatchObject({ code: 1, stdout: expect.stringContaining('1 blocked: 7 (blocked)') as string });
    expect((await guard('check', '-e', 'issueStatus: {id: 7, expected: done}')).code).toBe(69);
  });

  it.skipIf(isMissing('tmux'))('knows which tmux sessions there are', async () => {
    const tmux = (...args: readonly string[]): void => {
      execFileSync('tmux', args, { env: { ...process.env, TMUX_TMPDIR: scratch.dir, TMUX: '' }, stdio: 'ignore' });
    };
    tmux('new-session', '-d', '-s', 'agent-1', 'cat');
    try {
      expect((await guard('check', '-e', 'sessionAlive: agent-1')).code).toBe(0);
      expect((await guard('check', '-e', 'sessionAlive: agent-2')).code).toBe(1);
    } finally {
      tmux('kill-server');
    }
  });

  const written = `id: before-merge
condition:
  all:
    - lockFree: main
    - not: {fileExists: FREEZE}
    - any:
        - taskDone: review
        - fileExists: notes.md
    - branchExists: nowhere
`;

  it('explains a guard of a file as a tree, and tells programs everything', async () => {
    writeFileSync(scratch.path('repo', 'guard.yaml'), written);
    const { code, stdout } = await guard('explain', 'guard.yaml');
    expect(code).toBe(1);
    expect(stdout.replace(/: nobody has published it.*$/m, '')).toBe(`✗ all of
  ✓ lock "main" is free
  ✓ not
    ✗ file "FREEZE" does not exist
  ✓ any of
    ✗ task "review" does not exist
    ✓ file "notes.md" exists
  ✗ branch "nowhere" does not exist
`);
    const json = await signalbox(['guard', 'explain', '-', '--json'], { env, cwd: repo, input: written });
    expect(json).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      guard: 'before-merge',
      verdict: 'failed',
      reasons: ['branch "nowhere" does not exist'],
      outlook: 'open',
      missing: [],
      explanation: {
        verdict: 'failed',
        children: [{ verdict: 'passed', condition: { lockFree: 'main' } }, {}, {}, {}],
      },
    });
  });

  it('says at which line and column a guard is malformed, all mistakes at once, and looks at nothing', async () => {
    const bad = 'all:\n  - lockfree: main\n  - command: {cmd: "touch ran"}\n  - branchMerged: {branch: x}\n';
    const { code, stdout, stderr } = await signalbox(['guard', 'check', '-'], { env, cwd: repo, input: bad });
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^signalbox: <stdin>:2:5: "lockfree" is not a condition; did you mean lockFree\?/);
    expect(stderr).toContain('<stdin>:4:');
    expect((await guard('check', '-e', 'fileExists: ran')).code).toBe(1);
    for (const args of [[], ['guard.yaml', '-e', 'lockFree: x'], ['missing.yaml'], ['-e', '5'], ['-e', '[: {']]) {
      expect((await guard('check', ...args)).code, args.join(' ')).toBe(64);
    }
    expect((await guard('check', '-e', 'condition: {lockFree: a}\nonFailure: explode')).code).toBe(64);
  });

  it('says what the guard itself says when it fails', async () => {
    const expression = 'condition: {branchExists: nowhere}\nonFailure: {fail: make the branch first}';
    for (const limit of [[], ['--timeout', '1h']]) {
      expect(await guard('wait', '-e', expression, ...limit)).toMatchObject({
        code: 1,
        stdout: 'failed: branch "nowhere" does not exist\n',
        stderr: expect.stringContaining('signalbox: make the branch first\n') as string,
      });
    }
  });

  it('waits for a file by looking every so often, and says so', async () => {
    rmSync(scratch.path('repo', 'go.txt'), { force: true });
    const waiting = start(['guard', 'wait', '-e', 'fileExists: go.txt', '--poll', '50ms'], { env, cwd: repo });
    await waiting.complained('looks every 50 ms at file:go.txt');
    writeFileSync(scratch.path('repo', 'go.txt'), '');
    const { code, stdout, stderr } = await waiting.ended;
    expect([code, stdout]).toEqual([0, 'passed: file "go.txt" exists\n']);
    expect(stderr).toBe('signalbox: waiting\n  ✗ file "go.txt" does not exist\n  looks every 50 ms at file:go.txt\n');
  });

  it('ends with all reasons when time is over, with what can never pass at once, and with Ctrl-C', async () => {
    const over = await guard('wait', '-e', 'all: [{fileExists: a}, {fileExists: b}]', '--timeout', '100ms');
    expect(over).toMatchObject({
      code: 1,
      stdout: 'failed:\n  file "a" does not exist\n  file "b" does not exist\n',
      stderr: expect.stringContaining('signalbox: it did not pass within 100 ms\n') as string,
    });
    const never = await guard('wait', '-e', 'any: []');
    expect([never.code, never.stdout]).toEqual([1, 'can never pass: "any" of no conditions can never pass\n']);
    const lacking = await guard('wait', '-e', 'branchExists: -x', '--timeout', '100ms', '--quiet');
    expect([lacking.code, lacking.stderr]).toEqual([69, 'signalbox: it did not pass within 100 ms\n']);
    const interrupted = start(['guard', 'wait', '-e', 'fileExists: never.txt'], { env, cwd: repo });
    await interrupted.complained('waiting');
    interrupted.child.kill('SIGINT');
    expect(await interrupted.ended).toMatchObject({ code: 130, stdout: '' });
  });

  it('makes no store just to look', async () => {
    const url = `file:${scratch.path('untouched')}`;
    const looked = await signalbox(['guard', 'check', '-e', 'lockFree: x', '--store', url], { cwd: repo });
    expect(looked).toMatchObject({ code: 0, stdout: 'passed: lock "x" is free\n' });
    expect((await guard('check', '-e', `command: {cmd: ["test", "-e", "${scratch.path('untouched')}"]}`)).code).toBe(1);
  });
});

describe.each(stores)('a guard that is waited for in another process, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);

  const waiting = async (scratch: Scratch, expression: string): Promise<Started> => {
    const started = scratch.start('guard', 'wait', '-e', expression, '--poll', NEVER);
    await started.complained('woken by');
    return started;
  };

  it('passes when the lock is released here, without a poll', async () => {
    const scratch = new Scratch(newStore);
    const box = await open(scratch.store);
    try {
      const hold = await box.lock('main').acquire({ holder: 'worker:1' });
      const other = await waiting(scratch, 'lockFree: main');
      // Of another lock it does not even hear.
      await (await box.lock('other').acquire()).release();
      await hold.release();
      expect(await other.ended).toMatchObject({ code: 0, stdout: 'passed: lock "main" is free\n' });
    } finally {
      await box.close();
      scratch.remove();
    }
  });

  it('passes with the last of several: a slot, a task, a member', async () => {
    const scratch = new Scratch(newStore);
    const box = await open(scratch.store);
    try {
      const slot = await box.semaphore('agents', { capacity: 1 }).acquire();
      await box.tasks.publish('build', null);
      const all = 'all: [{semaphoreAvailable: {name: agents, slots: 1}}, {taskDone: build}, {memberAlive: agent-7}]';
      const other = await waiting(scratch, all);
      await slot.release();
      await other.complained('✓ semaphore "agents" has 1 of 1 slot free');
      await (await box.tasks.claim('build')).complete();
      await other.complained('✓ task "build" is complete');
      await box.members.join('agent-7');
      expect((await other.ended).code).toBe(0);
    } finally {
      await box.close();
      scratch.remove();
    }
  });

  it('passes when the holder of the lock is killed, although nobody else is there to free it', async () => {
    const scratch = new Scratch(newStore);
    const program = `
      import { open } from 'signalbox';
      const box = await open(${JSON.stringify(scratch.store)}, { sessionTtlMs: 5000 });
      await box.lock('main').acquire({ holder: 'worker:1' });
      console.log('held');
      setInterval(() => undefined, 1000);`;
    const holder = startProgram(process.execPath, ['--input-type=module', '-e', program], { cwd: root });
    await holder.printed('held');
    const other = await waiting(scratch, 'lockFree: main');
    holder.child.kill('SIGKILL');
    expect(await other.ended).toMatchObject({ code: 0, stdout: 'passed: lock "main" is free\n' });
    await holder.ended;
    scratch.remove();
  });
});
