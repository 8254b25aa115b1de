/** Opens a store and serves it: what `signalbox serve` does. */
import { systemClock } from '../clock.ts';
import { LockManager } from '../github/index.ts';
import { ensureLocalToken, localTokenFile } from '../runtime/location/local-token.ts';
import { storeUrl } from '../runtime/location/location.ts';
import { open } from '../runtime/open.ts';
import { GitHubBoard } from './github-board.ts';
import { serverOf, type ServerOptions } from './app.ts';
import { listen, type ListenOptions } from './listen.ts';

export interface ServeOptions
  extends ListenOptions, Pick<ServerOptions, 'hosts' | 'allowsCommands' | 'perSecond' | 'mcp'> {
  /** The store; the one of this place, if not given. */
  readonly store?: string | undefined;
  /** `owner/name`: lists the locks of this repository on GitHub too. */
  readonly github?: string | undefined;
}

export interface Serving {
  readonly url: string;
  readonly store: string;
  /** The secret of the local administrator. */
  readonly localToken: string;
  readonly tokenFile: string;
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<Serving> {
  const { store, github, hosts, allowsCommands, perSecond, mcp, ...address } = options;
  const url = storeUrl(store);
  const board =
    github === undefined ? undefined : new GitHubBoard(github, new LockManager({ githubRepo: github }), systemClock);
  const box = await open(url);
  try {
    const localToken = ensureLocalToken(url);
    const server = serverOf(box, {
      ...{ localToken, mcp },
      store: url,
      ...(hosts !== undefined && { hosts }),
      ...(allowsCommands !== undefined && { allowsCommands }),
      ...(perSecond !== undefined && { perSecond }),
      ...(board !== undefined && { github: board }),
    });
    const listening = await listen(server, address);
    const close = async (): Promise<void> => {
      await listening.close();
      await box.close();
    };
    return { url: listening.url, store: url, localToken, tokenFile: localTokenFile(url), close };
  } catch (error) {
    await box.close();
    throw error;
  }
}
