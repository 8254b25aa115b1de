/** Runs a hook: reads the client's payload, looks at the repository and its lock, and prints an answer in the client's form. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { gitEnvironment, identityFrom, isSameProcess, type ProcessIdentity } from '../../host/index.ts';
import { spoken } from '../../core/index.ts';
import { storeUrl } from '../../runtime/location/location.ts';
import type { SurveyedHold } from '../../runtime/observe/survey/index.ts';
import { open } from '../../runtime/open.ts';
import { outerHolds } from '../../runtime/processes/environment.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { tieIn } from '../../runtime/layout.ts';
import { isThere, openToLook } from '../read-only.ts';
import { closing } from '../store.ts';
import { print } from '../output.ts';
import { isServerUrl } from '../remote/url.ts';
import { clientOf, clientOfNamed } from './client-process.ts';
import type { HookedClient, Terms } from './content.ts';
import { holderFor, type Looked, type Payload, refusalOf, shellOf } from './judge.ts';
import { type Push, pushesIn } from './pushes.ts';

const STDIN = 0;
const LONGEST_PAYLOAD = 8 * 2 ** 20;

export interface HookTerms extends Terms {
  readonly client: HookedClient;
  readonly branches: readonly string[];
}

/** Prints nothing if it has no objection: the client then goes on as if there were no hook. */
export async function answerHook(terms: HookTerms): Promise<void> {
  const payload = readPayload();
  if (payload === undefined) return;
  switch (payload.hook_event_name) {
    case 'PreToolUse':
      return beforeTool(payload, terms);
    case 'SessionStart':
      return sessionStarted(payload, terms);
    case 'SessionEnd':
      return sessionEnded(payload, terms);
  }
}

/** Undefined for a payload of unknown form, which must not stop an agent. */
function readPayload(): Payload | undefined {
  try {
    const text = readFileSync(STDIN, 'utf8');
    if (text.length > LONGEST_PAYLOAD) return undefined;
    const payload: unknown = JSON.parse(text);
    return typeof payload === 'object' && payload !== null ? (payload as Payload) : undefined;
  } catch {
    return undefined;
  }
}

async function beforeTool(payload: Payload, terms: HookTerms): Promise<void> {
  const shell = shellOf(payload);
  // Nearly every command ends here, and quickly.
  if (shell === undefined || !shell.text.includes('push')) return;
  const pushes = pushesIn(shell.text, shell.directory, terms.lock, homedir());
  const own = holderFor(terms.client, payload.session_id);
  const looked = [];
  for (const push of pushes) {
    looked.push({ ...push, looked: await lookedAt(push, shell.directory, terms, own) });
  }
  const reason = refusalOf(shell.text, looked, terms, terms.branches);
  if (reason === undefined) return;
  answer('PreToolUse', { permissionDecision: 'deny', permissionDecisionReason: reason });
}

function answer(hookEventName: string, output: object): void {
  print(JSON.stringify({ hookSpecificOutput: { hookEventName, ...output } }));
}

async function lookedAt(
  { directory: there }: Push,
  fallback: string | undefined,
  { lock }: Terms,
  own: string | undefined,
): Promise<Looked> {
  const directory = there ?? fallback ?? process.cwd();
  const branch = branchIn(directory);
  try {
    return { branch, lock: await lockIn(directory, lock, own) };
  } catch (error) {
    return { branch, lock: { kind: 'unknown', why: (error as Error).message.split('\n')[0] ?? '' } };
  }
}

function branchIn(directory: string): string | undefined {
  try {
    const args = ['-C', directory, 'symbolic-ref', '--quiet', '--short', 'HEAD'];
    const env = gitEnvironment(process.env);
    const told = execFileSync('git', args, {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5000,
      encoding: 'utf8',
    });
    return told.trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Looks into the store of the directory in which git would push; the hook itself may run elsewhere. */
async function lockIn(directory: string, lock: string, own: string | undefined): Promise<Looked['lock']> {
  const url = storeUrl(undefined, process.env, directory);
  // Without a store there is no hold, so the lock is free.
  if (!isThere(url)) return { kind: 'free' };
  return closing(isServerUrl(url) ? await openServer(url) : await openToLook(url), async (box) => {
    const { locks } = await box.survey({ resource: { kind: 'lock', name: lock } });
    const holds = (locks[0]?.holds ?? []).filter(({ isStale }) => !isStale);
    const [first] = holds;
    if (first === undefined) return { kind: 'free' };
    const outer = outerHolds(process.env, url)[`lock/${lock}`];
    const holders = [own, process.env['SIGNALBOX_HOLDER'], outer?.holder];
    const client = clientOf(process.pid);
    if (holds.some((hold) => holders.includes(hold.holder) || isOfClient(hold, client))) return { kind: 'ours' };
    const why = first.reason === undefined ? '' : ` (${first.reason})`;
    return { kind: 'held', told: `held by ${first.holder}${why} for ${spoken(Date.now() - first.acquiredAt)}` };
  });
}

/** The hold is tied to the client that started this hook, or rests on another process of that client: its MCP server. */
function isOfClient({ isAttached, session, takenBy }: SurveyedHold, client: ProcessIdentity | undefined): boolean {
  if (client === undefined) return false;
  if (!isAttached) return isSameProcess(tieIn(takenBy?.about ?? null), client);
  const process = identityFrom(session?.about);
  return process !== undefined && isSameProcess(clientOfNamed(process), client);
}

/** Tells the agent its name, and sets it for the shells that the agent will start. */
function sessionStarted(payload: Payload, { client, lock, command }: HookTerms): void {
  const holder = holderFor(client, payload.session_id);
  if (holder === undefined) return;
  const file = process.env['CLAUDE_ENV_FILE'];
  const isSet = client === 'claude-code' && file !== undefined && file !== '';
  if (isSet) appendFileSync(file, `export SIGNALBOX_HOLDER=${holder}\n`);
  const how = isSet
    ? `SIGNALBOX_HOLDER is set to it, and the tools of the MCP server take it as holder`
    : `give it to lock acquire, renew and release (--holder ${holder}), and to the tools of the MCP server as holder`;
  const text = `signalbox knows you as ${holder}; ${how}. A push to main needs the lock ${lock}: ${command} run --lock ${lock} -- git push …`;
  answer('SessionStart', { additionalContext: text });
}

/** Gives back what the agent took by hand. What a process holds for itself, such as a `run`, ends with that process. */
async function sessionEnded(payload: Payload, { client }: HookTerms): Promise<void> {
  const own = holderFor(client, payload.session_id);
  const directory = typeof payload.cwd === 'string' ? payload.cwd : process.cwd();
  const url = storeUrl(undefined, process.env, directory);
  if (own === undefined || !isThere(url)) return;
  const box = isServerUrl(url) ? await openServer(url) : await open(url, { maintains: false, component: 'cli' });
  await closing(box, async () => {
    const { locks, semaphores } = await box.survey({ leases: false });
    const all = [
      ...locks.map((lock) => ({ ...lock, of: box.lock(lock.name) })),
      ...semaphores.map((semaphore) => ({ ...semaphore, of: box.semaphore(semaphore.name) })),
    ];
    for (const { holds, waiting, of } of all) {
      // A server does not list tickets; a ticket that nobody collects leaves the line by itself.
      const tickets = isServerUrl(url) ? [] : waiting.filter(({ holder }) => holder === own);
      for (const { id, holder } of tickets) await of.withdraw({ ticket: id, holder });
      for (const { holder, token, isAttached } of holds) {
        if (holder === own && !isAttached) await of.release({ holder, token });
      }
    }
  });
}

async function openServer(url: string): Promise<Signalbox> {
  return (await import('../remote/open.ts')).openRemote(url);
}
