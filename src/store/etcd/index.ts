import { readFileSync } from 'node:fs';
import { Failure, shown } from '../../failure.ts';
import type { EtcdOptions } from './open.ts';
import type { EtcdStore } from './store.ts';
import { parseEtcdUrl } from './url.ts';

export type { Endpoint, EtcdOptions } from './open.ts';
export type { EtcdStore } from './store.ts';
export type { ServerStatus } from './wire/server.ts';
export type { TlsOptions } from './transport.ts';
export { type EtcdPlace, isEtcdUrl, parseEtcdUrl, withoutPassword, withWholePaths } from './url.ts';

/** Connects when it is first asked for something. The engine is loaded here, so that others do not pay for it. */
export async function openEtcd(options: EtcdOptions): Promise<EtcdStore> {
  const engine = await import('./open.ts');
  return engine.openEtcd(options);
}

/** The same from a URL, whose certificates are read from their files. */
export async function openEtcdUrl(
  url: string,
  options: Omit<EtcdOptions, 'endpoints' | 'tls'> = {},
): Promise<EtcdStore> {
  const { endpoints, isSecure, serverName, ca, cert, key, ...place } = parseEtcdUrl(url);
  const tls = isSecure
    ? { serverName, ca: contents('ca', ca), cert: contents('cert', cert), key: contents('key', key) }
    : undefined;
  return openEtcd({ ...place, ...options, endpoints, tls });
}

/** Said here, with its file: what OpenSSL makes of another one is 'no start line', or nothing and no trust in anybody. */
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
  throw new Failure('invalid', `${setting} is ${shown(file)}, in which there is no ${what} in PEM format`);
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
