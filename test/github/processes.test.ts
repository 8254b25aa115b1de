// Real processes against the local GitHub: half of them with a token from the environment, half with the login of `gh`.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalServer, serveLocalGitHub } from '../../src/github/local/serve.ts';
import { signalbox, start } from '../support/cli.ts';
import { isMissing } from '../support/programs.ts';

const PROGRAM = fileURLToPath(new URL('./programs/worker.mjs', import.meta.url));
/** SIGNALBOX_LONG=1: sixteen processes and a hundred rounds. */
const IS_LONG = process.env['SIGNALBOX_LONG'] !== undefined;
const EACH = IS_LONG ? 8 : 3;
const ROUNDS = IS_LONG ? 100 : 5;

let top: string;
let server: LocalServer;
let aheadMs = 0;

beforeAll(async () => {
  top = mkdtempSync(join(tmpdir(), 'signalbox-github-'));
  pass(0);
  server = await serveLocalGitHub({
    tokens: { 'from-environment': 'bot', 'from-gh': 'bot' },
    now: () => Date.now() + aheadMs,
    // The rounds follow each other faster than any real work.
    limits: { requestsPerHour: 1e6, pointsPerMinute: 1e6, contentPerMinute: 1e6, contentPerHour: 1e6 },
  });
  for (let issue = 1; issue <= 400; issue++) server.github.repository.addIssue(issue);
  writeFileSync(join(top, 'hosts.yml'), `"${new URL(server.url).host}":\n  oauth_token: from-gh\n  user: bot\n`);
});

afterAll(async () => {
  await server.close();
  rmSync(top, { recursive: true });
});

/** Time passes, for the server and for the workers. */
function pass(ms: number): void {
  aheadMs += ms;
  writeFileSync(join(top, 'clock'), String(aheadMs));
}

class Worker {
  readonly id: string;
  readonly #child;
  readonly #lines: Interface;

  constructor(id: string, env: Readonly<Record<string, string>>) {
    this.id = id;
    const place = { GITHUB_REPO: 'local/repository', GITHUB_API_URL: server.url, GH_CONFIG_DIR: top };
    const { GITHUB_TOKEN: _, GH_TOKEN: __, ...inherited } = process.env;
    this.#child = spawn(process.execPath, [PROGRAM, id, join(top, 'clock')], {
      env: { ...inherited, ...place, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#lines = createInterface(this.#child.stdout);
  }

  async ask(line: string): Promise<{
    readonly success?: boolean;
    readonly kind?: string;
    readonly token?: number;
    readonly reason?: string;
    readonly isValid?: boolean;
  }> {
    const answer = once(this.#lines, 'line');
    this.#child.stdin.write(`${line}\n`);
    return JSON.parse(String((await answer)[0])) as object;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

const withToken = { GITHUB_TOKEN: 'from-environment' };
const withGh = {};

describe.skipIf(isMissing('gh'))('processes on one repository', () => {
  it(`of ${EACH} with a token and ${EACH} with the login of gh, one wins each of ${ROUNDS} rounds`, async () => {
    const workers = Array.from(
      { length: 2 * EACH },
      (_, place) => new Worker(`worker:${place}`, place % 2 === 0 ? withToken : withGh),
    );
    try {
      for (let round = 1; round <= ROUNDS; round++) {
        const results = await Promise.all(workers.map((worker) => worker.ask(`acquire ${round} fail-fast`)));
        const winners = workers.filter((_, place) => results[place]?.success === true);
        expect(winners, JSON.stringify(results)).toHaveLength(1);
        expect(server.github.repository.issues.get(round)?.assignees).toEqual(['bot']);
        expect(await winners[0]?.ask('release')).toEqual({ kind: 'released' });
      }
    } finally {
      await Promise.all(workers.map((worker) => worker.end()));
    }
  });

  it('a lock whose holder was killed goes to one who steals what is stale, and to nobody before', async () => {
    const [dead, thief] = [new Worker('dead', withToken), new Worker('thief', withGh)];
    try {
      expect(await dead.ask('acquire 301 fail-fast')).toMatchObject({ success: true });
      dead.kill('SIGKILL');
      expect(await thief.ask('acquire 301 fail-fast')).toMatchObject({ success: false, reason: 'already-locked' });
      pass(306_000);
      expect(await thief.ask('acquire 301 steal-stale')).toMatchObject({ success: true, token: 2 });
    } finally {
      await Promise.all([dead.end(), thief.end()]);
    }
  });

  it('a holder that was stopped past its timeout wakes up without its lock, and leaves the next one alone', async () => {
    const [sleeper, thief] = [new Worker('sleeper', withToken), new Worker('thief', withGh)];
    try {
      expect(await sleeper.ask('acquire 302 fail-fast')).toMatchObject({ success: true });
      sleeper.kill('SIGSTOP');
      pass(306_000);
      expect(await thief.ask('acquire 302 steal-stale')).toMatchObject({ success: true, token: 2 });
      const { changes, comments } = server.github.repository;
      const before = [changes.length, comments.size];
      sleeper.kill('SIGCONT');
      expect(await sleeper.ask('check')).toEqual({ isValid: false });
      expect(await sleeper.ask('release')).toEqual({ kind: 'already-lost' });
      expect([changes.length, comments.size]).toEqual(before);
      expect(await thief.ask('check')).toEqual({ isValid: true });
    } finally {
      await Promise.all([sleeper.end(), thief.end()]);
    }
  });

  it('gh itself can read the lock, through a socket', async () => {
    const socket = join(top, 'github.sock');
    await using local = await serveLocalGitHub({ socket, tokens: { 'from-gh': 'bot' } });
    local.github.repository.makeRef(
      'refs/signalbox/locks/issue-1',
      local.github.repository.makeCommit('x', [], 0)?.sha ?? '',
      0,
    );
    const config = mkdtempSync(join(top, 'gh-'));
    writeFileSync(join(config, 'config.yml'), `http_unix_socket: ${socket}\n`);
    writeFileSync(join(config, 'hosts.yml'), 'github.com:\n  oauth_token: from-gh\n  user: bot\n');
    const { GITHUB_TOKEN: _, GH_TOKEN: __, ...env } = process.env;
    const path = 'repos/local/repository/git/ref/signalbox/locks/issue-1';
    const { stdout } = await promisify(execFile)('gh', ['api', path, '--jq', '.ref'], {
      env: { ...env, GH_CONFIG_DIR: config },
    });
    expect(stdout.trim()).toBe('refs/signalbox/locks/issue-1');
  });
});

describe('signalbox github', () => {
  const env = (): Record<string, string | undefined> => ({
    GITHUB_REPO: 'local/repository',
    GITHUB_API_URL: server.url,
    GITHUB_TOKEN: 'from-environment',
  });

  it('locks, shows and unlocks an issue by hand, with the exit codes of all engines', async () => {
    const locked = await signalbox(['github', 'lock', '311', '--worker', 'agent:7'], { env: env() });
    expect(locked).toEqual({ code: 0, stdout: '1\n', stderr: '' });
    const taken = await signalbox(['github', 'lock', '311', '--worker', 'agent:8', '--strategy', 'fail-fast'], {
      env: env(),
    });
    expect(taken.code).toBe(75);
    expect(taken.stderr).toContain('already locked by agent:7');
    const status = await signalbox(['github', 'status', '--json'], { env: env() });
    expect(
      (JSON.parse(status.stdout) as { locks: readonly { issue: number }[] }).locks.map(({ issue }) => issue),
    ).toContain(311);
    expect((await signalbox(['github', 'status', '311'], { env: env() })).stdout).toContain('agent:7');
    expect((await signalbox(['github', 'queue', '311'], { env: env() })).stdout).toContain('Nobody waits in line');
    expect((await signalbox(['github', 'unlock', '311', '--worker', 'agent:8'], { env: env() })).code).toBe(77);
    expect((await signalbox(['github', 'unlock', '311', '--worker', 'agent:7'], { env: env() })).code).toBe(0);
    expect((await signalbox(['github', 'status', '311'], { env: env() })).stdout).toBe('Issue #311 is not locked.\n');
  });

  it('runs a command while the issue is held, with its token and its exit code', async () => {
    const run = start(
      [
        'github',
        'run',
        '312',
        '--worker',
        'agent:7',
        '--',
        'sh',
        '-c',
        `echo $SIGNALBOX_GITHUB_ISSUE $SIGNALBOX_TOKEN; until [ -e '${top}/go' ]; do sleep 0.1; done; exit 7`,
      ],
      { env: env() },
    );
    await run.printed('312 1');
    expect(
      (
        await signalbox(['github', 'run', '312', '--worker', 'agent:8', '--strategy', 'fail-fast', '--', 'true'], {
          env: env(),
        })
      ).code,
    ).toBe(75);
    writeFileSync(join(top, 'go'), '');
    expect((await run.ended).code).toBe(7);
    expect(server.github.repository.issues.get(312)?.assignees).toEqual([]);
  });

  it('stops the command when the lock is lost', async () => {
    const run = start(
      ['github', 'run', '313', '--worker', 'agent:7', '--ttl', '10s', '--', 'sh', '-c', 'echo begun; exec sleep 600'],
      { env: env() },
    );
    await run.printed('begun');
    server.github.allow('bot', 'admin');
    await signalbox(['github', 'lock', '313', '--worker', 'boss', '--strategy', 'force', '--reason', 'enough'], {
      env: env(),
    });
    expect(await run.ended).toMatchObject({
      code: 76,
      stderr: expect.stringContaining('another worker took it') as string,
    });
    server.github.allow('bot', 'write');
  });

  it('serves a local GitHub until it is stopped', async () => {
    const fake = start(['github', 'fake', '--json'], { env: {} });
    await fake.printed('"url"');
    fake.child.kill('SIGTERM');
    expect((await fake.ended).code).toBe(143);
  });
});
