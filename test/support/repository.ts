/** A real git repository in a temporary directory, that nobody's settings reach into. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export class Repository {
  /** Everything that belongs to it is in here. */
  readonly folder: string;
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;

  constructor() {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-git-')));
    this.root = join(this.folder, 'main');
    mkdirSync(this.root);
    const who = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.org' };
    this.env = {
      ...{ PATH: process.env['PATH'], HOME: this.folder, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
      ...{ ...who, GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@example.org' },
    };
    this.git('init', '-q', '-b', 'main');
    this.commit('README');
  }

  git(...args: readonly string[]): string {
    return this.gitIn(this.root, ...args);
  }

  gitIn(cwd: string, ...args: readonly string[]): string {
    return execFileSync('git', args, { cwd, env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** On the branch that is checked out there. */
  commit(file: string, cwd = this.root): void {
    this.write(file, `${file}\n`, cwd);
    this.gitIn(cwd, 'add', '--', file);
    this.gitIn(cwd, 'commit', '-q', '-m', `add ${file}`);
  }

  write(file: string, text: string, cwd = this.root): void {
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), text);
  }

  /** Answers its path. */
  addWorktree(name: string, branch: string): string {
    const path = join(this.folder, name);
    this.git('worktree', 'add', '-q', path, branch);
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
