/** `signalbox mcp`: serves the store to one coding agent over stdin and stdout. Loads the protocol only when it is started. */
import type { Command } from './command.ts';
import { given } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { interruptible } from './interrupt.ts';
import { complain, printable, tell } from './output.ts';
import { VERSION } from './version.ts';

interface McpModule {
  serveOverStdio(options: object): Promise<void>;
}

const EXAMPLES = `
Examples:
  claude mcp add signalbox -- signalbox mcp          for Claude Code; or in .mcp.json:
  {"mcpServers":{"signalbox":{"command":"signalbox","args":["mcp"]}}}
  codex mcp add signalbox -- signalbox mcp           for Codex

The agent gets tools: status, acquire, wait, renew, release, publish, claim, finish, guard_check, events, members,
break_lock. This process renews what the agent holds. When the agent ends, everything that it held is free at once.
For an agent in a sandbox or on another machine: signalbox serve, and http://HOST:PORT/mcp with a token.`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).action(async () => {
    const { store } = command;
    if (process.stdin.isTTY) {
      tell('signalbox: this talks to a coding agent, not to people: see signalbox mcp --help. Ctrl-D ends it.');
    }
    await interruptible(async (signal) => {
      const { importFile } = await import('./pipeline/import-file.ts');
      const { serveOverStdio } = (await importFile('../mcp/index.js')) as McpModule;
      const onTrouble = (message: string): void => complain(`signalbox mcp: ${printable(message)}`);
      await serveOverStdio({ version: VERSION, signal, onTrouble, ...given({ store }) });
    }).catch((error: unknown) => {
      // Clients end their servers with a signal, so that is not a failure.
      if (error instanceof CliExit && error.message === '') throw new CliExit(EXIT.ok, '');
      throw error;
    });
  });
}
