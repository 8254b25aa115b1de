import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { Failure, shown } from '../../failure.ts';
import type { EtcdOptions } from './open.ts';
import type { EtcdStore } from './store.ts';
import { parseEtcdUrl } from './url.ts';

export type { Endpoint, EtcdOptions } from './open.ts';
export type { EtcdStore } from './store.ts';
export type { ServerStatus } from './wire/server.ts';
export type { TlsOptions } from '../../grpc/transport.ts';
export { type EtcdPlace, isEtcdUrl, parseEtcdUrl, withoutPassword, withWholePaths } from './url.ts';

/** Connects at the first request. The engine is loaded here, so that programs without etcd do not load it. */
export async function openEtcd(options: EtcdOptions): Promise<EtcdStore> {
  const engine = await import('./open.ts');
  return engine.openEtcd(options);
}

/** The password, if the URL names a user without one: so it need not be written where others can read it. */
const PASSWORD = 'SIGNALBOX_ETCD_PASSWORD';

/** Opens the store that a URL names, and reads certificates and password from their files. */
export async function openEtcdUrl(
  url: string,
  options: Omit<EtcdOptions, 'endpoints' | 'tls'> = {},
): Promise<EtcdStore> {
  const { endpoints, isSecure, serverName, ca, cert, key, passwordFile, ...place } = parseEtcdUrl(url);
  const tls = isSecure
    ? { serverName, ca: contents('ca', ca), cert: contents('cert', cert), key: contents('key', key) }
    : undefined;
  const password = place.password || passwordIn(passwordFile) || process.env[PASSWORD] || '';
  return openEtcd({ ...place, ...(place.user !== undefined && { password }), ...options, endpoints, tls });
}

/** Refuses a file that other users may read, like ssh does; its group may read it. */
function passwordIn(file: string | undefined): string {
  if (file === undefined) return '';
  const wrong = (why: string): Failure => new Failure('invalid', `password-file is ${shown(file)}, ${why}`);
  const text = readPrivate(file, wrong)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (text === '') throw wrong('which is empty');
  if (/[\r\n\0]/.test(text)) throw wrong('which has more than one line: expected the password alone');
  return text;
}

function readPrivate(file: string, wrong: (why: string) => Failure): Buffer {
  let descriptor: number | undefined;
  try {
    // Opening a pipe would block until another process opens its other end.
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const { mode, uid } = fstatSync(descriptor);
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw wrong('which is no file');
    const own = process.getuid?.();
    if (own !== undefined && uid !== own && uid !== 0) throw wrong('which belongs to another user: make it your own');
    if (own !== undefined && (mode & 0o027) !== 0)
      throw wrong(`which other users may read or write (mode ${(mode & 0o777).toString(8)}): chmod 600 it`);
    return readFileSync(descriptor);
  } catch (cause) {
    throw Failure.is(cause) ? cause : wrong(`which cannot be read: ${(cause as Error).message}`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Checked here, so that the error names the file. OpenSSL would say 'no start line', or silently trust no server. */
const PEM = {
  ca: [/-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/, 'certificate'],
  cert: [/-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/, 'certificate'],
  key: [/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/, 'private key'],
} as const;

function contents(setting: keyof typeof PEM, file: string | undefined): Buffer | undefined {
  if (file === undefined) return undefined;
  const text = read(setting, file);
  const [pattern, what] = PEM[setting];
  if (pattern.test(text.toString('latin1'))) return text;
  throw new Failure('invalid', `${setting} is ${shown(file)}, which contains no ${what} in PEM format`);
}

function read(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Failure('invalid', `${setting} is ${shown(file)}, which cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
}
