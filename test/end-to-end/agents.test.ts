// What coding agents are given: files in a repository, and hooks that are called as Claude Code and Codex call them.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { serve } from '../../src/server/index.ts';
import { processAgent } from '../mcp/agents.ts';
import { root } from '../house/sources.ts';
import { CLI, type Ended, inResident, signalbox } from '../support/cli.ts';

const FILES = [
  'AGENTS.md',
  'CLAUDE.md',
  '.mcp.json',
  '.claude/settings.json',
  '.codex/config.toml',
  '.codex/hooks.json',
  '.cursor/mcp.json',
];

function git(cwd: string, ...args: readonly string[]): void {
  const identity = ['-c', 'user.name=ada', '-c', 'user.email=ada@example.com'];
  const { status, stderr } = spawnSync('git', [...identity, ...args], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

describe('signalbox agents init', () => {
  let repo: string;
  beforeEach(() => {
    repo = mkdtempSync(join(tmpdir(), 'signalbox-agents-'));
    mkdirSync(join(repo, '.git'));
  });
  afterEach(() => rmSync(repo, { recursive: true, force: true }));

  const init = (...args: readonly string[]): Promise<Ended> => inResident(['agents', 'init', ...args], { cwd: repo });
  const put = (path: string, text: string): void => {
    mkdirSync(join(repo, path, '..'), { recursive: true });
    writeFileSync(join(repo, path), text);
  };
  const read = (path: string): string => readFileSync(join(repo, path), 'utf8');

  it('writes what every client reads, from anywhere in the repository, and a second time changes nothing', async () => {
    mkdirSync(join(repo, 'sub'));
    const dry = await signalbox(['agents', 'init', '--dry-run', '--json'], { cwd: join(repo, 'sub') });
    const { files } = JSON.parse(dry.stdout) as { files: { path: string; change: string }[] };
    expect(files.map(({ path, change }) => `${path} ${change}`)).toEqual(FILES.map((path) => `${path} created`));
    expect(FILES.filter((path) => existsSync(join(repo, path)))).toEqual([]);
    expect(await signalbox(['agents', 'init'], { cwd: join(repo, 'sub') })).toMatchObject({ code: 0 });
    const written = FILES.map(read);
    expect(written[0]).toContain('signalbox run --lock main-branch');
    const again = await init('--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ files: FILES.map((path) => ({ path, change: 'unchanged' })) });
    expect(FILES.map(read)).toEqual(written);
  });

  it('adds to files that are there, and keeps everything else in them', async () => {
    put('AGENTS.md', '# Ours\n\nUse tabs.');
    put('.mcp.json', '{\n    "mcpServers": { "other": { "command": "x" } },\n    "more": 1\n}\n');
    const own = { matcher: 'Bash', hooks: [{ type: 'command', command: './check.sh' }] };
    put('.claude/settings.json', JSON.stringify({ model: 'm', hooks: { PreToolUse: [own] } }));
    put('.codex/config.toml', 'model = "m" # ours\n\n[mcp_servers.other]\ncommand = "x"\n');
    expect(await init()).toMatchObject({ code: 0 });
    expect(read('AGENTS.md')).toMatch(/^# Ours\n\nUse tabs\.\n\n<!-- signalbox:begin/);
    expect(JSON.parse(read('.mcp.json'))).toEqual({
      mcpServers: { other: { command: 'x' }, signalbox: { command: 'signalbox', args: ['mcp'] } },
      more: 1,
    });
    const settings = JSON.parse(read('.claude/settings.json')) as { model: string; hooks: Record<string, object[]> };
    expect(settings).toMatchObject({ model: 'm', hooks: { PreToolUse: [own, { matcher: 'Bash' }] } });
    expect(read('.codex/config.toml')).toMatch(
      /^model = "m" # ours\n\n\[mcp_servers\.other\]\ncommand = "x"\n\n# signalbox/,
    );
    // With another lock, the old block and the old hooks go, and nothing else does.
    expect(await init('--lock', 'merge', '--command', 'npx signalbox')).toMatchObject({ code: 0 });
    expect(read('AGENTS.md').match(/signalbox:begin/g)).toHaveLength(1);
    expect(read('AGENTS.md')).toContain('npx signalbox run --lock merge');
    const hooks = (JSON.parse(read('.claude/settings.json')) as typeof settings).hooks;
    expect(hooks['PreToolUse']).toHaveLength(2);
    expect(JSON.stringify(hooks)).toContain(
      "npx signalbox agents hook claude-code --lock merge --command 'npx signalbox'",
    );
    expect(JSON.parse(read('.mcp.json'))).toMatchObject({ mcpServers: { signalbox: { command: 'npx' } } });
  });

  it('refuses a directory that is none, and to write outside of a repository unless it is named', async () => {
    put('file', '');
    for (const dir of [join(repo, 'nothing'), join(repo, 'file')]) {
      expect(await init('--dir', dir)).toMatchObject({
        code: 64,
        stderr: `signalbox: --dir ${JSON.stringify(dir)} is not a directory\n`,
      });
    }
    rmSync(join(repo, '.git'), { recursive: true });
    expect(await init()).toMatchObject({
      code: 64,
      stdout: '',
      stderr: `signalbox: there is no git repository around ${repo}; go into one, or name the directory to write into: --dir DIR\n`,
    });
    expect(FILES.filter((path) => existsSync(join(repo, path)))).toEqual([]);
    expect(await init('--dir', '.')).toMatchObject({ code: 0 });
    expect(FILES.filter((path) => existsSync(join(repo, path)))).toEqual(FILES);
  });

  it('says how the clients get to start signalbox if it is not on the PATH, with commands that work', async () => {
    const env = { PATH: '/usr/bin:/bin' };
    const { stderr } = await signalbox(['agents', 'init'], { cwd: repo, env });
    const started = `${process.execPath} ${CLI}`;
    expect(stderr.split('\n')).toEqual([
      'signalbox: signalbox is not on the PATH, where the clients look for it, so these files do not work here yet. Use one of',
      `  npm install --global ${root.replace(/\/$/, '')}`,
      `  ${started} agents init --command '${started}'`,
      '',
    ]);
    const { code } = await signalbox(['agents', 'init', '--command', started], { cwd: repo, env });
    expect(code).toBe(0);
    const { mcpServers } = JSON.parse(read('.mcp.json')) as Record<string, Record<string, object>>;
    expect(mcpServers?.['signalbox']).toEqual({ command: process.execPath, args: [CLI, 'mcp'] });
  });

  it('leaves what it cannot read, and says why', async () => {
    put('.mcp.json', '{ not json');
    put('.cursor/mcp.json', JSON.stringify({ mcpServers: { signalbox: { url: 'https://example.com' } } }));
    put('.codex/config.toml', 'mcp_servers = { other = { command = "x" } }\n');
    put('AGENTS.md', '<!-- signalbox:begin -->\nno end\n');
    const before = FILES.filter((path) => existsSync(join(repo, path))).map(read);
    const { code, stdout } = await init('--json');
    expect(code).toBe(1);
    const { files } = JSON.parse(stdout) as { files: { path: string; change: string; why: string | null }[] };
    const left = files.filter(({ change }) => change === 'left');
    expect(left.map(({ path }) => path)).toEqual(['AGENTS.md', '.mcp.json', '.codex/config.toml', '.cursor/mcp.json']);
    expect(left.map(({ why }) => why ?? '')).toEqual([
      expect.stringContaining('not one pair'),
      expect.stringContaining('not JSON'),
      expect.stringContaining('without a heading'),
      expect.stringContaining('another server called signalbox'),
    ]);
    expect(['AGENTS.md', '.mcp.json', '.codex/config.toml', '.cursor/mcp.json'].map(read)).toEqual(before);
  });

  it('follows no link out of the repository, and knows a link to AGENTS.md', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'signalbox-outside-'));
    try {
      writeFileSync(join(outside, 'mcp.json'), '{}');
      symlinkSync(join(outside, 'mcp.json'), join(repo, '.mcp.json'));
      symlinkSync(outside, join(repo, '.codex'));
      symlinkSync(join(outside, 'nothing'), join(repo, '.cursor'));
      symlinkSync('AGENTS.md', join(repo, 'CLAUDE.md'));
      put('AGENTS.md', '');
      const { code, stdout } = await init('--json');
      expect(code).toBe(1);
      const { files } = JSON.parse(stdout) as { files: { path: string; change: string }[] };
      expect(Object.fromEntries(files.map(({ path, change }) => [path, change]))).toEqual({
        'AGENTS.md': 'changed',
        'CLAUDE.md': 'unchanged',
        '.mcp.json': 'refused',
        '.claude/settings.json': 'created',
        '.codex/config.toml': 'refused',
        '.codex/hooks.json': 'refused',
        '.cursor/mcp.json': 'refused',
      });
      expect(readFileSync(join(outside, 'mcp.json'), 'utf8')).toBe('{}');
      expect(existsSync(join(outside, 'config.toml'))).toBe(false);
    } finally {
      rmSync(outside, { recursive: true, force: true });
    }
  });

  it('prints instead with --print, for one client with --for', async () => {
    const printed = await init('--print', '--for', 'cursor');
    expect(printed).toMatchObject({ code: 0 });
    expect(printed.stdout).toContain('==> .cursor/mcp.json <==');
    expect(printed.stdout).not.toContain('.claude');
    expect(existsSync(join(repo, 'AGENTS.md'))).toBe(false);
    expect(await init('--for', 'emacs')).toMatchObject({ code: 64 });
  });
});

describe('a hook', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-hook-'));
  const [repo, feature] = [join(folder, 'repo'), join(folder, 'feature')];
  const env = { SIGNALBOX_HOLDS: undefined, CLAUDE_ENV_FILE: undefined };

  beforeAll(() => {
    mkdirSync(repo);
    git(repo, 'init', '-q', '-b', 'main');
    git(repo, 'commit', '-q', '--allow-empty', '-m', 'first');
    git(repo, 'worktree', 'add', '-q', '-b', 'feature', feature);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const CLAUDE = {
    session_id: '5f0c1f52-77aa-4f3e-9d63-0f7c9d1b2a10',
    transcript_path: '/home/ada/.claude/projects/repo/5f0c1f52.jsonl',
    permission_mode: 'default',
  };
  const CODEX = {
    session_id: '0199a213-81c0-7800-8aa1-bbab2a035a53',
    turn_id: '0199a213-9f11-7e63-b1de-7de2ee2e6b21',
    transcript_path: null,
    model: 'gpt-5.5-codex',
    permission_mode: 'default',
  };

  /** What the hook says to a tool call; empty if it lets it through. It runs in a directory that has nothing to do with it. */
  async function asked(client: 'claude-code' | 'codex', payload: object, more: object = {}): Promise<string> {
    const said = client === 'codex' ? CODEX : CLAUDE;
    const input = JSON.stringify({ ...said, cwd: repo, hook_event_name: 'PreToolUse', ...payload });
    const options = { cwd: folder, env: { ...env, ...more }, input };
    const { code, stdout, stderr } = await signalbox(['agents', 'hook', client], options);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    if (stdout === '') return '';
    const { hookSpecificOutput: answer } = JSON.parse(stdout) as { hookSpecificOutput: Record<string, string> };
    expect(answer).toMatchObject({ hookEventName: 'PreToolUse', permissionDecision: 'deny' });
    return answer['permissionDecisionReason'] ?? '';
  }

  const bash = (command: string, more: object = {}): object => ({
    tool_name: 'Bash',
    tool_input: { command, description: 'Push', timeout: 120_000 },
    tool_use_id: 'toolu_01ABC',
    ...more,
  });

  it('of Claude Code refuses a push to main without the lock, and says how to get a turn', async () => {
    const refused = await asked('claude-code', bash('make test && git push origin HEAD:main 2>&1 | tail'));
    expect(refused).toContain('you do not hold the lock main-branch. Nobody holds it now.');
    const instead =
      "make test && signalbox run --lock main-branch --wait 90s --ticket --reason 'WHY' -- git push origin HEAD:main 2>&1 | tail";
    expect(refused).toContain(`Run this instead:\n  ${instead}\n`);
    // The advice itself is let through, and no advice is to take a lock from its holder.
    expect(await asked('claude-code', bash(instead))).toBe('');
    expect(refused).not.toMatch(/break|force|steal/i);
  });

  it('goes by the directory of the tool, and by cd and git -C in the command', async () => {
    expect(await asked('claude-code', bash('git push'))).toContain('Not run');
    expect(await asked('claude-code', bash('git push', { cwd: feature }))).toBe('');
    expect(await asked('claude-code', bash('cd ../repo && git push', { cwd: feature }))).toContain(
      'cd ../repo && signalbox run',
    );
    expect(await asked('claude-code', bash(`git -C ${feature} push`))).toBe('');
    expect(await asked('codex', bash('git push', { tool_input: { command: 'git push', workdir: feature } }))).toBe('');
  });

  it('of Codex refuses the same, and is not fooled by a patch that only writes about it', async () => {
    expect(await asked('codex', bash('git push origin main'))).toContain('Not run');
    const argv = { tool_name: 'shell', tool_input: { command: ['bash', '-lc', 'git push origin main'] } };
    expect(await asked('codex', argv)).toContain('Put signalbox run --lock main-branch');
    const patch = '*** Begin Patch\n*** Add File: release.sh\n+git push origin main\n*** End Patch\n';
    expect(await asked('codex', { tool_name: 'apply_patch', tool_input: { command: patch } })).toBe('');
    expect(await asked('codex', bash(`apply_patch <<'EOF'\n${patch}EOF\n`))).toBe('');
  });

  it('lets everything else through, whatever it is sent', async () => {
    expect(await asked('claude-code', bash('cd /tmp'))).toBe('');
    expect(await asked('claude-code', bash('git status', { cwd: '/nowhere/at/all' }))).toBe('');
    expect(await asked('claude-code', { tool_name: 'Edit', tool_input: { new_string: 'git push origin main' } })).toBe(
      '',
    );
    for (const input of [
      '',
      'nonsense',
      '[]',
      'null',
      '{"hook_event_name":"PreToolUse","tool_name":7}',
      '{"hook_event_name":"Stop"}',
    ]) {
      const ended = await signalbox(['agents', 'hook', 'codex'], { cwd: folder, env, input });
      expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  });

  it('tells the agent its name, lets it push while it holds the lock, and releases that at the end', async () => {
    const file = join(folder, 'env');
    writeFileSync(file, '');
    const begin = JSON.stringify({ ...CLAUDE, cwd: feature, hook_event_name: 'SessionStart', source: 'startup' });
    const options = { cwd: folder, env: { ...env, CLAUDE_ENV_FILE: file }, input: begin };
    const begun = await signalbox(['agents', 'hook', 'claude-code'], options);
    const holder = /^export SIGNALBOX_HOLDER=(\S+)\n$/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
    expect(holder).toBe('agent:claude-code-5f0c1f5277aa');
    expect(JSON.parse(begun.stdout)).toMatchObject({
      hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: expect.stringContaining(holder) },
    });
    const inFeature = { cwd: feature, env: { ...env, SIGNALBOX_HOLDER: holder } };
    expect(await signalbox(['lock', 'acquire', 'main-branch', '--reason', 'landing'], inFeature)).toMatchObject({
      code: 0,
    });
    await signalbox(['lock', 'acquire', 'staging', '--holder', 'agent:other'], inFeature);
    await signalbox(['lock', 'acquire', 'staging', '--no-wait', '--ticket'], inFeature);
    expect(await asked('claude-code', bash('git push origin HEAD:main', { cwd: feature }))).toBe('');
    // Another agent is told who has it.
    const other = await asked('codex', bash('git push origin HEAD:main', { cwd: feature }));
    expect(other).toContain(`held by ${holder} (landing) for`);
    const end = JSON.stringify({ ...CLAUDE, cwd: feature, hook_event_name: 'SessionEnd', reason: 'prompt_input_exit' });
    await signalbox(['agents', 'hook', 'claude-code'], { cwd: folder, env, input: end });
    const { stdout } = await signalbox(['who', '--json'], inFeature);
    const { locks } = JSON.parse(stdout) as {
      locks: { name: string; holds: { holder: string }[]; waiting: object[] }[];
    };
    const held = locks.flatMap(({ name, holds, waiting }) => [
      ...holds.map((hold) => `${name} ${hold.holder}`),
      ...waiting,
    ]);
    expect(held).toEqual(['staging agent:other']);
  });

  it("takes a hold that is tied to its client for the agent's own, and none that is tied to what started the client", async () => {
    const tied = async (pid: number): Promise<string> => {
      const acquire = ['lock', 'acquire', 'main-branch', '--holder', 'anyone', '--pid', String(pid)];
      expect(await signalbox(acquire, { cwd: repo, env })).toMatchObject({ code: 0 });
      return asked('claude-code', bash('git push origin main'));
    };
    // This process is the client of the hooks that it starts.
    expect(await tied(process.pid)).toBe('');
    expect(await tied(process.ppid)).toContain('held by anyone');
    await signalbox(['lock', 'release', 'main-branch', '--holder', 'anyone'], { cwd: repo, env });
  });

  it("takes what the MCP server of its client holds for the agent's own, and not what that of another client holds", async () => {
    const place = { dir: repo, store: `file:${join(repo, '.git', 'signalbox')}` };
    const other = 'require("child_process").spawn(process.argv[1], process.argv.slice(2), { stdio: "inherit" })';
    const through = { own: ['sh', '-c', '"$0" "$@"; :'], other: [process.execPath, '-e', other] };
    for (const whose of ['own', 'other'] as const) {
      const { agent } = await processAgent('2026-07-28', place, through[whose]);
      try {
        const { holder } = await agent.call('acquire', { name: 'main-branch' });
        const said = await asked('claude-code', bash('git push origin main'));
        if (whose === 'own') expect(said).toBe('');
        else expect(said).toContain(`held by ${holder}`);
        await agent.call('release', { name: 'main-branch', holder });
      } finally {
        await agent.close();
      }
    }
  });

  it('asks a server, and gives back there what the agent took', async () => {
    const served = await serve({ store: 'memory:', port: 0, host: '127.0.0.1' });
    const server = { SIGNALBOX_URL: served.url, SIGNALBOX_SERVER_TOKEN: served.localToken };
    try {
      expect(await asked('claude-code', bash('git push origin main'), server)).toContain('Nobody holds it now.');
      const taken = ['lock', 'acquire', 'main-branch', '--holder', 'agent:claude-code-5f0c1f5277aa'];
      expect(await signalbox(taken, { cwd: repo, env: { ...env, ...server } })).toMatchObject({ code: 0 });
      expect(await asked('claude-code', bash('git push origin main'), server)).toBe('');
      expect(await asked('codex', bash('git push origin main'), server)).toContain('held by agent:claude-code');
      const input = JSON.stringify({ ...CLAUDE, cwd: feature, hook_event_name: 'SessionEnd', reason: 'other' });
      const ended = await signalbox(['agents', 'hook', 'claude-code'], {
        ...{ cwd: folder, env: { ...env, ...server }, input },
      });
      expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
      expect(await asked('codex', bash('git push origin main'), server)).toContain('Nobody holds it now.');
    } finally {
      await served.close();
    }
  });

  it('refuses a push where the store cannot be asked: that is what it is for', async () => {
    const broken = { ...env, SIGNALBOX_URL: 'etcd://127.0.0.1:1' };
    const input = JSON.stringify({
      ...CLAUDE,
      cwd: repo,
      hook_event_name: 'PreToolUse',
      ...bash('git push origin main'),
    });
    const { code, stdout } = await signalbox(['agents', 'hook', 'claude-code'], { cwd: folder, env: broken, input });
    expect(code).toBe(0);
    expect(stdout).toContain('It is unknown whether you hold it');
  });
});
