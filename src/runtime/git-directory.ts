/**
 * Git's common directory, which all worktrees of a repository share, found as git finds it but without starting git:
 * that would take longer than everything else `run` does.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Failure } from '../failure.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function gitCommonDirectory(from: string, environment: Environment): string | undefined {
  const named = environment['GIT_DIR'];
  const directory = named === undefined || named === '' ? search(from) : resolve(from, named);
  if (directory === undefined || !isDirectory(directory)) return undefined;
  const common = environment['GIT_COMMON_DIR'];
  if (common !== undefined && common !== '') return real(resolve(from, common));
  // A worktree's own directory names the one that all of them share.
  const shared = readLine(join(directory, 'commondir'));
  return real(shared === undefined ? directory : resolve(directory, shared));
}

function search(from: string): string | undefined {
  for (let place = real(resolve(from)); ; place = dirname(place)) {
    const found = gitDirectoryAt(place);
    if (found !== undefined) return found;
    if (place === dirname(place)) return undefined;
  }
}

function gitDirectoryAt(place: string): string | undefined {
  const dotGit = join(place, '.git');
  if (isRepository(dotGit)) return dotGit;
  // A worktree or a submodule has a file that says where.
  const named = /^gitdir: (.+)$/.exec(readLine(dotGit) ?? '')?.[1];
  if (named !== undefined) return reachable(resolve(place, named), dotGit);
  return isRepository(place) ? place : undefined;
}

/** Not there: then those who share it are elsewhere, and a store of our own would be the worst answer. */
function reachable(directory: string, dotGit: string): string {
  if (isDirectory(directory)) return directory;
  throw new Failure(
    'forbidden',
    `${dotGit} says that the repository is in ${directory}, which cannot be seen from here`,
  );
}

/** What git itself takes for one: anything less may be a directory that only looks like it. */
function isRepository(directory: string): boolean {
  return (
    readLine(join(directory, 'HEAD')) !== undefined &&
    isDirectory(join(directory, 'objects')) &&
    isDirectory(join(directory, 'refs'))
  );
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function readLine(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
