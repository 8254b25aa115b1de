/** All commands. Each is in a file of its own that is only loaded when it is wanted, so that every one starts fast. */
import type { Command } from 'commander';

/** What the file of a command exports: adds its arguments, options, examples and action to `command`. */
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
  { name: 'lock', summary: 'acquire, renew, release and look at locks by hand', load: () => import('./lock.ts') },
  { name: 'sem', summary: 'the same for semaphores', load: () => import('./sem.ts') },
  { name: 'task', summary: 'publish, claim, finish and look at tasks', load: () => import('./task.ts') },
  { name: 'pipeline', summary: 'run phases in order, gated by guards', load: () => import('./pipeline.ts') },
  { name: 'guard', summary: 'check, explain and wait for conditions', load: () => import('./guard.ts') },
  { name: 'github', summary: 'locks on GitHub Issues', load: () => import('./github.ts') },
  { name: 'who', summary: 'who holds what, since when, why, and who waits for whom', load: () => import('./who.ts') },
  { name: 'events', summary: 'follow what happens', load: () => import('./events.ts') },
  { name: 'maintain', summary: 'warn of stale holds and free them, now', load: () => import('./maintain.ts') },
  { name: 'doctor', summary: 'find out whether all is well here', load: () => import('./doctor.ts') },
  { name: 'export', summary: 'write locks and semaphores to JSON files', load: () => import('./export.ts') },
  { name: 'import', summary: 'read them back, into any store', load: () => import('./import.ts') },
  { name: 'completion', summary: 'print completion for bash, zsh or fish', load: () => import('./completion.ts') },
];
