/**
 * Reads and writes the files of a repository that `agents init` changes. A repository may have come from anywhere, so a link in
 * it that leads outside is not followed.
 */
import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { randomHex } from '../../host/index.ts';
import { directoryOf } from '../directory.ts';
import { CliExit, EXIT } from '../exit-code.ts';

const LARGEST = 4 * 2 ** 20;

export type Place =
  /** `path`: the file itself, behind links that stay inside. `text` is undefined if there is none yet. */
  | { readonly kind: 'file'; readonly path: string; readonly text: string | undefined }
  | { readonly kind: 'refused'; readonly why: string };

/** The repository that a directory is in, if it is in one. */
function repositoryOf(directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    if (lstatSync(join(at, '.git'), { throwIfNoEntry: false }) !== undefined) return at;
    if (dirname(at) === at) return undefined;
  }
}

/** The repository around the given directory, or that directory itself; without one, the repository around the current directory. */
export function rootOf(given: string | undefined): string {
  const directory = realpathSync(directoryOf(given === undefined ? 'the current directory' : '--dir', given ?? '.'));
  const root = repositoryOf(directory) ?? (given === undefined ? undefined : directory);
  if (root !== undefined) return root;
  throw new CliExit(
    EXIT.usage,
    `there is no git repository around ${directory}; go into one, or name the directory to write into: --dir DIR`,
  );
}

export function placeIn(root: string, name: string): Place {
  const path = join(root, name);
  try {
    const real = realOf(path);
    if (real !== root && !real.startsWith(root + sep)) {
      return { kind: 'refused', why: `it is a link that leads out of the repository, to ${real}` };
    }
    if (relative(root, real).split(sep)[0] === '.git') return { kind: 'refused', why: 'it is a link into .git' };
    const stat = statSync(real, { throwIfNoEntry: false });
    if (stat === undefined) return { kind: 'file', path: real, text: undefined };
    if (!stat.isFile()) return { kind: 'refused', why: 'it is no regular file' };
    if (stat.size > LARGEST) return { kind: 'refused', why: 'it is too large for a file of its kind' };
    return { kind: 'file', path: real, text: readFileSync(real, 'utf8') };
  } catch (error) {
    return { kind: 'refused', why: (error as Error).message };
  }
}

/** Resolves links as far as there is something; a link to nothing is refused, because writing would make its target. */
function realOf(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) return realpathSync(path);
  return join(realOf(dirname(path)), path.slice(dirname(path).length + 1));
}

/** In one step: nobody reads half a file. */
export function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0o644;
  const fresh = `${path}.${randomHex(4)}`;
  try {
    writeFileSync(fresh, text, { flag: 'wx', mode: mode & 0o777 });
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}
