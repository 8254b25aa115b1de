/** Git without a repository. */
import { posix } from 'node:path';
import type { Git } from '../../adapters/index.ts';
import { checkBranchName } from '../../adapters/branch-name.ts';
import type { InputValues, WorktreeOperation, WorktreeState } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { Fake } from './fake.ts';

/** A repository at the beginning of a test. */
export interface FakeGitState {
  /** Its branches. */
  readonly branches?: readonly string[];
  /** The checked-out branch by path; clean unless stated otherwise. `.` is the current directory. */
  readonly worktrees?: Readonly<Record<string, { readonly branch: string; readonly clean?: boolean }>>;
  /** Which branch is merged into which. */
  readonly merged?: readonly (readonly [branch: string, into: string])[];
}

interface FakeWorktree {
  readonly branch: string;
  clean: boolean;
  doing?: WorktreeOperation | undefined;
}

/** A repository that exists only in a test. */
export class FakeGit extends Fake implements Git {
  readonly #branches = new Set<string>();
  readonly #worktrees = new Map<string, FakeWorktree>();
  readonly #merged = new Map<string, Set<string>>();

  /** Begins with these branches and worktrees. */
  constructor({ branches = [], worktrees = {}, merged = [] }: FakeGitState = {}) {
    super();
    for (const name of branches) this.addBranch(name);
    for (const [path, { branch, clean }] of Object.entries(worktrees)) this.checkOut(path, branch, clean);
    for (const [branch, into] of merged) this.merge(branch, into);
  }

  /** Adds a branch. */
  addBranch(name: string): void {
    checkBranchName(name);
    this.#branches.add(name);
  }

  /** Removes a branch. */
  removeBranch(name: string): void {
    this.#branches.delete(name);
    this.#merged.delete(name);
    for (const into of this.#merged.values()) into.delete(name);
  }

  /** Makes the branch if it is missing. */
  checkOut(path: string, branch: string, clean = true): void {
    this.addBranch(branch);
    this.#worktrees.set(path, { branch, clean });
  }

  /** Removes a worktree. */
  removeWorktree(path: string): void {
    this.#worktrees.delete(path);
  }

  /** Makes a worktree clean, or not. */
  setClean(path: string, clean: boolean): void {
    this.#worktreeAt(path).clean = clean;
  }

  /** Begins a merge or the like in a worktree, which is not clean until `undefined` ends it. */
  setDoing(path: string, doing: WorktreeOperation | undefined): void {
    this.#worktreeAt(path).doing = doing;
  }

  #worktreeAt(path: string): FakeWorktree {
    const worktree = this.#worktrees.get(path);
    if (worktree === undefined) throw new Error(`there is no worktree ${path}`);
    return worktree;
  }

  /** Merges one branch into another, and makes both if they do not exist. A later `commit` on `branch` undoes that. */
  merge(branch: string, into: string): void {
    this.addBranch(branch);
    this.addBranch(into);
    this.#merged.set(branch, (this.#merged.get(branch) ?? new Set()).add(into));
  }

  /** Adds a commit to the branch, which is in no other branch. */
  commit(branch: string): void {
    this.addBranch(branch);
    this.#merged.delete(branch);
  }

  /** Whether there is such a branch. */
  branch(name: string, signal?: AbortSignal): Promise<InputValues['branch']> {
    return this.answer(['branch', name], signal, () => {
      checkBranchName(name);
      return { exists: this.#branches.has(name) };
    });
  }

  /** The worktrees that have the branch. */
  worktrees(branch: string, signal?: AbortSignal): Promise<InputValues['worktrees']> {
    return this.answer(['worktrees', branch], signal, () => {
      checkBranchName(branch);
      if (!this.#branches.has(branch)) return null;
      const having = [...this.#worktrees].filter(([, worktree]) => worktree.branch === branch);
      return having.map(([path, worktree]) => stateOf(path, worktree));
    });
  }

  /** A directory exists if it is a worktree, or in one. */
  worktree(path: string, signal?: AbortSignal): Promise<InputValues['worktree']> {
    return this.answer(['worktree', path], signal, () => {
      if (path === '' || path.includes('\0')) throw new Failure('invalid', `${shown(path)} is no path`);
      for (let place = posix.normalize(path).replace(/(.)\/$/, '$1'); ; place = posix.dirname(place)) {
        const worktree = this.#worktrees.get(place);
        if (worktree !== undefined) return stateOf(place, worktree);
        if (place === posix.dirname(place)) return null;
      }
    });
  }

  /** Whether everything of `branch` is in `into`. */
  merged(branch: string, into: string, signal?: AbortSignal): Promise<InputValues['branchMerged']> {
    return this.answer(['merged', branch, into], signal, () => {
      [branch, into].forEach(checkBranchName);
      const missing = [...new Set([branch, into])].filter((name) => !this.#branches.has(name));
      if (missing.length > 0) return { missing };
      return { merged: branch === into || (this.#merged.get(branch)?.has(into) ?? false) };
    });
  }
}

function stateOf(path: string, { clean, doing }: FakeWorktree): WorktreeState {
  return { path, clean: clean && doing === undefined, ...(doing !== undefined && { doing }) };
}
