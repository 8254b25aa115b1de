/**
 * Decides how a hook answers a tool call. Pure: from the client's payload and the state of the repository and its lock to the
 * answer.
 *
 *     no push to a protected branch ─────────────▶ nothing to say
 *     the agent holds the lock of that repository ▶ nothing to say
 *     it does not, or the store cannot be asked ──▶ refused, with the command that waits for its turn
 *
 * Only a push is ever refused. A payload that cannot be understood is let through, because a broken hook must not keep an agent
 * from everything else; a push whose lock cannot be looked up is refused, because that is what the hook is for.
 */
import { type HookedClient, shellWord, type Terms } from './content.ts';
import type { Push } from './pushes.ts';

/** What clients send; anything may be missing. */
export interface Payload {
  readonly hook_event_name?: unknown;
  readonly session_id?: unknown;
  readonly cwd?: unknown;
  readonly tool_name?: unknown;
  readonly tool_input?: unknown;
}

/** Tools that run shell commands. Codex also sends edits with a `command`, which is a patch. */
const SHELL_TOOLS = /^(?:bash|shell|local_shell|shell_command|exec_command|unified_exec)$/i;

/** What a tool is about to run, and in which directory; undefined if it runs nothing. */
export function shellOf(
  payload: Payload,
): { readonly text: string; readonly directory: string | undefined } | undefined {
  const { tool_name: tool, tool_input: input, cwd } = payload;
  if (typeof tool !== 'string' || !SHELL_TOOLS.test(tool)) return undefined;
  if (typeof input !== 'object' || input === null) return undefined;
  const { command, cmd, workdir } = input as Readonly<Record<string, unknown>>;
  const text = scriptIn(command ?? cmd);
  if (text === undefined) return undefined;
  const base = typeof cwd === 'string' ? cwd : undefined;
  const own = typeof workdir === 'string' && workdir !== '' ? workdir : undefined;
  const directory = own === undefined ? base : own.startsWith('/') ? own : base && `${base}/${own}`;
  return { text, directory };
}

/** A text, or a program with its arguments. */
function scriptIn(command: unknown): string | undefined {
  if (typeof command === 'string') return command;
  if (!Array.isArray(command) || !command.every((word) => typeof word === 'string')) return undefined;
  return (command as string[]).map(shellWord).join(' ');
}

/** The name by which this agent holds what it takes by hand. */
export function holderFor(client: HookedClient, session: unknown): string | undefined {
  if (typeof session !== 'string') return undefined;
  const id = session.replace(/[^A-Za-z0-9]/g, '').slice(0, 12);
  return id === '' ? undefined : `agent:${client}-${id}`;
}

/** The branch and the lock of the repository that a push is made from. */
export interface Looked {
  /** What is checked out there; undefined if there is no branch, or no repository. */
  readonly branch: string | undefined;
  readonly lock:
    | { readonly kind: 'ours' }
    | { readonly kind: 'free' }
    | { readonly kind: 'held'; readonly told: string }
    | { readonly kind: 'unknown'; readonly why: string };
}

export const PROTECTED = ['main', 'master'];

/** Whether a push needs the lock. If its branch is unknown, it does. */
export function needsLock({ branches }: Push, branch: string | undefined, isProtected: readonly string[]): boolean {
  return branches.some((one) => {
    if (typeof one === 'string') return isProtected.includes(one);
    return one.name === 'all' || branch === undefined || isProtected.includes(branch);
  });
}

/** The reason to refuse it; undefined if it may run. */
export function refusalOf(
  text: string,
  pushes: readonly (Push & { readonly looked: Looked })[],
  { lock, command }: Terms,
  isProtected: readonly string[] = PROTECTED,
): string | undefined {
  const push = pushes.find(
    ({ looked, ...one }) => looked.lock.kind !== 'ours' && needsLock(one, looked.branch, isProtected),
  );
  if (push === undefined) return undefined;
  const { lock: found } = push.looked;
  const run = `${command} run --lock ${shellWord(lock)} --wait 90s --ticket --reason 'WHY' --`;
  const why = {
    ours: '',
    free: 'Nobody holds it now.',
    held: found.kind === 'held' ? `It is ${found.told}.` : '',
    unknown: found.kind === 'unknown' ? `It is unknown whether you hold it: ${found.why}.` : '',
  }[found.kind];
  const next =
    push.at === undefined
      ? `Put ${run} before the git push.`
      : `Run this instead:\n  ${text.slice(0, push.at)}${run} ${text.slice(push.at)}`;
  const tellUser = found.kind === 'unknown' ? ' If that fails too, tell your user.' : '';
  return [
    `Not run: it pushes to a branch that several agents share, and you do not hold the lock ${lock}. ${why}`,
    `${next}`,
    `It waits for its turn and pushes then; exit code 75 prints a ticket to go on with.${tellUser}`,
    `No part of your command was run, not even a cd in it.`,
  ].join('\n');
}
