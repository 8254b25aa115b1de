/**
 * Reads files under a root. A path is relative to the root, or absolute and inside it; `..` is taken as written. Links are
 * resolved before anything is opened, and a path outside the root is refused, whether it exists or not.
 */
import { type FileHandle, readlink, realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { Failure, type FailureCode, shown } from '../failure.ts';
import type { Files } from './adapters.ts';
import { readForeign } from './foreign-file.ts';
import { textOf } from './text.ts';

export interface FilesOptions {
  readonly root: string;
  /** Larger files are not read. Default 1 MiB. */
  readonly limitBytes?: number;
}

const LIMIT_BYTES = 1024 * 1024;

export function realFiles({ root, limitBytes = LIMIT_BYTES }: FilesOptions): Files {
  return {
    async file(path, signal) {
      signal?.throwIfAborted();
      return { exists: (await placeOf(path, root)) !== undefined };
    },

    async text(path, signal) {
      signal?.throwIfAborted();
      const place = await placeOf(path, root);
      return place === undefined ? null : readText(place, path, limitBytes, signal);
    },
  };
}

interface Place {
  readonly root: string;
  readonly path: string;
}

/** The file itself, behind all links; undefined if there is none. */
async function placeOf(path: string, root: string): Promise<Place | undefined> {
  if (path === '' || path.includes('\0')) throw new Failure('invalid', `${shown(path)} is not a path`);
  const realRoot = await realpath(root).catch((error: unknown) => {
    throw trouble(root, error);
  });
  const named = resolve(root, path);
  // An absolute path may name the root by its real path.
  if (!isInside(named, resolve(root)) && !isInside(named, realRoot)) throw outside(path, root);
  const real = await realpath(named).catch(absent(path));
  if (real === undefined) {
    if (!isInside(await wouldBe(named, path), realRoot)) throw outside(path, root);
    return undefined;
  }
  if (!isInside(real, realRoot)) throw outside(path, root);
  if (namesDirectory(path) && (await stat(real).catch(absent(path)))?.isDirectory() !== true) return undefined;
  return { root: realRoot, path: real };
}

/** A path with a slash at its end names a directory, not a file. */
export function namesDirectory(path: string): boolean {
  return /(^|\/)\.?$/.test(path);
}

const MOST_LINKS = 40;

/** Where a missing file would be, with all links resolved: a dangling link may also lead out of the root. */
async function wouldBe(named: string, path: string): Promise<string> {
  let [place, left] = ['/', partsOf(named)];
  for (let links = 0; left.length > 0;) {
    const [part, ...rest] = left as [string, ...string[]];
    const next = resolve(place, part);
    const target = await readlink(next).catch(noLink(path));
    if (target === undefined) [place, left] = [next, rest];
    else if (++links > MOST_LINKS) throw trouble(path, Object.assign(new Error(), { code: 'ELOOP' }));
    else [place, left] = [target.startsWith('/') ? '/' : place, [...partsOf(target), ...rest]];
  }
  return place;
}

function partsOf(path: string): readonly string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

async function readText(
  place: Place,
  path: string,
  limitBytes: number,
  signal?: AbortSignal,
): Promise<{ readonly text: string } | null> {
  const check = (file: FileHandle): Promise<void> => checkUnmoved(file, place, path);
  const bytes = await readForeign(place.path, { name: path, limitBytes, signal, check }).catch(absent(path));
  return bytes === undefined ? null : { text: textOf(bytes, path) };
}

/** A directory may have been replaced by a link since it was checked. Only Linux can tell. */
async function checkUnmoved(file: FileHandle, { root }: Place, path: string): Promise<void> {
  const opened = await readlink(`/proc/self/fd/${file.fd}`).catch(() => undefined);
  if (opened !== undefined && !isInside(opened, root)) throw outside(path, root);
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

function outside(path: string, root: string): Failure {
  return new Failure('invalid', `${shown(path)} leads out of ${root}: only files inside it can be checked`);
}

/** Undefined if there is no such file; every other error is thrown. */
function absent(path: string): (error: unknown) => undefined {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    // Already reported, or the caller has aborted.
    if (error instanceof Failure || typeof code !== 'string') throw error;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw trouble(path, error);
  };
}

/** Undefined if it is not a link, or does not exist. */
function noLink(path: string): (error: unknown) => undefined {
  return (error) => ((error as NodeJS.ErrnoException).code === 'EINVAL' ? undefined : absent(path)(error));
}

const TROUBLES: Readonly<Record<string, readonly [FailureCode, string]>> = {
  ELOOP: ['invalid', 'its links lead round in a circle, or it changed meanwhile'],
  EACCES: ['forbidden', 'permission denied'],
  ENAMETOOLONG: ['invalid', 'the name is too long'],
};

function trouble(path: string, cause: unknown): Failure {
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const [kind, words] = TROUBLES[code] ?? ['unavailable', message];
  return new Failure(kind, `${shown(path)} cannot be looked at: ${words}`, { cause });
}
