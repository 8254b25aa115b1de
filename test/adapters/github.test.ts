// GitHub Issues, against a GitHub of our own: what is asked, what comes back, and what may go wrong on the way.

import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { githubIssues, type GitHubIssuesOptions, type Issues } from 'signalbox';
import { FakeGitHub } from '../support/github/server.ts';

const TOKEN = 'ghp_0123456789abcdef';

let github: FakeGitHub;

beforeEach(async () => {
  github = await FakeGitHub.start();
});

afterEach(() => github.stop());

function issuesOf(options: Partial<GitHubIssuesOptions> = {}, server = github): Issues {
  return githubIssues({ repository: server.repository, baseUrl: server.url, token: TOKEN, env: {}, ...options });
}

const ids = async (found: ReturnType<Issues['issues']>): Promise<readonly string[]> =>
  (await found).map(({ id }) => id);

describe('what is asked', () => {
  it('names the version of the API and the token, and asks for as many as one page can have', async () => {
    await issuesOf().issues({ labels: ['bug', 'ui'], status: 'blocked', assignee: 'ana' });
    const [{ path, query, headers } = {}] = github.asked;
    expect(path).toBe('/repos/acme/rocket/issues');
    expect(Object.fromEntries(query ?? [])).toEqual({
      ...{
        state: 'open',
        labels: 'bug,ui,blocked',
        assignee: 'ana',
        per_page: '100',
        sort: 'created',
        direction: 'asc',
      },
    });
    expect(headers).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      'x-github-api-version': '2022-11-28',
      'user-agent': 'signalbox',
    });
  });

  it('cannot be broken out of by a label, a person, a query or a number', async () => {
    github.set({ number: 1, labels: ['a&state=closed', 'x,y'], assignees: ['ana'] });
    expect(await ids(issuesOf().issues({ labels: ['a&state=closed'] }))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ labels: ['x,y'] }))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ labels: ['x'] }))).toEqual([]);
    expect(await ids(issuesOf().issues({ assignee: 'ana&page=2#' }))).toEqual([]);
    const asked = github.asked.length;
    for (const odd of ['0', '-1', '01', '1e3', '1/../../x', '#1', '1?x', 'abc', '', ' 1', '1'.repeat(30)]) {
      await expect(issuesOf().issue(odd), odd).rejects.toMatchObject({ code: 'invalid' });
      await expect(issuesOf().issues({ ids: [1, odd] }), odd).rejects.toMatchObject({ code: 'invalid' });
    }
    expect(github.asked.length).toBe(asked);
  });

  it('has all the time that it is given, also where that is months', async () => {
    github.set({ number: 1 });
    expect(await ids(issuesOf({ timeoutMs: 90 * 86_400_000 }).issues({}))).toEqual(['1']);
  });

  it('is refused for what is no repository', () => {
    for (const repository of [
      '',
      'acme',
      'acme/rocket/x',
      '../rocket',
      'acme/..',
      'acme/ro cket',
      'acme/x?y',
      'https://github.com/acme/rocket',
    ]) {
      expect(() => issuesOf({ repository }), repository).toThrow('is not a GitHub repository');
    }
  });
});

describe('what comes back', () => {
  it('has no pull requests', async () => {
    github.set({ number: 1, title: 'tree' });
    github.set({ number: 2, title: 'tree', isPull: true });
    expect(await ids(issuesOf().issues({}))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ ids: [1, 2] }))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ query: 'tree' }))).toEqual(['1']);
    expect(await issuesOf().issue('2')).toBeNull();
  });

  it('has its status from labels that can be chosen, in whatever case; blocked comes first, closed before all', async () => {
    github.set({ number: 1, labels: ['In-Progress', 'BLOCKED'] });
    github.set({ number: 2, labels: ['doing'] });
    github.set({ number: 3, labels: ['blocked'], isClosed: true });
    expect(await issuesOf().issue('1')).toEqual({ status: 'blocked' });
    expect(await issuesOf().issue('2')).toEqual({ status: 'todo' });
    expect(await issuesOf().issue('3')).toEqual({ status: 'done' });
    const own = issuesOf({ inProgressLabel: 'Doing', blockedLabel: 'stuck' });
    expect(await own.issue('1')).toEqual({ status: 'todo' });
    expect(await own.issue('2')).toEqual({ status: 'in-progress' });
    expect(await ids(own.issues({ status: 'in-progress' }))).toEqual(['2']);
  });

  it('is every page of it, each issue once', async () => {
    for (let number = 1; number <= 345; number++) github.set({ number, isClosed: number % 2 === 0 });
    expect(await ids(issuesOf().issues({}))).toEqual(Array.from({ length: 345 }, (_, place) => String(place + 1)));
    expect(github.asked).toHaveLength(4);
    expect(await ids(issuesOf().issues({ status: 'done' }))).toHaveLength(172);
  });

  it('is an error where there are more than can be looked through', async () => {
    for (let number = 1; number <= 301; number++) github.set({ number });
    await expect(issuesOf({ mostIssues: 300 }).issues({})).rejects.toThrow('more than 300 to look through');
    expect(github.asked).toHaveLength(3);
  });

  it('is not followed to another place, to which the token would go along', async () => {
    const thief = createServer((_, response) => response.end('[]')).listen(0, '127.0.0.1');
    await once(thief, 'listening');
    let asked = 0;
    thief.on('request', () => asked++);
    const origin = `http://127.0.0.1:${(thief.address() as AddressInfo).port}`;
    try {
      for (let number = 1; number <= 101; number++) github.set({ number });
      github.nextOrigin = origin;
      await expect(issuesOf().issues({})).rejects.toThrow('goes on at another place');
      github.moved.set(7, `${origin}/repos/acme/rocket/issues/7`);
      await expect(issuesOf().issue('7')).rejects.toThrow('goes on at another place');
      expect(asked).toBe(0);
    } finally {
      thief.close();
    }
  });

  it('is found where it was moved to', async () => {
    github.set({ number: 8, isClosed: true });
    github.moved.set(7, `${github.url}/repos/acme/rocket/issues/8`);
    expect(await issuesOf().issues({ ids: [7] })).toEqual([{ id: '7', status: 'done' }]);
    github.moved.set(9, `${github.url}/repos/acme/rocket/issues/9`);
    await expect(issuesOf().issue('9')).rejects.toThrow('moved too often');
  });

  it('is nothing for an issue that was deleted', async () => {
    github.gone.add(3);
    expect(await issuesOf().issue('3')).toBeNull();
  });

  it('is an error for a milestone that does not exist, which must not pass for one that is done', async () => {
    github.set({ number: 1, milestone: 'v1' });
    for (let number = 1; number <= 120; number++) github.addMilestone(`m${number}`, true);
    github.set({ number: 2, milestone: 'm120' });
    expect(await ids(issuesOf().issues({ milestone: 'm120' }))).toEqual(['2']);
    await expect(issuesOf().issues({ milestone: 'v9' })).rejects.toThrow('there is no milestone "v9"');
  });

  it('knows anybody and nobody as GitHub does', async () => {
    github.set({ number: 1, assignees: ['ana', 'bo'] });
    github.set({ number: 2 });
    expect(await ids(issuesOf().issues({ assignee: '*' }))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ assignee: 'none' }))).toEqual(['2']);
    expect(await ids(issuesOf().issues({ assignee: 'BO' }))).toEqual(['1']);
    expect(await ids(issuesOf().issues({ assignee: 'none', ids: [1, 2] }))).toEqual(['2']);
  });
});

describe('a search', () => {
  it('stays in the repository', async () => {
    github.set({ number: 1, title: 'tree' });
    await issuesOf().issues({ query: 'tree label:bug' });
    expect(github.asked.at(-1)?.query.get('q')).toBe('repo:acme/rocket is:issue tree label:bug');
    const body = {
      total_count: 1,
      incomplete_results: false,
      items: [{ number: 5, state: 'open', repository_url: `${github.url}/repos/other/rocket` }],
    };
    github.faults.push({ status: 200, body: { full_name: 'acme/rocket' } }, { status: 200, body });
    expect(await issuesOf().issues({ query: 'tree repo:other/rocket' })).toEqual([]);
  });

  it('with a quote that is not closed, or a NOT without anything, does not lose the repository in it', async () => {
    for (const query of ['label:"burning tree', 'tree NOT']) {
      await issuesOf().issues({ query });
      expect(github.asked.at(-1)?.query.get('q')).toMatch(/^repo:acme\/rocket is:issue /);
    }
  });

  it('finds a repository by its former name', async () => {
    github.set({ number: 1, title: 'tree' });
    github.formerName = 'acme/firework';
    const issues = githubIssues({ repository: 'acme/firework', baseUrl: github.url, token: '' });
    expect(await issues.issues({ query: 'tree' })).toEqual([{ id: '1', status: 'todo' }]);
  });

  it('that does not find everything is an error', async () => {
    github.set({ number: 1, title: 'tree' });
    github.search = { total: 1001 };
    await expect(issuesOf().issues({ query: 'tree' })).rejects.toThrow(
      '1001 issues match "tree", and it gives out 1000',
    );
    github.search = { isPart: true };
    await expect(issuesOf().issues({ query: 'tree' })).rejects.toThrow('did not get through');
  });

  it('that GitHub does not understand is told in its words', async () => {
    github.faults.push({ status: 200, body: { full_name: 'acme/rocket' } });
    github.faults.push({
      status: 422,
      body: { message: 'Validation Failed', errors: [{ message: 'The search is longer than 256 characters.' }] },
    });
    await expect(issuesOf().issues({ query: 'x'.repeat(300) })).rejects.toThrow('longer than 256 characters');
  });
});

describe('asking again', () => {
  it('costs nothing of the limit as long as nothing has changed', async () => {
    for (let number = 1; number <= 150; number++) github.set({ number });
    const issues = issuesOf();
    const first = await issues.issues({});
    const { remaining } = github;
    expect(await issues.issues({})).toEqual(first);
    expect(await issues.issues({})).toEqual(first);
    expect(github.remaining).toBe(remaining);
    expect(github.asked.slice(2).map(({ status }) => status)).toEqual([304, 304, 304, 304]);
    github.set({ number: 150, isClosed: true });
    expect((await issues.issues({})).at(-1)).toEqual({ id: '150', status: 'done' });
  });

  it('finds the one that came behind a page that was full, and is as it was', async () => {
    for (let number = 1; number <= 100; number++) github.set({ number, title: 'tree' });
    const issues = issuesOf();
    expect(await issues.issues({})).toHaveLength(100);
    expect(await issues.issues({ query: 'tree' })).toHaveLength(100);
    github.set({ number: 101, title: 'tree' });
    github.search = { total: 100 };
    expect(await issues.issues({})).toHaveLength(101);
    expect(await issues.issues({ query: 'tree' })).toHaveLength(101);
  });
});

describe('the token', () => {
  it('comes from the options, the environment, or the command line of GitHub', async () => {
    const bin = mkdtempSync(join(tmpdir(), 'signalbox-gh-'));
    writeFileSync(join(bin, 'gh'), '#!/bin/sh\n[ "$1 $2 $3" = "auth token --hostname" ] && echo from-gh\n', {
      mode: 0o755,
    });
    try {
      const seen = async (options: Partial<GitHubIssuesOptions>): Promise<string | undefined> => {
        const { repository, url: baseUrl } = github;
        await githubIssues({ repository, baseUrl, ...options }).issues({});
        return github.asked.at(-1)?.headers.authorization;
      };
      const env = { PATH: bin, GITHUB_TOKEN: 'one', GH_TOKEN: 'two' };
      expect(await seen({ env, token: 'given' })).toBe('Bearer given');
      expect(await seen({ env })).toBe('Bearer one');
      expect(await seen({ env: { ...env, GITHUB_TOKEN: '' } })).toBe('Bearer two');
      expect(await seen({ env: { PATH: bin } })).toBe('Bearer from-gh');
      expect(await seen({ env: { PATH: join(bin, 'none') } })).toBeUndefined();
      expect(await seen({ env, token: '' })).toBeUndefined();
    } finally {
      rmSync(bin, { recursive: true });
    }
  });

  it('is in no message, whatever goes wrong', async () => {
    const repeats = { message: `no access for ${TOKEN}` };
    for (const status of [400, 401, 403, 404, 422, 500, 500, 502, 502])
      github.faults.push({ status, body: repeats, ...(status >= 500 && { headers: { 'retry-after': '0' } }) });
    const messages: string[] = [];
    for (let count = 0; count < 7; count++) {
      const error = await issuesOf()
        .issues({})
        .catch((thrown: unknown) => thrown as Error);
      messages.push(`${String(error)} ${JSON.stringify(error)} ${(error as Error).stack}`);
    }
    const broken = await issuesOf({ token: `${TOKEN}\nx` })
      .issues({})
      .catch((thrown: unknown) => thrown as Error);
    messages.push(String(broken), String((broken as Error).cause));
    expect(messages.filter((message) => message.includes(TOKEN))).toEqual([]);
    expect(String(broken)).toContain('not a token');
    expect(github.faults).toEqual([]);
  });

  it('goes only over a line that nobody listens to, and to nobody whose address has a password', () => {
    expect(() => issuesOf({ baseUrl: 'http://github.example.org/api/v3' })).toThrow('must be https');
    expect(() => issuesOf({ baseUrl: 'https://me:secret@github.example.org' })).toThrow('must not contain a password');
    expect(() => issuesOf({ baseUrl: 'https://me:secret@github.example.org' })).not.toThrow('secret@');
    expect(() => issuesOf({ baseUrl: 'nonsense' })).toThrow('is not a URL');
    expect(() => issuesOf({ baseUrl: 'https://github.example.org/api/v3/' })).not.toThrow();
  });
});

describe('what may go wrong', () => {
  it('a repository that cannot be seen is no repository without that issue', async () => {
    const closed = await FakeGitHub.start({ token: TOKEN });
    try {
      await expect(issuesOf({ token: '' }, closed).issue('1')).rejects.toThrow(
        'GitHub, acme/rocket: there is no such repository',
      );
      await expect(issuesOf({ token: '' }, closed).issues({ ids: [1] })).rejects.toThrow('set GITHUB_TOKEN');
      await expect(issuesOf({ token: 'wrong' }, closed).issue('1')).rejects.toMatchObject({ code: 'forbidden' });
      expect(await issuesOf({}, closed).issue('1')).toBeNull();
    } finally {
      await closed.stop();
    }
  });

  it('issues that are switched off are not issues that are done', async () => {
    github.hasIssues = false;
    await expect(issuesOf().issues({})).rejects.toThrow('switched off');
    await expect(issuesOf().issue('1')).rejects.toThrow('switched off');
    await expect(issuesOf().issues({ ids: [1] })).rejects.toThrow('switched off');
    await expect(issuesOf().issues({ query: 'tree' })).rejects.toThrow('switched off');
  });

  it('the limit is told with the time at which it is over', async () => {
    github.remaining = 0;
    await expect(issuesOf().issues({})).rejects.toThrow('try again at 2100-01-01T00:00:00.000Z');
    expect(github.asked).toHaveLength(1);
  });

  it('a short pause that GitHub asks for is made, once; a long one is told', async () => {
    github.set({ number: 1 });
    const slow = { message: 'You have exceeded a secondary rate limit.' };
    github.faults.push({ status: 403, headers: { 'retry-after': '0' }, body: slow });
    expect(await ids(issuesOf().issues({}))).toEqual(['1']);
    github.faults.push(
      { status: 429, headers: { 'retry-after': '0' } },
      { status: 429, headers: { 'retry-after': '0' } },
    );
    await expect(issuesOf().issues({})).rejects.toMatchObject({ code: 'unavailable' });
    github.faults.push({ status: 403, headers: { 'retry-after': '600' }, body: slow });
    await expect(issuesOf().issues({})).rejects.toThrow('try again at');
    github.faults.push({ status: 403, body: { message: 'Resource not accessible by personal access token' } });
    await expect(issuesOf().issues({})).rejects.toMatchObject({ code: 'forbidden' });
    expect(github.faults).toEqual([]);
  });

  it('what was broken for a moment is asked for once more, and then told', async () => {
    github.set({ number: 1 });
    github.faults.push({ status: 502, headers: { 'retry-after': '0' } });
    expect(await ids(issuesOf().issues({}))).toEqual(['1']);
    github.faults.push({ status: 502, headers: { 'retry-after': '0' } }, { status: 503 });
    await expect(issuesOf().issues({})).rejects.toThrow('GitHub, acme/rocket: it did not answer (503: A fault)');
    github.faults.push(undefined, undefined);
    await expect(issuesOf().issues({})).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('something else that answers at that address is found out', async () => {
    github.faults.push(
      { status: 200, body: { hello: 'world' } },
      { status: 200, body: [{ number: 'x', state: 'open' }] },
    );
    await expect(issuesOf().issues({})).rejects.toThrow('is that address its API?');
    await expect(issuesOf().issues({})).rejects.toThrow('is that address its API?');
    const page = createServer((_, response) => response.end('<html>welcome</html>')).listen(0, '127.0.0.1');
    await once(page, 'listening');
    const baseUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    await expect(issuesOf({ baseUrl }).issues({})).rejects.toThrow('not JSON');
    page.close();
  });

  it('a server that does not answer is given up in time, or when nobody wants to know any more', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    try {
      await expect(issuesOf({ baseUrl, timeoutMs: 50 }).issues({})).rejects.toThrow('no answer within 50 ms');
      await expect(issuesOf({ baseUrl }).issues({}, AbortSignal.timeout(50))).rejects.toMatchObject({
        name: 'TimeoutError',
      });
    } finally {
      silent.close();
      silent.closeAllConnections();
    }
  });

  it('nobody there is told by what the network says', async () => {
    const gone = await FakeGitHub.start();
    const baseUrl = gone.url;
    await gone.stop();
    await expect(issuesOf({ baseUrl }).issues({})).rejects.toThrow('ECONNREFUSED');
  });
});
