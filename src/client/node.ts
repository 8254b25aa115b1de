/** `signalbox/client` in Node: the same as in a browser, except that it finds the token by itself, as the command line does. */
import { connect as connectWith, type ConnectOptions, Failure, type RemoteSignalbox } from './index.ts';
import { addressesOf } from '../runtime/location/loopback.ts';

export * from './index.ts';

/** Connects to the store behind a server. The first call sends the first request. Tries several servers of one store in turn. */
export function connect(url: string | readonly string[], options: ConnectOptions = {}): RemoteSignalbox {
  if (options.token !== undefined) return connectWith(url, options);
  const urls = addressesOf(url, process.env);
  return connectWith(urls, { ...options, token: ownToken(urls) });
}

/** Loads the code that finds the token on first use; a program that names its token never needs it. */
function ownToken(urls: readonly string[]): (server: string, refused?: string) => Promise<string> {
  let found: string | ((server: string, refused?: string) => string) | undefined;
  return async (server, refused) => {
    const { serverToken } = await import('../runtime/location/server-token.ts');
    try {
      found ??= serverToken(urls, process.env);
      return typeof found === 'string' ? found : found(server, refused);
    } catch (error) {
      // The file for browsers is bundled with its own `Failure` class, and its callers know only that class.
      const { code, message } = error as Failure;
      throw new Failure(code, message, { cause: error });
    }
  };
}
