// What every adapter promises, the real one and its fake alike: a fake that answers otherwise than the world would make
// tests pass that should not.

import { describe, expect, it } from 'vitest';
import type { Commands, Files, Git, Issues, Sessions, TrackedIssue } from 'signalbox';

/** The adapter, and the means to change what it looks at. */
export interface Subject<Adapter, World> {
  readonly adapter: Adapter;
  readonly world: World;
  close(): Promise<void> | void;
}

type Opened<Adapter, World> = () => Promise<Subject<Adapter, World>> | Subject<Adapter, World>;

function promises<Adapter, World>(
  what: string,
  open: Opened<Adapter, World>,
  each: Readonly<Record<string, (adapter: Adapter, world: World) => Promise<void>>>,
): void {
  describe(what, () => {
    it.each(Object.entries(each))('%s', async (_, keep) => {
      const { adapter, world, close } = await open();
      try {
        await keep(adapter, world);
      } finally {
        await close();
      }
    });
  });
}

const invalid = { code: 'invalid' };
const given = (): AbortSignal => AbortSignal.abort(new Error('no longer wanted'));

export interface GitWorld {
  /** At the commit of `main`. */
  addBranch(name: string): void;
  removeBranch(name: string): void;
  /** Answers the path. */
  checkOut(branch: string): string;
  change(path: string): void;
  /** Nothing is left to be committed in it for the moment. */
  begin(path: string, operation: 'merge'): void;
  /** Something that `main` does not have. The branch is not checked out. */
  commit(branch: string): void;
  merge(branch: string, into: 'main'): void;
}

/** In the beginning there is `main`, checked out and clean. */
export function gitContract(name: string, open: Opened<Git, GitWorld>): void {
  promises(`git, ${name}`, open, {
    'knows which branches exist': async (git, world) => {
      world.addBranch('feature/a');
      expect(await git.branch('main')).toEqual({ exists: true });
      expect(await git.branch('feature/a')).toEqual({ exists: true });
      expect(await git.branch('feature')).toEqual({ exists: false });
      expect(await git.branch('feature/a/b')).toEqual({ exists: false });
      world.removeBranch('feature/a');
      expect(await git.branch('feature/a')).toEqual({ exists: false });
    },
    'finds the worktrees of a branch, and whether they are clean': async (git, world) => {
      world.addBranch('work');
      expect(await git.worktrees('work')).toEqual([]);
      const path = world.checkOut('work');
      expect(await git.worktrees('work')).toEqual([{ path, clean: true }]);
      world.change(path);
      expect(await git.worktrees('work')).toEqual([{ path, clean: false }]);
      expect(await git.worktrees('main')).toEqual([expect.objectContaining({ clean: true })]);
      expect(await git.worktrees('nobody')).toBeNull();
    },
    'knows the worktree that a directory lies in': async (git, world) => {
      world.addBranch('work');
      const path = world.checkOut('work');
      expect(await git.worktree(path)).toEqual({ path, clean: true });
      expect(await git.worktree(`${path}/`)).toEqual({ path, clean: true });
      world.change(path);
      expect(await git.worktree(path)).toEqual({ path, clean: false });
      expect(await git.worktree('/no/such/directory')).toBeNull();
      for (const odd of ['', 'a\0b']) await expect(git.worktree(odd), odd).rejects.toMatchObject(invalid);
    },
    'counts what was begun and not finished as not clean': async (git, world) => {
      world.addBranch('work');
      const path = world.checkOut('work');
      world.begin(path, 'merge');
      expect(await git.worktrees('work')).toEqual([{ path, clean: false, doing: 'merge' }]);
      expect(await git.worktree(path)).toEqual({ path, clean: false, doing: 'merge' });
    },
    'knows what was merged': async (git, world) => {
      world.addBranch('work');
      world.commit('work');
      expect(await git.merged('work', 'main')).toEqual({ merged: false });
      world.merge('work', 'main');
      expect(await git.merged('work', 'main')).toEqual({ merged: true });
      expect(await git.merged('main', 'main')).toEqual({ merged: true });
    },
    'names the branches that are missing': async (git) => {
      expect(await git.merged('gone', 'main')).toEqual({ missing: ['gone'] });
      expect(await git.merged('main', 'gone')).toEqual({ missing: ['gone'] });
      expect(await git.merged('gone', 'lost')).toEqual({ missing: ['gone', 'lost'] });
      expect(await git.merged('gone', 'gone')).toEqual({ missing: ['gone'] });
    },
    'refuses what is no name of a branch': async (git) => {
      for (const odd of ODD_NAMES) {
        await expect(git.branch(odd), odd).rejects.toMatchObject(invalid);
        await expect(git.worktrees(odd), odd).rejects.toMatchObject(invalid);
        await expect(git.merged(odd, 'main'), odd).rejects.toMatchObject(invalid);
        await expect(git.merged('main', odd), odd).rejects.toMatchObject(invalid);
      }
    },
    'answers nobody who no longer wants to know': async (git) => {
      await expect(git.branch('main', given())).rejects.toThrow('no longer wanted');
      await expect(git.worktrees('main', given())).rejects.toThrow('no longer wanted');
      await expect(git.worktree('.', given())).rejects.toThrow('no longer wanted');
      await expect(git.merged('main', 'main', given())).rejects.toThrow('no longer wanted');
    },
  });
}

export const ODD_NAMES: readonly string[] = [
  ...[
    '',
    '-x',
    '--upload-pack=x',
    '--output=stolen',
    '-',
    '--',
    'a..b',
    '@{-1}',
    '@',
    'main@{1}',
    'HEAD',
    'HEAD~1',
    'main^',
  ],
  ...[
    'refs/heads/../x',
    '../x',
    'a//b',
    '/a',
    'a/',
    'a.lock',
    'a.lock/b',
    '.a',
    'a/.b',
    'a.',
    'a b',
    'a\tb',
    'a\nb',
    'a\0b',
  ],
  ...['a:b', ':a', 'a?', 'a*', 'a[b', 'a\\b', '\u007f', '\ud800'],
];

export interface FilesWorld {
  write(path: string, text: string): void;
  makeDirectory(path: string): void;
  remove(path: string): void;
}

/** The limit is 1,000 bytes. */
export function filesContract(name: string, open: Opened<Files, FilesWorld>): void {
  promises(`files, ${name}`, open, {
    'knows which exist, and what they say': async (files, world) => {
      world.write('docs/plan.md', 'grün');
      expect(await files.file('docs/plan.md')).toEqual({ exists: true });
      expect(await files.file('./docs/../docs//plan.md')).toEqual({ exists: true });
      expect(await files.file('docs')).toEqual({ exists: true });
      expect(await files.file('.')).toEqual({ exists: true });
      expect(await files.text('docs/plan.md')).toEqual({ text: 'grün' });
      world.remove('docs/plan.md');
      expect(await files.file('docs/plan.md')).toEqual({ exists: false });
      expect(await files.text('docs/plan.md')).toBeNull();
      expect(await files.text('nowhere/at/all')).toBeNull();
    },
    'finds nothing behind a file': async (files, world) => {
      world.write('plan.md', 'x');
      expect(await files.file('plan.md/more')).toEqual({ exists: false });
      expect(await files.text('plan.md/more')).toBeNull();
    },
    'takes a path with a slash at its end for that of a directory': async (files, world) => {
      world.write('docs/plan.md', 'x');
      for (const path of ['docs/', 'docs/.', './']) expect(await files.file(path), path).toEqual({ exists: true });
      for (const path of ['docs/plan.md/', 'docs/plan.md/.', 'docs/plan.md//']) {
        expect(await files.file(path), path).toEqual({ exists: false });
        expect(await files.text(path), path).toBeNull();
      }
    },
    'has no text of a directory': async (files, world) => {
      world.makeDirectory('docs');
      await expect(files.text('docs')).rejects.toMatchObject(invalid);
    },
    'never leaves the root': async (files) => {
      for (const odd of ['..', '../x', 'a/../../x', '../../../../../../etc/passwd', '', 'a\0b']) {
        await expect(files.file(odd), odd).rejects.toMatchObject(invalid);
        await expect(files.text(odd), odd).rejects.toMatchObject(invalid);
      }
    },
    'reads a file as large as the limit, and none that is larger': async (files, world) => {
      world.write('full', 'x'.repeat(1_000));
      world.write('over', `${'x'.repeat(999)}ü`);
      expect(await files.text('full')).toEqual({ text: 'x'.repeat(1_000) });
      await expect(files.text('over')).rejects.toThrow('larger than 1000 bytes');
    },
    'answers nobody who no longer wants to know': async (files) => {
      await expect(files.file('a', given())).rejects.toThrow('no longer wanted');
      await expect(files.text('a', given())).rejects.toThrow('no longer wanted');
    },
  });
}

/** `printf red; exit 3` and ['printf', 'green'] are known. */
export function commandsContract(name: string, open: Opened<Commands, undefined>): void {
  promises(`commands, ${name}`, open, {
    'tells the exit code and what was printed': async (commands) => {
      expect(await commands.run('printf red; exit 3')).toEqual({ exitCode: 3, output: 'red' });
      expect(await commands.run(['printf', 'green'])).toEqual({ exitCode: 0, output: 'green' });
    },
    'says so where a program cannot be started': async (commands) => {
      await expect(commands.run(['no-such-program', 'x'])).rejects.toThrow('"no-such-program" cannot be started');
    },
    'refuses what is no command': async (commands) => {
      for (const odd of ['', '  ', [], ['']]) await expect(commands.run(odd)).rejects.toMatchObject(invalid);
    },
    'answers nobody who no longer wants to know': async (commands) => {
      await expect(commands.run(['printf', 'green'], given())).rejects.toThrow('no longer wanted');
    },
  });
}

export interface SessionsWorld {
  start(name: string): void;
  end(name: string): void;
}

/** In the beginning there is none. */
export function sessionsContract(name: string, open: Opened<Sessions, SessionsWorld>): void {
  promises(`sessions, ${name}`, open, {
    'knows which are alive': async (sessions, world) => {
      expect(await sessions.session('worker')).toEqual({ alive: false });
      world.start('worker');
      world.start('other');
      expect(await sessions.session('worker')).toEqual({ alive: true });
      world.end('worker');
      expect(await sessions.session('worker')).toEqual({ alive: false });
      expect(await sessions.session('other')).toEqual({ alive: true });
    },
    'takes no name for the beginning of another, a pattern or a number': async (sessions, world) => {
      world.start('worker-10');
      for (const near of [
        'worker-1',
        'worker',
        'w*',
        '=worker-10',
        '$0',
        '@0',
        '-t',
        'WORKER-10',
        'worker-10:0',
        ' ',
      ]) {
        expect(await sessions.session(near), near).toEqual({ alive: false });
      }
    },
    'finds odd names as tmux has them': async (sessions, world) => {
      for (const odd of ['-x', 'grün', 'a b', '{last}', "it's"]) {
        world.start(odd);
        expect(await sessions.session(odd), odd).toEqual({ alive: true });
      }
      world.start('v1.2:web');
      expect(await sessions.session('v1.2:web')).toEqual({ alive: true });
      expect(await sessions.session('v1_2_web')).toEqual({ alive: true });
    },
    'refuses what is no name': async (sessions) => {
      for (const odd of ['', 'a\nb', 'a\0b']) await expect(sessions.session(odd)).rejects.toMatchObject(invalid);
    },
    'answers nobody who no longer wants to know': async (sessions) => {
      await expect(sessions.session('worker', given())).rejects.toThrow('no longer wanted');
    },
  });
}

export interface IssuesWorld {
  set(issue: TrackedIssue): Promise<void> | void;
}

/** In the beginning there is none. `knowsMilestones`: asking for one that does not exist is an error. */
export function issuesContract(name: string, open: Opened<Issues, IssuesWorld>): void {
  const issue = (id: string, fields: Partial<TrackedIssue> = {}): TrackedIssue => ({
    ...{ id, title: `Issue ${id}`, status: 'todo', labels: [], assignee: null, milestone: null },
    ...fields,
  });
  const ids = async (issues: Issues, filter: Parameters<Issues['issues']>[0]): Promise<string[]> =>
    (await issues.issues(filter)).map(({ id }) => id).toSorted();

  promises(`issues, ${name}`, open, {
    'tells the status of each': async (issues, world) => {
      await world.set(issue('1'));
      await world.set(issue('2', { status: 'in-progress' }));
      await world.set(issue('3', { status: 'blocked' }));
      await world.set(issue('4', { status: 'done' }));
      expect(await issues.issue('1')).toEqual({ status: 'todo' });
      expect(await issues.issue('2')).toEqual({ status: 'in-progress' });
      expect(await issues.issue('3')).toEqual({ status: 'blocked' });
      expect(await issues.issue('4')).toEqual({ status: 'done' });
      expect(await issues.issue('5')).toBeNull();
      const all = [...(await issues.issues({}))].toSorted((one, other) => one.id.localeCompare(other.id));
      expect(all.map(({ status }) => status)).toEqual(['todo', 'in-progress', 'blocked', 'done']);
    },
    'finds those that have everything that is asked for': async (issues, world) => {
      await world.set(issue('1', { labels: ['bug', 'ui'], assignee: 'ana', milestone: 'v1' }));
      await world.set(issue('2', { labels: ['bug'], assignee: 'bo', milestone: 'v2', status: 'done' }));
      await world.set(issue('3', { labels: ['ui'], assignee: 'ana', milestone: 'v1', status: 'blocked' }));
      expect(await ids(issues, { labels: ['bug'] })).toEqual(['1', '2']);
      expect(await ids(issues, { labels: ['bug', 'ui'] })).toEqual(['1']);
      expect(await ids(issues, { assignee: 'ana' })).toEqual(['1', '3']);
      expect(await ids(issues, { milestone: 'v1' })).toEqual(['1', '3']);
      expect(await ids(issues, { status: 'done' })).toEqual(['2']);
      expect(await ids(issues, { status: 'blocked' })).toEqual(['3']);
      expect(await ids(issues, { ids: ['1', 3, '9'] })).toEqual(['1', '3']);
      expect(await ids(issues, { ids: [1, 2], assignee: 'ana' })).toEqual(['1']);
      expect(await ids(issues, { labels: ['ui'], status: 'todo', milestone: 'v1' })).toEqual(['1']);
      expect(await ids(issues, { labels: ['nobody has it'] })).toEqual([]);
      expect(await ids(issues, { ids: [] })).toEqual([]);
    },
    'finds every one of many': async (issues, world) => {
      for (let number = 1; number <= 230; number++) await world.set(issue(String(number)));
      expect(await ids(issues, {})).toHaveLength(230);
    },
    searches: async (issues, world) => {
      await world.set(issue('1', { title: 'The tree burns', labels: ['fire'] }));
      await world.set(issue('2', { title: 'The tree falls' }));
      expect(await ids(issues, { query: 'tree' })).toEqual(['1', '2']);
      expect(await ids(issues, { query: 'Burns tree' })).toEqual(['1']);
      expect(await ids(issues, { query: 'water' })).toEqual([]);
    },
    'answers nobody who no longer wants to know': async (issues, world) => {
      await world.set(issue('1'));
      await expect(issues.issues({}, given())).rejects.toThrow('no longer wanted');
      await expect(issues.issue('1', given())).rejects.toThrow('no longer wanted');
    },
  });
}
