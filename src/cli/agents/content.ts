/**
 * Contains the text that teaches coding agents, their MCP server and their hooks. `agents init` writes it into a repository, and
 * the plugins under `plugins/` are made from it.
 */

export const CLIENTS = ['claude-code', 'codex', 'cursor'] as const;
export type Client = (typeof CLIENTS)[number];

/** The clients that run hooks. */
export type HookedClient = Exclude<Client, 'cursor'>;

export const DEFAULT_LOCK = 'main-branch';

export interface Terms {
  /** The lock that a push needs. */
  readonly lock: string;
  /** How the clients start signalbox: its name, or `npx signalbox` where it is a dependency. */
  readonly command: string;
}

export const DEFAULT_TERMS: Terms = { lock: DEFAULT_LOCK, command: 'signalbox' };

/** In plain Markdown, for AGENTS.md and for the skill of a plugin. */
export function teaching({ lock, command }: Terms): string {
  return `Several agents may work in this repository at the same time. \`signalbox\` keeps them from stepping on each other. If your
client has the MCP server \`signalbox\`, use its tools. In a shell you need five commands:

| you want to | run |
|---|---|
| see who holds what, and who waits | \`${command} who\` |
| do something alone, such as a push to main | \`${command} run --lock ${lock} --wait 90s --ticket --reason 'WHY' -- git push origin HEAD:main\` |
| hold something over several commands | \`${command} lock acquire staging --pid $PPID --ttl 30m --wait 90s --ticket --reason 'WHY'\` |
| keep it for longer | \`${command} lock renew staging --token TOKEN\` (\`lock acquire\` printed the token) |
| give it back | \`${command} lock release staging\` |

- A lock needs no setup: just name it. \`${lock}\` is the lock for merges and pushes to main; all agents have to use the same names.
- Exit code 75: it is not your turn yet. The message names the holder and a ticket. Within 60 s, run the same command again
  with that ticket (\`--ticket TICKET\`): you keep your place in line. Do other work in between only if it is short.
- Exit code 76 or 77: you do not hold it any more. Stop, and look at what happened in between before you go on.
- \`lock acquire\`, \`renew\` and \`release\` need your name: give all of them the same \`--holder agent:NAME\`, unless
  \`$SIGNALBOX_HOLDER\` is set. \`run\` needs no name, and releases by itself.
- Take one lock either with the tools or in the shell: a lock that you hold through a tool is busy for \`run\`. Push under it
  with a plain \`git push\`.
- Prefer \`run\`. Hold a lock for as short a time as you can, and say why with \`--reason\`: the agents in line see it.
- What another agent holds stays with it. If it takes too long, tell your user who holds it and since when.
`;
}

export const BLOCK_TITLE = '## Working beside other agents';

/** The heading and the text, as they stand between the markers. */
export function blockText(terms: Terms): string {
  return `${BLOCK_TITLE}\n\n${teaching(terms)}`;
}

export interface McpServer {
  readonly command: string;
  readonly args: readonly string[];
}

export function mcpServer({ command }: Terms): McpServer {
  const [program = 'signalbox', ...args] = command.split(' ');
  return { command: program, args: [...args, 'mcp'] };
}

export interface HookGroup {
  readonly matcher?: string;
  readonly hooks: readonly { readonly type: 'command'; readonly command: string; readonly timeout: number }[];
}

export type Hooks = Readonly<Record<string, readonly HookGroup[]>>;

/** `agents init` recognises its own hooks by these words. */
export const HOOK_WORDS = 'agents hook';
const TIMEOUT_SECONDS = 15;

/** Claude Code and Codex use the same events and the same JSON for hooks. */
export function hooksFor(client: HookedClient, { lock, command }: Terms): Hooks {
  const options = [
    lock === DEFAULT_LOCK ? '' : ` --lock ${shellWord(lock)}`,
    command === DEFAULT_TERMS.command ? '' : ` --command ${shellWord(command)}`,
  ].join('');
  const hook = {
    type: 'command',
    command: `${command} ${HOOK_WORDS} ${client}${options}`,
    timeout: TIMEOUT_SECONDS,
  } as const;
  return {
    SessionStart: [{ hooks: [hook] }],
    PreToolUse: [{ matcher: 'Bash', hooks: [hook] }],
    SessionEnd: [{ hooks: [hook] }],
  };
}

export function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
