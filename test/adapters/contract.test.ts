// The promises of contract.ts, kept by the real adapters and by their fakes.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { githubIssues, localAdapters, openTracker, type TrackedIssue } from 'signalbox';
import { FakeCommands, FakeFiles, FakeGit, FakeIssues, FakeSessions } from 'signalbox/testing';
import { FakeGitHub } from '../support/github/server.ts';
import { Repository } from '../support/repository.ts';
import { commandsContract, filesContract, gitContract, issuesContract, sessionsContract } from './contract.ts';

function folder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-adapters-')));
}

gitContract('the real one', () => {
  const repository = new Repository();
  const { root, env } = repository;
  return {
    adapter: localAdapters({ root, env }).git,
    world: {
      addBranch: (name) => repository.git('branch', name, 'main'),
      removeBranch: (name) => repository.git('branch', '-D', name),
      checkOut: (branch) => repository.addWorktree(`at-${branch}`, branch),
      change: (path) => repository.write('untracked', 'x', path),
      begin: (path) => {
        repository.commit('theirs');
        repository.commit('ours', path);
        repository.gitIn(path, 'merge', '-q', '--no-commit', '-s', 'ours', 'main');
      },
      commit: (branch) => {
        repository.git('checkout', '-q', branch);
        repository.commit(`of-${branch}`);
        repository.git('checkout', '-q', 'main');
      },
      merge: (branch) => repository.git('merge', '-q', '--no-ff', '-m', 'merge', branch),
    },
    close: () => repository.remove(),
  };
});

gitContract('the fake', () => {
  const git = new FakeGit({ worktrees: { '/main': { branch: 'main' } } });
  return {
    adapter: git,
    world: {
      addBranch: (name) => git.addBranch(name),
      removeBranch: (name) => git.removeBranch(name),
      checkOut: (branch) => {
        git.checkOut(`/${branch}`, branch);
        return `/${branch}`;
      },
      change: (path) => git.setClean(path, false),
      begin: (path, operation) => git.setDoing(path, operation),
      commit: (branch) => git.commit(branch),
      merge: (branch, into) => git.merge(branch, into),
    },
    close: () => undefined,
  };
});

filesContract('the real ones', () => {
  const root = folder();
  return {
    adapter: localAdapters({ root, fileLimitBytes: 1_000 }).files,
    world: {
      write: (path, text) => {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), text);
      },
      makeDirectory: (path) => mkdirSync(join(root, path), { recursive: true }),
      remove: (path) => rmSync(join(root, path), { recursive: true }),
    },
    close: () => rmSync(root, { recursive: true }),
  };
});

filesContract('the fakes', () => {
  const files = new FakeFiles({}, 1_000);
  return {
    adapter: files,
    world: {
      write: (path, text) => files.write(path, text),
      makeDirectory: (path) => files.makeDirectory(path),
      remove: (path) => files.remove(path),
    },
    close: () => undefined,
  };
});

commandsContract('the real ones', () => {
  const root = folder();
  return {
    adapter: localAdapters({ root }).commands,
    world: undefined,
    close: () => rmSync(root, { recursive: true }),
  };
});

commandsContract('the fakes', () => {
  const commands = new FakeCommands();
  commands.set('printf red; exit 3', { exitCode: 3, output: 'red' });
  commands.set(['printf', 'green'], { output: 'green' });
  return { adapter: commands, world: undefined, close: () => undefined };
});

sessionsContract('the real ones', () => {
  const root = folder();
  const env = { PATH: process.env['PATH'], TMUX_TMPDIR: root, LC_ALL: 'C.UTF-8' };
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-f', '/dev/null', '-L', 'contract', ...args], { env, encoding: 'utf8', stdio: 'pipe' });
  let isRunning = false;
  return {
    adapter: localAdapters({ root, env, tmuxSocketName: 'contract' }).sessions,
    world: {
      start: (name) => {
        isRunning = true;
        tmux('new-session', '-d', '-s', name, 'cat');
      },
      end: (name) => tmux('kill-session', '-t', `=${name}`),
    },
    close: () => {
      if (isRunning) tmux('kill-server');
      rmSync(root, { recursive: true });
    },
  };
});

sessionsContract('the fakes', () => {
  const sessions = new FakeSessions();
  return { adapter: sessions, world: sessions, close: () => undefined };
});

issuesContract('the local tracker', () => {
  const root = folder();
  const path = join(root, 'issues.json');
  const issues: TrackedIssue[] = [];
  const write = (): void => writeFileSync(path, JSON.stringify({ version: 1, issues }));
  write();
  return {
    adapter: openTracker(path),
    world: {
      set: (issue) => {
        issues.push(issue);
        write();
      },
    },
    close: () => rmSync(root, { recursive: true }),
  };
});

issuesContract('GitHub', async () => {
  const github = await FakeGitHub.start();
  for (const title of ['v1', 'v2']) github.addMilestone(title);
  return {
    adapter: githubIssues({ repository: github.repository, baseUrl: github.url, token: '' }),
    world: {
      set: ({ id, title, status, labels, assignee, milestone }) => {
        const ofStatus = status === 'blocked' || status === 'in-progress' ? [status] : [];
        const assignees = assignee === null ? [] : [assignee];
        github.set({
          number: Number(id),
          title,
          isClosed: status === 'done',
          labels: [...labels, ...ofStatus],
          assignees,
          milestone,
        });
      },
    },
    close: () => github.stop(),
  };
});

issuesContract('the fake', () => {
  const issues = new FakeIssues();
  return { adapter: issues, world: { set: (issue) => issues.set(issue) }, close: () => undefined };
});
