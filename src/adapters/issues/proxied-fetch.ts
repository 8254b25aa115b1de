/**
 * Fetches through a proxy, where the environment names one. From 24 on, Node does that by itself, with
 * `NODE_USE_ENV_PROXY=1`. Earlier versions need the package `undici`; signalbox does not install it, because few users
 * need it.
 */
import type * as Undici from 'undici';
import { Failure } from '../../failure.ts';

type Fetch = typeof globalThis.fetch;

/** The `fetch` to use for an address; undefined for Node's own. */
export async function proxiedFetch(address: URL, env: NodeJS.ProcessEnv): Promise<Fetch | undefined> {
  if (env['NODE_USE_ENV_PROXY'] === '1' || isLoopback(address)) return undefined;
  const proxy = address.protocol === 'https:' ? named(env, 'https_proxy') : named(env, 'http_proxy');
  if (proxy === undefined) return undefined;
  const { EnvHttpProxyAgent, fetch } = await loaded(proxy);
  const noProxy = named(env, 'no_proxy');
  const dispatcher = new EnvHttpProxyAgent({
    httpProxy: proxy,
    httpsProxy: proxy,
    ...(noProxy !== undefined && { noProxy }),
  });
  return ((input: string, init: object) => fetch(input, { ...init, dispatcher })) as unknown as Fetch;
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname);
}

/** The lower-case name wins, as it does for curl. */
function named(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return [env[name], env[name.toUpperCase()]].find((value) => value !== undefined && value !== '');
}

async function loaded(proxy: string): Promise<typeof Undici> {
  try {
    return await import('undici');
  } catch (cause) {
    const { host } = URL.canParse(proxy) ? new URL(proxy) : { host: 'a proxy' };
    const ways = 'set NODE_USE_ENV_PROXY=1 on Node 24 and later, otherwise npm install undici beside signalbox';
    throw new Failure('unavailable', `GitHub is behind the proxy ${host}: ${ways}`, { cause });
  }
}
