/** Lists all commands. Each has its own file, which is loaded only when needed, so that every command starts fast. */
import type { Command } from './command.ts';

/** The export of a command's file: adds arguments, options, examples and the action to `command`. */
export interface CommandModule {
  define(command: Command): void;
}

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export const COMMANDS: readonly CommandEntry[] = [
  { name: 'run', summary: 'run a command while holding locks and slots', load: () => import('./run.ts') },
  { name: 'lock', summary: 'acquire, renew, release and show locks by hand', load: () => import('./lock.ts') },
  { name: 'sem', summary: 'acquire, renew, release and show semaphores by hand', load: () => import('./sem.ts') },
  { name: 'task', summary: 'publish tasks, and run a command for each', load: () => import('./task.ts') },
  { name: 'bus', summary: 'get, put, list, delete and watch plain keys', load: () => import('./bus.ts') },
  { name: 'pipeline', summary: 'run phases in order, gated by guards', load: () => import('./pipeline.ts') },
  { name: 'guard', summary: 'check, explain or wait for a condition', load: () => import('./guard.ts') },
  { name: 'members', summary: 'show who is alive, or be a member', load: () => import('./members.ts') },
  { name: 'lead', summary: 'run a command on one machine of many', load: () => import('./lead.ts') },
  { name: 'github', summary: 'lock GitHub Issues', load: () => import('./github.ts') },
  { name: 'who', summary: 'show who holds what, since when, why, and who waits', load: () => import('./who.ts') },
  { name: 'status', summary: 'show locks, tasks, pipelines and members', load: () => import('./status.ts') },
  { name: 'top', summary: 'the board on a terminal, live and driven by keys', load: () => import('./top.ts') },
  { name: 'events', summary: 'print events as they happen', load: () => import('./events.ts') },
  {
    name: 'witness',
    summary: 'the record of every change: read, seal, export and verify it',
    load: () => import('./witness.ts'),
  },
  { name: 'serve', summary: 'serve the store over HTTP', load: () => import('./serve.ts') },
  { name: 'mcp', summary: 'serve the store to a coding agent (MCP over stdio)', load: () => import('./mcp.ts') },
  { name: 'token', summary: 'make, list and revoke tokens for the server', load: () => import('./token.ts') },
  { name: 'maintain', summary: 'free stale holds now, or warn of them', load: () => import('./maintain.ts') },
  { name: 'doctor', summary: 'check the store and this machine', load: () => import('./doctor.ts') },
  { name: 'export', summary: 'write everything in the store to JSON files', load: () => import('./export.ts') },
  { name: 'import', summary: 'restore what export wrote', load: () => import('./import.ts') },
  { name: 'agents', summary: 'teach coding agents to take turns in a repository', load: () => import('./agents.ts') },
  { name: 'completion', summary: 'print completion for bash, zsh or fish', load: () => import('./completion.ts') },
];
