/** Opens a store and serves it, as `signalbox serve` does. */
import { hostname } from 'node:os';
import { systemClock } from '../clock.ts';
import { given } from '../core/given.ts';
import type { Json } from '../core/index.ts';
import { LockManager } from '../github/index.ts';
import { ownUser, thisProcess } from '../host/index.ts';
import { SERVES } from '../json/own-process.ts';
import { ensureLocalToken, localTokenFile } from '../runtime/location/local-token.ts';
import { storeUrl } from '../runtime/location/location.ts';
import { isRegistered } from '../opentelemetry/registered.ts';
import type { LogLevel } from '../runtime/log.ts';
import type { RecordKeeping } from '../runtime/witness/retention.ts';
import { open } from '../runtime/open.ts';
import { GitHubBoard } from '../github/board.ts';
import { placeOf, serverOf, type ServerOptions } from './app.ts';
import { withoutPassword } from '../store/index.ts';
import { logRequest, serverLog } from './log.ts';
import { listen, type ListenOptions } from './listen.ts';

export interface ServeOptions
  extends ListenOptions, Pick<ServerOptions, 'hosts' | 'allowsCommands' | 'perSecond' | 'mcp'> {
  /** The store; by default the one that belongs to this directory. */
  readonly store?: string | undefined;
  /** A GitHub repository, `owner/name`, whose locks the server lists too. */
  readonly github?: string | undefined;
  /** How much to log; by default what `SIGNALBOX_LOG` says, and without that only trouble. */
  readonly logLevel?: LogLevel | undefined;
  /** How this server keeps the record of the witness, if it keeps one. */
  readonly keepsRecord?: RecordKeeping | undefined;
}

export interface Serving {
  readonly url: string;
  readonly store: string;
  /** The local administrator's secret. */
  readonly localToken: string;
  readonly tokenFile: string;
  /** Aborts when the store was removed, replaced or restored: the server can answer nothing any more. */
  readonly over: AbortSignal | undefined;
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<Serving> {
  const { store, github, hosts, allowsCommands, perSecond, mcp, logLevel, keepsRecord, ...address } = options;
  const url = storeUrl(store);
  const board =
    github === undefined ? undefined : new GitHubBoard(github, new LockManager({ githubRepo: github }), systemClock);
  const log = serverLog('signalbox-serve', logLevel);
  // Not `url`, which lacks the witness settings of the given one.
  const about = aboutThisServer();
  const box = await open(store, { log, about, component: 'server', ...given({ keepsRecord }) });
  try {
    // An SDK that the operator loads with `--import` is registered before any of our code runs.
    if (isRegistered()) (await import('../opentelemetry/index.ts')).instrument(box);
    const localToken = ensureLocalToken(url);
    const server = serverOf(box, {
      ...{ localToken, mcp, store: url },
      onRequest: (note) => logRequest(log, note),
      ...given({ hosts, allowsCommands, perSecond, github: board }),
    });
    const onTrouble = (message: string): void => log.warn({ trouble: message }, 'the certificate was not reloaded');
    const onFailed = (error: Error): void => log.error({ trouble: placeOf(error) }, 'an answer could not be sent');
    const listening = await listen(server, { onTrouble, onFailed, ...address });
    log.info({ url: listening.url, store: withoutPassword(url) }, 'serving');
    const close = async (): Promise<void> => {
      await listening.close();
      await box.close();
      log.info({}, 'stopped');
    };
    return { url: listening.url, store: url, localToken, tokenFile: localTokenFile(url), over: box.over, close };
  } catch (error) {
    await box.close();
    throw error;
  }
}

/** Says the same as every process, and that the requests of this one are those of its clients. */
function aboutThisServer(): Json {
  const user = ownUser();
  return {
    ...{ host: hostname(), pid: process.pid, directory: process.cwd() },
    ...(user !== undefined && { user }),
    ...thisProcess(),
    ...SERVES,
  };
}
