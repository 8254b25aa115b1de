/**
 * Finds the client that a process works for: the coding agent that started it, or the shell in which a person did. Clients
 * start hooks and MCP servers through other programs, which do not count:
 *
 *     tmux ─▶ claude ─▶ sh -c … ─▶ signalbox agents hook
 *                └────▶ npm exec ─▶ sh -c … ─▶ signalbox mcp
 *
 * Only the nearest one counts. What is above it, such as a terminal, may have started other clients too.
 */
import { readFileSync } from 'node:fs';
import { identify, isSameProcess, type ProcessIdentity, readStat } from '../../host/index.ts';

const SHELLS = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'fish', 'busybox']);
/** Package managers, by the name that they give themselves, or by the script that Node runs. */
const LAUNCHER = /^(?:npm|npx|pnpm|pnpx|yarn|timeout)\b|(?:^|\/)(?:npm-cli|npx-cli|npm|npx|pnpm|yarn)\.c?js$/;
const MOST_ANCESTORS = 64;

/** Undefined if there is none, or if the system does not tell. */
export function clientOf(pid: number): ProcessIdentity | undefined {
  let at = readStat(pid)?.parent ?? 0;
  for (let steps = 0; at > 1 && steps < MOST_ANCESTORS; steps++) {
    if (!isLauncher(commandOf(at))) return identify(at);
    at = readStat(at)?.parent ?? 0;
  }
  return undefined;
}

/** The client of a process that the store names; undefined if that process does not run here any more. */
export function clientOfNamed(process: ProcessIdentity): ProcessIdentity | undefined {
  return isSameProcess(identify(process.pid), process) ? clientOf(process.pid) : undefined;
}

/** Whether a process only starts another one. A shell without a command is where a person works. */
export function isLauncher([program = '', ...args]: readonly string[]): boolean {
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (SHELLS.has(name)) return args.some((arg) => !arg.startsWith('-') || /^-[a-z]*c/.test(arg));
  // A package manager shows its whole command line as its name.
  return [program, name, ...args.slice(0, 1)].some((text) => LAUNCHER.test(text));
}

function commandOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0+$/, '').split('\0');
  } catch {
    return [];
  }
}
