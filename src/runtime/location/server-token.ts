/**
 * The token for a server: SIGNALBOX_SERVER_TOKEN, the file of SIGNALBOX_TOKEN_FILE, or the local token that `serve` keeps next
 * to the store of this place. (SIGNALBOX_TOKEN is the token of a hold.)
 */
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { Failure, shown } from '../../failure.ts';
import { Listening } from './listening.ts';
import { localTokenFile, readLocalToken } from './local-token.ts';
import { storeUrl } from './location.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const LARGEST_BYTES = 1024;
const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * The token itself, or a function that gives the token for the server that is about to be asked, one of `urls`; `refused`: the
 * token that this server has just refused. The local token is for the addresses of `addressesOf`: a name may lead to an address
 * where nobody listens yet.
 */
export function serverToken(
  urls: string | readonly string[],
  env: Environment,
  listening = Listening.now,
): string | ((server: string, refused?: string) => string) {
  const named = env['SIGNALBOX_SERVER_TOKEN'];
  if (named !== undefined && named !== '') return named;
  const file = env['SIGNALBOX_TOKEN_FILE'];
  if (file !== undefined && file !== '') {
    let token = tokenIn(file);
    // A token that was replaced is refused; a file that is just being written has none, and the next refusal reads it again.
    return (_, refused) => {
      if (refused === token) token = tokenIn(file);
      return token;
    };
  }
  const store = storeUrl(undefined, { ...env, SIGNALBOX_URL: undefined });
  const servers = [urls].flat();
  const far = servers.find((url) => !isLoopback(new URL(url).hostname));
  const local = far === undefined ? localTokenOf(store) : undefined;
  if (local === undefined) {
    // Without a server, a token would not help.
    if (far === undefined && isServedByNone(servers, listening())) {
      const start = 'to start one, where the store is: signalbox serve';
      const what = `${servers.join(', ')} cannot be reached: no process of this machine listens there`;
      throw new Failure('unavailable', `${what}\n  ${start}`);
    }
    const how = 'set SIGNALBOX_TOKEN_FILE to the file that has it, or SIGNALBOX_SERVER_TOKEN to the token itself';
    const make = 'signalbox token create, where the store is, makes one';
    throw new Failure('invalid', `there is no token for ${far ?? servers.join(', ')}\n  ${how}\n  ${make}`);
  }
  // Looks before each request: between two of them the server may have ended, and another user may listen in its place. Looks
  // at this server alone: where nobody listens now, another user may listen by the time the request arrives.
  return (server) => {
    if (isServedByOwn(server, listening(), localTokenFile(store))) return local;
    throw new Failure('unavailable', `no process of this machine listens at ${server}`);
  };
}

function localTokenOf(store: string): string | undefined {
  try {
    return readLocalToken(store);
  } catch (error) {
    if (Failure.is(error, 'forbidden') || Failure.is(error, 'invalid')) return undefined;
    throw error;
  }
}

/**
 * Every user of the machine can listen on a port of loopback, and would get the token, which is an administrator's. A process
 * of this user, or of root, can read it anyway. False if nobody listens there, or at one of the two addresses of `localhost`,
 * unless a certificate shows who answers; throws if another user listens.
 */
function isServedByOwn(url: string, listening: Listening | undefined, file: string): boolean {
  const own = process.geteuid?.();
  const explicitly = `to send it all the same, set SIGNALBOX_TOKEN_FILE=${file}`;
  if (own === undefined || listening === undefined) {
    const what = `this system does not tell which user listens at ${url}, so the local token was not sent`;
    throw new Failure('invalid', `${what}\n  ${explicitly}`);
  }
  const users = usersAt(url, listening);
  const foreign = users.flat().find((uid) => uid !== own && uid !== 0);
  if (foreign !== undefined) {
    const what = `another user (${foreign}) listens at ${url}, so the local token was not sent there`;
    throw new Failure('forbidden', `${what}\n  ${explicitly}`);
  }
  return users.every((found) => found.length > 0);
}

/** Whether certainly no process listens at any of these addresses of this machine. */
function isServedByNone(servers: readonly string[], listening: Listening | undefined): boolean {
  return listening !== undefined && servers.every((url) => usersAt(url, listening).flat().length === 0);
}

function usersAt(url: string, listening: Listening): readonly (readonly number[])[] {
  const { hostname, port, protocol } = new URL(url);
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const hosts = hostname === 'localhost' && protocol === 'http:' ? LOOPBACK : [hostname.replace(/^\[|\]$/g, '')];
  return hosts.map((host) => listening.usersAt(host, number));
}

export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return host === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}

function tokenIn(file: string): string {
  const wrong = (why: string): Failure => new Failure('invalid', `SIGNALBOX_TOKEN_FILE is ${shown(file)}: ${why}`);
  try {
    // Reading a pipe without a writer would wait for ever.
    const stat = statSync(file);
    if (!stat.isFile() || stat.size > LARGEST_BYTES) throw wrong('expected a file with a token in it');
    const token = readFileSync(file, 'utf8').trim();
    if (token === '') throw wrong('it is empty');
    return token;
  } catch (error) {
    throw Failure.is(error) ? error : wrong((error as Error).message);
  }
}
