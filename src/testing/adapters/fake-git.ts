/** Git without a repository. */
import type { Git } from '../../adapters/index.ts';
import { checkBranchName } from '../../adapters/branch-name.ts';
import type { InputValues } from '../../core/index.ts';
import { Fake } from './fake.ts';

export interface FakeGitState {
  readonly branches?: readonly string[];
  /** The branch that is checked out, by path; `clean` unless it says otherwise. */
  readonly worktrees?: Readonly<Record<string, { readonly branch: string; readonly clean?: boolean }>>;
  /** Which branch is merged into which. */
  readonly merged?: readonly (readonly [branch: string, into: string])[];
}

export class FakeGit extends Fake implements Git {
  readonly #branches = new Set<string>();
  readonly #worktrees = new Map<string, { branch: string; clean: boolean }>();
  readonly #merged = new Map<string, Set<string>>();

  constructor({ branches = [], worktrees = {}, merged = [] }: FakeGitState = {}) {
    super();
    for (const name of branches) this.addBranch(name);
    for (const [path, { branch, clean }] of Object.entries(worktrees)) this.checkOut(path, branch, clean);
    for (const [branch, into] of merged) this.merge(branch, into);
  }

  addBranch(name: string): void {
    checkBranchName(name);
    this.#branches.add(name);
  }

  removeBranch(name: string): void {
    this.#branches.delete(name);
    this.#merged.delete(name);
    for (const into of this.#merged.values()) into.delete(name);
  }

  /** Makes the branch if there is none. */
  checkOut(path: string, branch: string, clean = true): void {
    this.addBranch(branch);
    this.#worktrees.set(path, { branch, clean });
  }

  removeWorktree(path: string): void {
    this.#worktrees.delete(path);
  }

  setClean(path: string, clean: boolean): void {
    const worktree = this.#worktrees.get(path);
    if (worktree === undefined) throw new Error(`there is no worktree ${path}`);
    worktree.clean = clean;
  }

  /** Makes the branches if they are not there. Commits on `branch` after that are told by `commit`. */
  merge(branch: string, into: string): void {
    this.addBranch(branch);
    this.addBranch(into);
    this.#merged.set(branch, (this.#merged.get(branch) ?? new Set()).add(into));
  }

  /** The branch has something that is in no other branch. */
  commit(branch: string): void {
    this.addBranch(branch);
    this.#merged.delete(branch);
  }

  branch(name: string, signal?: AbortSignal): Promise<InputValues['branch']> {
    return this.answer(['branch', name], signal, () => {
      checkBranchName(name);
      return { exists: this.#branches.has(name) };
    });
  }

  worktrees(branch: string, signal?: AbortSignal): Promise<InputValues['worktrees']> {
    return this.answer(['worktrees', branch], signal, () => {
      checkBranchName(branch);
      const having = [...this.#worktrees].filter(([, worktree]) => worktree.branch === branch);
      return having.map(([path, { clean }]) => ({ path, clean }));
    });
  }

  merged(branch: string, into: string, signal?: AbortSignal): Promise<InputValues['branchMerged']> {
    return this.answer(['merged', branch, into], signal, () => {
      [branch, into].forEach(checkBranchName);
      const missing = [...new Set([branch, into])].filter((name) => !this.#branches.has(name));
      if (missing.length > 0) return { missing };
      return { merged: branch === into || (this.#merged.get(branch)?.has(into) ?? false) };
    });
  }
}
