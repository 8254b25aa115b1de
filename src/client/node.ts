/** `signalbox/client` in Node: the same as in a browser, and it finds the token by itself, as the command line does. */
import { connect as connectWith, type ConnectOptions, Failure, type RemoteSignalbox } from './index.ts';
import { addressesOf } from '../runtime/location/loopback.ts';

export * from './index.ts';

/** The store behind a server. Asks nothing yet: the first call does. Several servers of one store are tried in turn. */
export function connect(url: string | readonly string[], options: ConnectOptions = {}): RemoteSignalbox {
  if (options.token !== undefined) return connectWith(url, options);
  const urls = addressesOf(url, process.env);
  return connectWith(urls, { ...options, token: ownToken(urls) });
}

/** What finds it is loaded when it is first asked for: a program that names its token needs none of it. */
function ownToken(urls: readonly string[]): (server: string, refused?: string) => Promise<string> {
  let found: string | ((server: string, refused?: string) => string) | undefined;
  return async (server, refused) => {
    const { serverToken } = await import('../runtime/location/server-token.ts');
    try {
      found ??= serverToken(urls, process.env);
      return typeof found === 'string' ? found : found(server, refused);
    } catch (error) {
      // What browsers import is a file by itself, with a `Failure` of its own: its callers and it know no other.
      const { code, message } = error as Failure;
      throw new Failure(code, message, { cause: error });
    }
  };
}
