/**
 * A store on etcd as a URL:
 *
 *     etcd://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PREFIX][?SETTING=VALUE&…]
 *
 * `etcds://` is the same over TLS. The password is never shown; it can also come from a file or a variable.
 */
import { resolve } from 'node:path';
import { Failure, redacted, shown } from '../../failure.ts';
import type { Endpoint } from './open.ts';

/** What the URL of an etcd says. */
export interface EtcdPlace {
  /** Its servers. */
  readonly endpoints: readonly Endpoint[];
  /** Whether to use TLS. */
  readonly isSecure: boolean;
  /** The user, if etcd asks for one. */
  readonly user?: string | undefined;
  /** The password of the user. */
  readonly password?: string | undefined;
  /** What the keys of signalbox begin with. */
  readonly prefix?: string | undefined;
  /** What the keys that other programs share begin with. */
  readonly plainPrefix?: string | undefined;
  /** The name in the certificates of the servers. */
  readonly serverName?: string | undefined;
  /** Whether signalbox may compact the history of the etcd. */
  readonly compacts: boolean;
  /** The file with the certificate of the authority to trust. */
  readonly ca?: string | undefined;
  /** The file with the certificate of this client. */
  readonly cert?: string | undefined;
  /** The file with the key of this client. */
  readonly key?: string | undefined;
  /** The file with the password. */
  readonly passwordFile?: string | undefined;
}

const TLS_FILES = ['ca', 'cert', 'key'] as const;
const FILES = [...TLS_FILES, 'password-file'] as const;
const SETTINGS = [...TLS_FILES, 'server-name', 'password-file', 'tasks-prefix', 'compact', 'witness'] as const;
type Setting = (typeof SETTINGS)[number];

const FORM = 'etcd://[USER@]HOST[:PORT][,HOST[:PORT]][/PREFIX], or etcds:// for TLS';
const DEFAULT_PORT = 2379;

/** Whether a URL names an etcd. */
export function isEtcdUrl(url: string): boolean {
  return /^etcds?:/.test(url);
}

/** The URL without its password, for messages. It accepts any text, because refused URLs are shown too. */
export function withoutPassword(url: string): string {
  const known = redacted(url);
  if (known !== url || /^(file|memory):/.test(url)) return withoutUnknown(known);
  if (/^(?:[a-z][a-z0-9+.-]*:\/\/|etcds?:)?[^:@/]*@/i.test(url)) return withoutUnknown(url);
  // The URL has no scheme, or a mistyped one.
  if (url.includes('@')) return withoutUnknown(url.replace(/^([^:@/]*)[:/][^]*@/, '$1@'));
  // Text in the place of the port may be a password whose @ is missing.
  return withoutUnknown(
    url.replace(/^((?:(?:[a-z][a-z0-9+.-]*:?)?\/\/|etcds?:)[^:@/[\]]*):(?!\d+(?:[,/?]|$))[^]*/i, '$1'),
  );
}

/** Hides the values of unknown settings too: one of them may be the password. */
function withoutUnknown(url: string): string {
  const question = url.indexOf('?');
  if (question < 0 || url.startsWith('file:')) return url;
  const isKnown = (each: string): boolean => SETTINGS.some((name) => each.startsWith(`${name}=`));
  const settings = url.slice(question + 1).split('&');
  const kept = settings.map((each) => (isKnown(each) ? each : each.replace(/=[^]*/, '=…')));
  return `${url.slice(0, question)}?${kept.join('&')}`;
}

/** Reads the URL of an etcd; throws with what is wrong with it. */
export function parseEtcdUrl(url: string): EtcdPlace {
  const match = /^(etcds?):\/\/([^/?#]*)(\/[^?#]*)?(\?[^#]*)?$/.exec(url);
  if (match === null) throw invalid(url, `expected ${FORM}`);
  const [, scheme, authority = '', path = '', query = ''] = match;
  const isSecure = scheme === 'etcds';
  const at = authority.lastIndexOf('@');
  if (at < 0 && isTorn(path, query)) {
    const told = 'write a / in the password as %2F, a ? as %3F, and an @ in the prefix as %40';
    throw invalid(url, `the part before the @ is ambiguous: ${told}`);
  }
  const settings = settingsOf(url, query);
  checkTls(url, isSecure, settings);
  const credentials = at < 0 ? undefined : credentialsOf(url, authority.slice(0, at));
  checkPasswordFile(url, credentials, settings);
  const prefix = decoded(url, path).slice(1);
  return {
    endpoints: endpointsOf(url, authority.slice(at + 1)),
    isSecure,
    ...credentials,
    passwordFile: settings.get('password-file'),
    prefix: prefix === '' || prefix.endsWith('/') ? prefix || undefined : `${prefix}/`,
    plainPrefix: settings.get('tasks-prefix'),
    serverName: settings.get('server-name'),
    compacts: settings.get('compact') === 'yes',
    ca: settings.get('ca'),
    cert: settings.get('cert'),
    key: settings.get('key'),
  };
}

/** Makes the paths of files absolute, so that the URL means the same in every directory. */
export function withWholePaths(url: string, from: string): string {
  parseEtcdUrl(url);
  const question = url.indexOf('?');
  if (question < 0) return url;
  const settings = new URLSearchParams(url.slice(question));
  if (!FILES.some((name) => settings.has(name))) return url;
  for (const name of FILES) {
    const file = settings.get(name);
    if (file !== null) settings.set(name, resolve(from, file));
  }
  return `${url.slice(0, question)}?${settings.toString().replaceAll('%2F', '/')}`;
}

/** Whether the URL seems to cut a password short: the rest of it would be taken for something else, and shown. */
function isTorn(path: string, query: string): boolean {
  if (path.includes('@')) return true;
  const isSetting = (text: string): boolean => SETTINGS.some((name) => text.startsWith(`${name}=`));
  return query
    .slice(1)
    .split('&')
    .some((each) => each.includes('@') && !isSetting(each));
}

function settingsOf(url: string, query: string): Map<Setting, string> {
  const settings = new Map<Setting, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const known = SETTINGS.find((each) => each === name);
    if (known === undefined) throw invalid(url, `${shown(name)} is no setting; expected ${SETTINGS.join(', ')}`);
    if (settings.has(known)) throw invalid(url, `${name} is there twice`);
    if (value === '') throw invalid(url, `${name} is empty`);
    settings.set(known, value);
  }
  const compact = settings.get('compact');
  if (compact !== undefined && compact !== 'yes' && compact !== 'no')
    throw invalid(url, `compact is ${shown(compact)}; expected yes or no`);
  return settings;
}

function checkTls(url: string, isSecure: boolean, settings: ReadonlyMap<Setting, string>): void {
  const needsTls = [...TLS_FILES, 'server-name' as const].find((name) => settings.has(name));
  if (needsTls !== undefined && !isSecure) throw invalid(url, `${needsTls} works only with etcds://`);
  if (settings.has('cert') !== settings.has('key'))
    throw invalid(url, 'a certificate needs its key, and a key its certificate: give both cert and key');
}

interface Credentials {
  readonly user: string;
  /** Empty if the URL has none. */
  readonly password: string;
}

function checkPasswordFile(url: string, found: Credentials | undefined, settings: ReadonlyMap<Setting, string>): void {
  if (!settings.has('password-file')) return;
  if (found === undefined) throw invalid(url, 'password-file needs the user whose password it is: etcd://USER@HOST');
  if (found.password !== '') throw invalid(url, 'there are two passwords, one in the URL and one in password-file');
}

function credentialsOf(url: string, text: string): Credentials {
  const colon = text.indexOf(':');
  const user = decoded(url, colon < 0 ? text : text.slice(0, colon));
  if (user === '') throw invalid(url, 'there is no user before the @');
  return { user, password: colon < 0 ? '' : decoded(url, text.slice(colon + 1)) };
}

function endpointsOf(url: string, text: string): Endpoint[] {
  return text.split(',').map((each) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::([0-9]{1,5}))?$/.exec(each);
    if (match === null)
      throw invalid(
        url,
        `${shown(each.replace(/^([^:[]*):[^]*/, '$1:…'))} is no server; expected HOST, HOST:PORT or [IPV6]:PORT`,
      );
    const [, v6, name = '', port = DEFAULT_PORT] = match;
    if (Number(port) < 1 || Number(port) > 65535) throw invalid(url, `${port} is no port`);
    return { host: v6 ?? decoded(url, name), port: Number(port) };
  });
}

function decoded(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(url, 'a % in it is not followed by two hexadecimal digits');
  }
}

function invalid(url: string, why: string): Failure {
  return new Failure('invalid', `the store is ${shown(withoutPassword(url))}: ${why}`);
}
