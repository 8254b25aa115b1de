/**
 * Finds the store where the caller names none: `SIGNALBOX_URL`, or the etcd of `IF_ETCD_HOST` and `IF_ETCD_PORT`; otherwise
 * the one that belongs to this place. In a git repository that is a directory in git's common directory, so that all
 * worktrees share it; elsewhere it is the user's.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Failure, shown } from '../../failure.ts';
import { ifPossible } from '../../host/index.ts';
import { type Durability, isEtcdUrl, type Share, withoutPassword, withWholePaths } from '../../store/index.ts';
import { refuseCheckedOutLinks } from './checked-out.ts';
import { gitCommonDirectory } from './git-directory.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export const ACCEPTED_URLS = 'expected memory:, memory:NAME, file:DIRECTORY, etcd://HOST:PORT or etcds://HOST:PORT';

/** The URL of the store that `open` would open; it means the same store in every directory. */
export function storeUrl(given?: string, environment: Environment = process.env, from = currentDirectory()): string {
  const named = given ?? nonEmpty(environment['SIGNALBOX_URL']);
  if (named !== undefined) {
    const { url } = withoutWitness(named);
    if (isEtcdUrl(url)) return withWholePaths(url, from);
    if (!url.startsWith('file:')) return url;
    const { directory, durability, share } = parseFileUrl(url, from);
    const settings = [
      ...(durability === 'normal' ? [] : [`durability=${durability}`]),
      ...(share === undefined ? [] : [`share=${share}`]),
    ];
    const place = withoutLinks(directory);
    if (place !== directory) refuseCheckedOutLinks(directory, environment);
    return `${urlOf(place)}${settings.length === 0 ? '' : `?${settings.join('&')}`}`;
  }
  const etcd = etcdUrl(nonEmpty(environment['IF_ETCD_HOST']), nonEmpty(environment['IF_ETCD_PORT']));
  if (etcd !== undefined) return etcd;
  return urlOf(defaultDirectory(environment, from));
}

/** What the URL of the store says of the witness (`?witness=on`); undefined if it says nothing. */
export function witnessIn(given?: string, environment: Environment = process.env): boolean | undefined {
  const url = given ?? nonEmpty(environment['SIGNALBOX_URL']);
  return url === undefined ? undefined : withoutWitness(url).witness;
}

/** The setting only decides how a new store begins, so the URL that others get does not have it. */
function withoutWitness(url: string): { readonly url: string; readonly witness: boolean | undefined } {
  const question = url.indexOf('?');
  const settings = question < 0 ? [] : url.slice(question + 1).split('&');
  const said = settings.filter((setting) => setting.startsWith('witness='));
  const [first] = said;
  if (first === undefined) return { url, witness: undefined };
  const witness = first.slice('witness='.length);
  if (said.length > 1 || (witness !== 'on' && witness !== 'off')) {
    throw new Failure(
      'invalid',
      `witness is ${shown(said.join('&'))} in the URL of the store; expected witness=on or witness=off`,
    );
  }
  const rest = settings.filter((setting) => setting !== first).join('&');
  return { url: `${url.slice(0, question)}${rest === '' ? '' : `?${rest}`}`, witness: witness === 'on' };
}

/** One of the two variables is enough to choose etcd. */
function etcdUrl(host: string | undefined, port: string | undefined): string | undefined {
  if (host === undefined && port === undefined) return undefined;
  if (host !== undefined && !(/^[A-Za-z0-9._%-]+$/.test(host) || isIPv6(host))) {
    const accepted = 'expected the name or address of one host, without its port, which is IF_ETCD_PORT';
    throw new Failure('invalid', `IF_ETCD_HOST is ${shown(withoutPassword(host).replace(/:[^]*/, ':…'))}; ${accepted}`);
  }
  if (port !== undefined && !(/^[0-9]{1,5}$/.test(port) && Number(port) > 0 && Number(port) < 65_536))
    throw new Failure('invalid', `IF_ETCD_PORT is ${shown(port)}; expected a number from 1 to 65535`);
  const name = host ?? 'localhost';
  return `etcd://${name.includes(':') ? `[${name}]` : name}:${port ?? '2379'}`;
}

/** Resolves links as far as the path exists, so that one store has one name. */
function withoutLinks(directory: string): string {
  const parent = dirname(directory);
  const isRoot = parent === directory;
  return (
    ifPossible(() => realpathSync(directory)) ?? (isRoot ? directory : join(withoutLinks(parent), basename(directory)))
  );
}

/** A question mark in the path must not begin the settings. */
function urlOf(directory: string): string {
  return directory.includes('?') ? pathToFileURL(directory).href : `file:${directory}`;
}

/** Resolves links above the directory, but not the directory itself. */
export function defaultDirectory(environment: Environment = process.env, from = currentDirectory()): string {
  const git = from === '' ? undefined : gitCommonDirectory(from, environment);
  return git === undefined ? join(userDirectory(environment), 'signalbox') : inRepository(git);
}

/**
 * The owner of the repository that contains the store, if git trusts it here: it is the repository of the current directory,
 * and that of another user is found only if `safe.directory` lists it.
 */
export function trustedOwnerOf(directory: string): number | undefined {
  const git = dirname(directory);
  return ifPossible(() =>
    gitCommonDirectory(currentDirectory(), process.env) === git ? statSync(git).uid : undefined,
  );
}

/** Refuses a link: no user named it, it may have come with the repository, and it could lead anywhere. */
function inRepository(git: string): string {
  const directory = join(git, 'signalbox');
  if (lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return directory;
  throw new Failure(
    'forbidden',
    `${directory} is a symbolic link, and the store of a repository has to be a directory in it: remove the link, or ` +
      `name the place that it leads to, if you trust it, in --store or SIGNALBOX_URL (file:DIRECTORY)`,
  );
}

/** Where this user keeps what belongs to no repository. */
export function userDirectory(environment: Environment = process.env): string {
  return withoutLinks(stateDirectory(environment));
}

function stateDirectory(environment: Environment): string {
  const named = nonEmpty(environment['XDG_STATE_HOME']);
  // A relative path would be another store in every directory; the XDG specification says to ignore it.
  if (named !== undefined && isAbsolute(named)) return named;
  const home = homeDirectory(environment);
  if (process.platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (process.platform === 'win32') return nonEmpty(environment['LOCALAPPDATA']) ?? join(home, 'AppData', 'Local');
  return join(home, '.local', 'state');
}

/** The home directory by the user database, where the environment names none. */
function homeDirectory(environment: Environment): string {
  // Node throws if the system does not know the user id, as in some containers.
  const named = [environment['HOME'], ifPossible(homedir), ifPossible(() => userInfo().homedir)];
  const home = named.find((path) => path !== undefined && isAbsolute(path));
  if (home !== undefined) return home;
  const why = 'HOME is not set, and this user has no home directory in the system';
  throw new Failure('invalid', `no place for the store: ${why}; set SIGNALBOX_URL=file:DIRECTORY, or set HOME`);
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

export interface FilePlace {
  readonly directory: string;
  readonly durability: Durability;
  /** Undefined: the store stays as it is. */
  readonly share: Share | undefined;
}

/**
 * Reads `file:DIRECTORY`, as people write it, or `file:///DIRECTORY`, as URLs do; `?durability=full` and `share=group` may
 * follow.
 */
export function parseFileUrl(url: string, from = currentDirectory()): FilePlace {
  const question = url.indexOf('?');
  const place = question < 0 ? url : url.slice(0, question);
  const query = new URLSearchParams(question < 0 ? '' : url.slice(question));
  refuseUnknownSettings(query, url);
  return { directory: resolved(from, pathOf(place, url), url), durability: durabilityOf(query), share: shareOf(query) };
}

function resolved(from: string, path: string, url: string): string {
  if (isAbsolute(path)) return resolve(path);
  if (from !== '') return resolve(from, path);
  throw new Failure('invalid', `the store is ${shown(url)}, but the current directory does not exist any more`);
}

/** Empty if the directory was deleted, which matters only for a relative path. */
function currentDirectory(): string {
  return ifPossible(() => process.cwd()) ?? '';
}

function pathOf(place: string, url: string): string {
  const path = place.slice('file:'.length);
  if (path === '') throw new Failure('invalid', `the store is ${shown(url)}, which names no directory`);
  if (path.includes('\0')) throw new Failure('invalid', `the store is ${shown(url)}, which is not a path`);
  if (!path.startsWith('//')) return path;
  try {
    return fileURLToPath(place);
  } catch (cause) {
    const told = `the store is ${shown(url)}: ${(cause as Error).message}; expected file:DIRECTORY`;
    throw new Failure('invalid', told, { cause });
  }
}

function refuseUnknownSettings(query: URLSearchParams, url: string): void {
  for (const key of query.keys()) {
    if (key === 'durability' || key === 'share') continue;
    const accepted = 'expected durability, share and witness';
    throw new Failure('invalid', `the store is ${shown(url)}: ${shown(key)} is no setting; ${accepted}`);
  }
}

function durabilityOf(query: URLSearchParams): Durability {
  const durability = query.get('durability') ?? 'normal';
  if (durability === 'normal' || durability === 'full') return durability;
  throw new Failure('invalid', `durability is ${shown(durability)}; expected normal or full`);
}

function shareOf(query: URLSearchParams): Share | undefined {
  const share = query.get('share');
  if (share === null) return undefined;
  if (share === 'group' || share === 'none') return share;
  throw new Failure('invalid', `share is ${shown(share)}; expected group or none`);
}
