/** Inspects a repository: calls git, and decides which of its answers can be trusted. */
import { lstat, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { WorktreeState } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { QUIET } from '../host/index.ts';
import { canLeaveUnfetched, type GitSettings, MINDED, parseSettings, withoutFilters } from './git-settings.ts';
import { isThere } from './foreign-file.ts';
import { operationIn } from './operation.ts';
import { type Printed, printedBy, type ProgramOptions } from './program.ts';
import { parseWorktrees, type Worktree } from './worktree-list.ts';
import { checkPlace, gitDirectoryOf, linkedGitDirectories, unseen } from './worktree-place.ts';

/** Where a branch is. */
export interface Tip {
  readonly commit: string;
  /** The ref of the branch, and if it is an alias, that of the branch it stands for. */
  readonly refs: readonly string[];
}

interface At {
  readonly cwd: string;
  /** The directory is the top of a worktree, so git must not search above it. */
  readonly isWorktree: boolean;
}

interface Asking extends Partial<At>, Pick<ProgramOptions, 'onOutput' | 'isCutShort'> {
  /** Exit codes that are answers, where nothing on stderr says otherwise. Default: 0. */
  readonly answers?: readonly number[];
}

/** Since 2.36 git can list worktrees with NULs between them; a git that does not know `-z` exits with this code. */
const USAGE = 129;
const GITLINK = '160000';
/** How many changed files that only a filter can judge are looked at. A single file without a filter decides. */
const MOST_COMPARED = 100;

export class GitLook {
  readonly #root: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #signal: AbortSignal;

  constructor(root: string, env: NodeJS.ProcessEnv, signal: AbortSignal) {
    this.#root = root;
    this.#env = env;
    this.#signal = signal;
  }

  /** Has no entry for a branch that does not exist. */
  async tipsOf(names: readonly string[]): Promise<ReadonlyMap<string, Tip>> {
    const refs = names.flatMap(refsOf);
    // A pattern without wildcards is the ref itself, or a directory of refs; those are sorted out below.
    const listed = await this.#git(['for-each-ref', '--format=%(objectname) %(refname) %(symref)', '--', ...refs]);
    const broken = refs.find((ref) =>
      new RegExp(`(broken ref|dangling symref) ${escaped(ref)}$`, 'm').test(listed.stderr),
    );
    if (broken !== undefined) throw new Failure('corrupt', `${this.#root}: ${broken} is broken, says git`);
    const tips = new Map(
      listed.stdout.split('\n').map((line): [string, Tip] => {
        const [commit = '', ref = '', target = ''] = line.split(' ');
        return [ref, { commit, refs: target === '' ? [ref] : [ref, target] }];
      }),
    );
    const found = new Map<string, Tip>();
    for (const name of names) {
      const tip = refsOf(name)
        .map((ref) => tips.get(ref))
        .find((one) => one !== undefined);
      if (tip === undefined) await this.#checkAbsent(name);
      else found.set(name, tip);
    }
    return found;
  }

  /** Every worktree that has the branch checked out, is detached at its tip, or will go back to it. */
  async worktreesAt(tip: Tip): Promise<readonly WorktreeState[]> {
    const [common, listed] = await Promise.all([this.#commonDirectory(), this.#listWorktrees()]);
    const linked = await linkedGitDirectories(common, this.#signal);
    const found: WorktreeState[] = [];
    // One after another: there may be many, and each takes several calls of git.
    for (const [place, worktree] of listed.entries()) {
      const gitDirectory = place === 0 ? common : linked.get(worktree.path);
      if (!worktree.isBare) found.push(...(await this.#worktreeAt(tip, worktree, gitDirectory, place === 0)));
    }
    return found;
  }

  /** The worktree that a directory lies in. */
  async worktreeAround(directory: string): Promise<WorktreeState> {
    const path = await this.#line(['rev-parse', '--show-toplevel'], { cwd: directory });
    const gitDirectory = await this.#line(['rev-parse', '--absolute-git-dir'], { cwd: directory });
    const operation = await operationIn(gitDirectory, this.#signal);
    // With `core.worktree` git finds the repository from the directory alone.
    const isNamed = (await gitDirectoryOf(path, this.#signal)) === (await realpath(gitDirectory));
    const state = await this.#stateOf(isNamed ? path : directory, operation?.doing, isNamed);
    return { ...state, path };
  }

  async isAncestor(one: Tip, other: Tip): Promise<boolean> {
    await this.#checkFetched(await this.#settingsOf({ cwd: this.#root, isWorktree: false }), this.#root);
    const asked = await this.#git(['merge-base', '--is-ancestor', one.commit, other.commit], { answers: [0, 1] });
    if (asked.exitCode === 0) return true;
    // In a shallow clone a commit may seem not to be an ancestor only because the history is cut off.
    if ((await this.#line(['rev-parse', '--is-shallow-repository'])) === 'true') {
      throw new Failure(
        'unavailable',
        `${shown(this.#root)} is a shallow clone: its history does not tell what was merged; git fetch --unshallow`,
      );
    }
    return false;
  }

  async #worktreeAt(
    tip: Tip,
    worktree: Worktree,
    gitDirectory: string | undefined,
    isMain: boolean,
  ): Promise<readonly WorktreeState[]> {
    const { branch, head, path } = worktree;
    const isAtTip = branch === undefined ? head === tip.commit : tip.refs.includes(branch);
    if (branch !== undefined && !isAtTip) return [];
    if (gitDirectory === undefined)
      throw unseen(path, 'git lists it, and has no directory for it; git worktree repair');
    const operation = await operationIn(gitDirectory, this.#signal);
    if (!isAtTip && operation?.branches.some((ref) => tip.refs.includes(ref)) !== true) return [];
    const place = isMain ? await this.#mainPlace(worktree, gitDirectory) : path;
    if (!isMain) await checkPlace(worktree, gitDirectory, this.#signal);
    return [await this.#stateOf(place, operation?.doing)];
  }

  /** Git lists the main worktree by where its git directory is, which may be elsewhere (`--separate-git-dir`, submodules). */
  async #mainPlace(worktree: Worktree, common: string): Promise<string> {
    const { path } = worktree;
    if ((await gitDirectoryOf(path, this.#signal)) === common) return path;
    const own = await this.#line(['rev-parse', '--absolute-git-dir']);
    if ((await realpath(own)) === common) return this.#line(['rev-parse', '--show-toplevel']);
    throw new Failure(
      'unavailable',
      `git does not say where the main worktree of ${common} is: look from a directory inside that worktree`,
    );
  }

  async #stateOf(path: string, doing: WorktreeState['doing'], isWorktree = true): Promise<WorktreeState> {
    if (doing !== undefined) return { path, clean: false, doing };
    return { path, clean: await this.#isClean({ cwd: path, isWorktree }) };
  }

  async #isClean(at: At): Promise<boolean> {
    const path = at.cwd;
    const [settings, submodules] = await Promise.all([this.#settingsOf(at), this.#submodulesOf(at)]);
    await this.#checkFetched(settings, path);
    const args = ['status', '--porcelain', '--untracked-files=normal', '--ignored=no', '--ignore-submodules=dirty'];
    const status = await this.#git([...withoutFilters(settings.ownFilters), ...args, '--no-renames', '-z'], {
      ...at,
      isCutShort: true,
    });
    // Git prints an error, leaves the entry out, and exits with 0.
    const [, unopened] = /^warning: (could not open directory .*)$/m.exec(status.stderr) ?? [];
    if (unopened !== undefined) throw new Failure('unavailable', `git in ${path}: ${unopened}`);
    if (status.stdout !== '') {
      await this.#checkWithoutFilters(status.stdout, settings.ownFilters, at);
      return false;
    }
    // Each submodule by itself, because each has its own configuration, and git would run the programs that it names.
    for (const submodule of submodules) {
      if (!(await this.#isClean({ cwd: submodule, isWorktree: true }))) return false;
    }
    return true;
  }

  /** The directories of all submodules that are checked out. */
  async #submodulesOf(at: At): Promise<readonly string[]> {
    const top = await this.#line(['rev-parse', '--show-toplevel'], at);
    const found: string[] = [];
    let rest = '';
    const onOutput = (chunk: Buffer): void => {
      const entries = (rest + chunk.toString('latin1')).split('\0');
      rest = entries.pop() ?? '';
      for (const entry of entries) {
        if (entry.startsWith(GITLINK))
          found.push(Buffer.from(entry.slice(entry.indexOf('\t') + 1), 'latin1').toString());
      }
    };
    await this.#git(['ls-files', '--stage', '--full-name', '-z', '--', ':/'], { ...at, onOutput });
    const directories = [...new Set(found)].map((name) => join(top, name));
    const areThere = await Promise.all(directories.map((directory) => isThere(join(directory, '.git'))));
    return directories.filter((_, place) => areThere[place]);
  }

  /**
   * Git compares a touched file through its filter. A filter that the repository itself names is not run, so "changed" may be
   * wrong for such a file: it counts only if something else has changed too.
   */
  async #checkWithoutFilters(status: string, filters: readonly string[], at: At): Promise<void> {
    if (filters.length === 0) return;
    const entries = status.split('\0').filter((entry) => entry !== '');
    if (entries.some((entry) => !entry.startsWith(' M '))) return;
    const files = entries.slice(0, MOST_COMPARED).map((entry) => entry.slice(3));
    const asked = await this.#git(['check-attr', '-z', 'filter', '--', ...files], at);
    const words = asked.stdout.split('\0');
    const wanted = words.filter((_, at) => at % 3 === 2);
    if (wanted.length < files.length || wanted.some((name) => !filters.includes(name))) return;
    throw new Failure(
      'unavailable',
      `${at.cwd}: ${shown(files[0])} was touched, and the filter "${wanted[0]}" that would tell whether it changed is named by ` +
        `the repository's own configuration and not run; if you trust it, run git status there`,
    );
  }

  async #settingsOf(at: At): Promise<GitSettings> {
    const args = ['config', '-z', '--show-scope', '--get-regexp', MINDED];
    const asked = await this.#git(args, { ...at, answers: [0, 1] });
    const settings = parseSettings(asked.stdout);
    const odd = settings.ownFilters.find((name) => /[=\u0000-\u001f]/.test(name));
    if (odd === undefined) return settings;
    throw new Failure(
      'unavailable',
      `${at.cwd}: its configuration has a filter ${shown(odd)}, which cannot be turned off`,
    );
  }

  /** In a partial clone git fetches missing objects with programs, and from places, that the repository names. */
  async #checkFetched({ isPartialClone }: GitSettings, where: string): Promise<void> {
    if (!isPartialClone) return;
    const version = await this.#line(['version']);
    if (canLeaveUnfetched(version)) return;
    throw new Failure(
      'unavailable',
      `${where} is a partial clone, and ${version} would fetch missing objects with a program that the repository names: ` +
        'git 2.45 is needed to inspect it (or 2.39.4, 2.40.2, 2.41.1, 2.42.2, 2.43.4, 2.44.1)',
    );
  }

  /** Checks that git did not leave the branch out silently because it may not read the ref. */
  async #checkAbsent(name: string): Promise<void> {
    const common = await this.#commonDirectory();
    for (const ref of refsOf(name)) {
      const found = await lstat(join(common, ref)).catch((error: NodeJS.ErrnoException) => error);
      if (found instanceof Error) {
        if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(found.code ?? '')) continue;
        throw new Failure('unavailable', `${ref} cannot be looked at: ${found.message}`, { cause: found });
      }
      if (!found.isDirectory())
        throw new Failure('unavailable', `${join(common, ref)} is there, but git cannot read a branch from it`);
    }
  }

  async #commonDirectory(): Promise<string> {
    return realpath(resolve(this.#root, await this.#line(['rev-parse', '--git-common-dir'])));
  }

  async #listWorktrees(): Promise<readonly Worktree[]> {
    const listed = await this.#git(['worktree', 'list', '--porcelain', '-z'], { answers: [0, USAGE] });
    if (listed.exitCode === 0) return parseWorktrees(listed.stdout, '\0');
    const lines = await this.#git(['worktree', 'list', '--porcelain']);
    return parseWorktrees(lines.stdout, '\n');
  }

  /** For what git prints as one line; the line may contain line breaks. */
  async #line(args: readonly string[], at: Partial<At> = {}): Promise<string> {
    const { stdout } = await this.#git(args, at);
    return stdout.replace(/\n$/, '');
  }

  async #git(args: readonly string[], asking: Asking = {}): Promise<Printed> {
    const { cwd = this.#root, isWorktree = false, answers = [0], ...options } = asking;
    await checkDirectory(cwd);
    const printed = await printedBy('git', [...QUIET, ...args], {
      ...options,
      cwd,
      env: isWorktree ? { ...this.#env, GIT_CEILING_DIRECTORIES: dirname(cwd) } : this.#env,
      signal: this.#signal,
    });
    checkAnswer(printed, answers, cwd);
    return printed;
  }
}

function refsOf(name: string): readonly string[] {
  return name.includes('/') ? [`refs/heads/${name}`, `refs/remotes/${name}`] : [`refs/heads/${name}`];
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Checks the directory: without this, Node would report the program as missing. */
async function checkDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: Error) => error);
  if (found instanceof Error) throw new Failure('unavailable', `${path}: ${found.message}`, { cause: found });
  if (!found.isDirectory()) throw new Failure('invalid', `${path} is not a directory`);
}

/**
 * Git may print `error:` because it could not read something, and then exit with a code that means "no". A git that
 * does not know an option prints the same, and is asked in another way.
 */
function checkAnswer({ exitCode, stderr, isCut }: Printed, answers: readonly number[], where: string): void {
  if (isCut === true) return;
  const trouble = stderr.split('\n').find((line) => /^(fatal|error): /.test(line));
  if (answers.includes(exitCode) && (trouble === undefined || exitCode === USAGE)) return;
  const said = trouble ?? stderr.trim().split('\n')[0] ?? '';
  throw new Failure(
    'unavailable',
    `git in ${where}: ${said === '' ? `exit code ${exitCode}` : said.replace(/^fatal: /, '')}`,
  );
}
