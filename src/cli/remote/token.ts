/**
 * The token for a server: SIGNALBOX_SERVER_TOKEN, the file of SIGNALBOX_TOKEN_FILE, or the local token that `serve` keeps next
 * to the store of this place. (SIGNALBOX_TOKEN is the token of a hold.)
 */
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { Failure, shown } from '../../failure.ts';
import { readLocalToken } from '../../runtime/location/local-token.ts';
import { storeUrl } from '../../runtime/location/location.ts';
import { CliExit, EXIT } from '../exit-code.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const LARGEST_BYTES = 1024;

export function serverToken(url: string, env: Environment): string {
  const named = env['SIGNALBOX_SERVER_TOKEN'];
  if (named !== undefined && named !== '') return named;
  const file = env['SIGNALBOX_TOKEN_FILE'];
  if (file !== undefined && file !== '') return tokenIn(file);
  const local = localToken(url, env);
  if (local !== undefined) return local;
  const how = 'set SIGNALBOX_TOKEN_FILE to the file that has it, or SIGNALBOX_SERVER_TOKEN to the token itself';
  const make = 'signalbox token create, where the store is, makes one';
  throw new CliExit(EXIT.usage, `there is no token for ${url}\n  ${how}\n  ${make}`);
}

/** It is an administrator's, so it is shown to a server of this machine and user alone. */
function localToken(url: string, env: Environment): string | undefined {
  if (!isLoopback(new URL(url).hostname)) return undefined;
  refuseForeignListener(url);
  try {
    return readLocalToken(storeUrl(undefined, { ...env, SIGNALBOX_URL: undefined }));
  } catch (error) {
    if (Failure.is(error, 'forbidden') || Failure.is(error, 'invalid')) return undefined;
    throw error;
  }
}

/** Every user of the machine can listen on a port of loopback, and would be sent the token. */
function refuseForeignListener(url: string): void {
  const own = process.geteuid?.();
  const uid = listenerOf(url);
  if (own === undefined || uid === undefined || uid === own || uid === 0) return;
  throw new CliExit(
    EXIT.unreachable,
    `another user (${uid}) listens at ${url}, so the local token was not sent there; name a token for it in SIGNALBOX_SERVER_TOKEN`,
  );
}

/** The user that listens there; undefined where that cannot be told. */
function listenerOf(url: string): number | undefined {
  const { port, protocol } = new URL(url);
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const hex = number.toString(16).toUpperCase().padStart(4, '0');
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const uid = listening(file, hex);
    if (uid !== undefined) return uid;
  }
  return undefined;
}

/** `  0: 0100007F:1C84 00000000:0000 0A …  uid`: 0A is a socket that listens. */
function listening(file: string, port: string): number | undefined {
  try {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [, local = '', , state, , , , uid] = line.trim().split(/\s+/);
      if (state === '0A' && local.endsWith(`:${port}`)) return Number(uid);
    }
  } catch {
    // Other systems have no such file.
  }
  return undefined;
}

function isLoopback(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return host === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}

function tokenIn(file: string): string {
  const wrong = (why: string): CliExit => new CliExit(EXIT.usage, `SIGNALBOX_TOKEN_FILE is ${shown(file)}: ${why}`);
  try {
    // A pipe without a writer would be waited for without end.
    const stat = statSync(file);
    if (!stat.isFile() || stat.size > LARGEST_BYTES) throw wrong('expected a file with a token in it');
    const token = readFileSync(file, 'utf8').trim();
    if (token === '') throw wrong('it is empty');
    return token;
  } catch (error) {
    throw error instanceof CliExit ? error : wrong((error as Error).message);
  }
}
