/** `signalbox serve`: the HTTP API of a store. Loads the server only when it is started. */
import { type Command, Option } from './command.ts';
import { whenAborted } from '../clock.ts';
import { isLoopback } from '../runtime/location/server-token.ts';
import { LOG_LEVELS, type LogLevel } from '../runtime/log.ts';
import { withoutPassword } from '../store/index.ts';
import { given, portArgument } from './arguments.ts';
import { countArgument } from './events.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { anyOf, interruptible } from './interrupt.ts';
import { print, printable, printJson, say, screen } from './output.ts';
import { VERSION } from './version.ts';
import type { KeeperFlags } from './witness/keeper.ts';

interface Flags extends KeeperFlags {
  readonly port: number;
  readonly host: string;
  readonly cert?: string;
  readonly key?: string;
  readonly allowHost: readonly string[];
  readonly allowCommands?: true;
  readonly github?: string;
  readonly rate?: number;
  readonly connections?: number;
  readonly log?: LogLevel;
}

/** The handler of `/mcp`, loaded with the first request. */
interface McpModule {
  mcpOverHttp(box: unknown, options: object): unknown;
}

/** The parts of the library that this command uses. It loads them with Node's `import` and the installed packages. */
interface ServerModule {
  serve(options: object): Promise<{
    readonly url: string;
    readonly store: string;
    readonly localToken: string;
    readonly tokenFile: string;
    readonly over: AbortSignal | undefined;
    close(): Promise<void>;
  }>;
}

const DEFAULT_PORT = 7300;

const EXAMPLES = `
Examples:
  signalbox serve
  signalbox serve --port 8443 --host 0.0.0.0 --cert tls.crt --key tls.key --allow-host box.example.org
  curl -H "Authorization: Bearer $(signalbox token local)" http://127.0.0.1:${DEFAULT_PORT}/v1/who

Every request needs a token, on loopback too, because other users of this machine reach it: signalbox token.
/docs describes the API for people, /openapi.json for programs; /mcp is for coding agents (signalbox mcp --help).
Several servers may serve one store.
Ctrl-C stops it; requests that wait keep their place in the queue.`;

export function define(command: Command): void {
  command
    .addOption(
      new Option('--port <number>', 'the port; 0 takes any free one')
        .argParser(portArgument)
        .default(DEFAULT_PORT, 'port 7300'),
    )
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .option('--cert <file>', 'serve TLS with this certificate (PEM); read again when it changes')
    .option('--key <file>', 'the key of the certificate (PEM)')
    .list('--allow-host <name>', 'a host name of this server, besides localhost (repeatable)')
    .option('--allow-commands', 'let administrators run commands here: guards with a command, pipeline resume')
    .option('--github <owner/name>', 'list the locks on the issues of this repository too; needs GITHUB_TOKEN or gh')
    .option('--rate <number>', 'the most requests per second of each token (default: a thousand)', countArgument)
    .option('--connections <number>', 'the most connections at once (default: two thousand)', countArgument)
    .oneOf('--log <level>', 'how much to log on stderr, as lines of JSON (default: warn)', LOG_LEVELS)
    .option('--witness-sign <file>', 'seal the record of the witness with this private key')
    .option('--witness-anchor <place>', 'also keep its checkpoints in a file, git:REF or command:COMMAND')
    .option('--witness-archive <directory>', 'export its entries to files there before they are trimmed')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: Flags) => {
      if ((flags.cert === undefined) !== (flags.key === undefined)) {
        throw new CliExit(EXIT.usage, '--cert and --key belong together: name both files');
      }
      await interruptible((signal) => serveUntil(command, flags, signal)).catch((error: unknown) => {
        // Ctrl-C is the normal way to end a server.
        if (error instanceof CliExit && error.message === '') return;
        throw error;
      });
    });
}

const IN_THE_CLEAR =
  'warning: tokens travel in the clear beyond this machine; use --cert and --key, or TLS at a proxy (docs/server.md)';

async function serveUntil(command: Command, flags: Flags, signal: AbortSignal): Promise<void> {
  const { importFile } = await import('./pipeline/import-file.ts');
  const { serve } = (await importFile('../server/index.js')) as ServerModule;
  const mcp = async (box: unknown, clock: unknown): Promise<unknown> => {
    const { mcpOverHttp } = (await importFile('../mcp/index.js')) as McpModule;
    return mcpOverHttp(box, { version: VERSION, clock });
  };
  const { store } = command;
  const { port, host, cert, key, allowHost: hosts, allowCommands, rate, connections, github, log } = flags;
  const { keeperOf } = await import('./witness/keeper.ts');
  const serving = await serve({
    ...{ port, host, hosts, mcp },
    ...given({
      keepsRecord: keeperOf(flags, say),
      store,
      github,
      allowsCommands: allowCommands,
      perSecond: rate,
      mostConnections: connections,
      logLevel: log,
    }),
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
  });
  try {
    const { url, tokenFile, localToken } = serving;
    const place = withoutPassword(serving.store);
    if (cert === undefined && !isLoopback(host)) say(IN_THE_CLEAR);
    if (command.isJson) printJson({ url, store: place, tokenFile, pid: process.pid });
    else {
      print(`signalbox serves ${printable(place)} at ${url}`);
      // A secret does not belong in a log.
      if (screen().isTTY === true) print(`For you, as administrator: ${url}/#token=${localToken}`);
      else print('To get its local token: signalbox token local');
    }
    const { over } = serving;
    await whenAborted(anyOf(signal, over));
    // Ends with an error, so that the supervisor (systemd, a container) starts the server again.
    if (!signal.aborted) over?.throwIfAborted();
  } finally {
    await serving.close();
  }
}
