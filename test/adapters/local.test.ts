// Which tracker is meant, and that making the adapters costs nothing.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Issues, localAdapters, type Sessions } from 'signalbox';
import { FakeIssues } from 'signalbox/testing';
import { FakeGitHub } from '../support/github/server.ts';

let root: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-local-')));
});

afterEach(() => rmSync(root, { recursive: true }));

function track(path: string, id: string): string {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), JSON.stringify({ version: 1, issues: [{ id, title: '', status: 'todo' }] }));
  return join(root, path);
}

const issuesOf = (env: NodeJS.ProcessEnv, issues?: string | Issues): Issues =>
  localAdapters({ root, env, ...(issues !== undefined && { issues }) }).issues;

const first = async (issues: Issues): Promise<string | undefined> => (await issues.issues({}))[0]?.id;

describe('the issues', () => {
  it('are where the options say, else the environment, else in .signalbox/issues.json', async () => {
    const usual = issuesOf({});
    await expect(usual.issues({})).rejects.toThrow(
      'no issue tracker is set up; name one with --issues github:OWNER/NAME, --issues FILE, SIGNALBOX_ISSUES',
    );
    track('.signalbox/issues.json', 'usual');
    track('own.json', 'own');
    const named = track('elsewhere/named.json', 'named');
    expect(await first(usual)).toBe('usual');
    expect(await first(issuesOf({ SIGNALBOX_ISSUES: '' }))).toBe('usual');
    expect(await first(issuesOf({ SIGNALBOX_ISSUES: named }))).toBe('named');
    expect(await first(issuesOf({ SIGNALBOX_ISSUES: named }, 'own.json'))).toBe('own');
    expect(await first(issuesOf({ SIGNALBOX_ISSUES: named }, new FakeIssues([{ id: 'fake' }])))).toBe('fake');
  });

  it('that are named and not there are an error, and not those that are usual', async () => {
    track('.signalbox/issues.json', 'usual');
    await expect(issuesOf({ SIGNALBOX_ISSUES: 'typo.json' }).issues({})).rejects.toMatchObject({ code: 'not-found' });
    for (const odd of ['gitlab:acme/rocket', 'https://github.com/acme/rocket', 'github:acme', 'github:']) {
      await expect(issuesOf({ SIGNALBOX_ISSUES: odd }).issues({}), odd).rejects.toMatchObject({ code: 'invalid' });
    }
  });

  it('may be those of GitHub', async () => {
    const github = await FakeGitHub.start();
    try {
      github.set({ number: 7 });
      const env = { SIGNALBOX_ISSUES: 'github:acme/rocket', GITHUB_API_URL: github.url, GITHUB_TOKEN: 'token' };
      expect(await first(issuesOf(env))).toBe('7');
      expect(github.asked[0]?.headers.authorization).toBe('Bearer token');
    } finally {
      await github.stop();
    }
  });
});

describe('the adapters', () => {
  it('look at nothing before they are asked', async () => {
    const nowhere = localAdapters({ root: join(root, 'not', 'there'), env: {}, issues: 'github:nonsense' });
    await expect(nowhere.files.file('x')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(nowhere.issues.issues({})).rejects.toMatchObject({ code: 'invalid' });
  });

  it('say that there is no tmux', async () => {
    const { sessions } = localAdapters({ root, env: { PATH: root } });
    await expect(sessions.session('x')).rejects.toThrow('there is no tmux on this machine');
  });

  it('say what tmux says where it cannot tell; no server is no session', async () => {
    const saying = (words: string): Sessions => {
      writeFileSync(join(root, 'tmux'), `#!/bin/sh\necho "${words}" >&2; exit 1\n`, { mode: 0o755 });
      return localAdapters({ root, env: { PATH: `${root}:/bin:/usr/bin` } }).sessions;
    };
    await expect(saying('error connecting to x (Permission denied)').session('x')).rejects.toThrow(
      'tmux: error connecting to x (Permission denied)',
    );
    for (const words of ['no server running on /x', 'error connecting to /x (No such file or directory)']) {
      expect(await saying(words).session('x')).toEqual({ alive: false });
    }
  });

  it('refuse limits that make no sense', () => {
    const odd = [
      { commandTimeoutMs: 0 },
      { commandTimeoutMs: 101 * 365 * 86_400_000 },
      { commandGraceMs: -1 },
      { gitTimeoutMs: Number.NaN },
      { outputLimitBytes: 1 },
      { fileLimitBytes: 1.5 },
    ];
    for (const options of odd) expect(() => localAdapters({ root, ...options })).toThrow(Object.keys(options)[0]);
  });
});
