/** Starts the command and supervises it: passes signals on, ends it when a hold is lost, and ends what it leaves behind. */
import { whenAborted } from '../../clock.ts';
import { end, type Ended, type GatedChild, isGoneWithin, remainsOf } from '../../host/index.ts';
import type { HoldLost } from '../../runtime/refusal.ts';
import { spoken } from '../../core/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import type { RunEnded } from './ended.ts';
import type { RunRequest } from './request.ts';
import type { Signals } from './signals.ts';
import { stopWithChild } from './job-control.ts';
import type { Voice } from './voice.ts';

/** Time between TERM and KILL for processes that have already used up the grace. */
const LAST_MOMENT_MS = 1_000;
const GIVE_UP_MS = 10_000;
const MEANT_TO_END: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGALRM'];

/** A hold of any engine, or the claim of a task. `already-lost` and `not-owner` mean that it was not ours any more. */
export interface Releasable {
  /** What is held, in a word: a hold names its resource. */
  readonly resource?: string;
  readonly what?: string;
  release(ended: Ended): Promise<{ readonly kind: string }>;
}

/** What it needs of `Signals`. */
export type Attention = Pick<Signals, 'running' | 'losing' | 'ending' | 'hurrying'>;

export type Terms = Pick<RunRequest, 'graceMs' | 'onLost'> & {
  /** Says more about a loss than the hold itself knows; undefined if there is nothing more to say. */
  readonly explain?: (loss: HoldLost) => Promise<string | undefined>;
};

/** A command, and what attends to it. */
export interface Supervised {
  readonly terms: Terms;
  readonly child: GatedChild;
  readonly signals: Attention;
  readonly voice: Voice;
  /** Aborts when a hold is lost. */
  readonly lost: AbortSignal;
}

export async function supervise(supervised: Supervised, holds: readonly Releasable[]): Promise<RunEnded> {
  const { terms, child, signals, lost } = supervised;
  signals.running((signal) => pass(child, signal));
  const noMoreStops = child.leads ? undefined : stopWithChild(child.pid);
  const losing = whenAborted(lost).then(() => 'aborted' as const);
  // Checked after we began to listen: the command may have stopped itself before.
  child.letGo();
  try {
    const first = await Promise.race([child.ended, losing]);
    if (first === 'aborted') await afterLoss(supervised);
    const isTold = first === 'aborted';
    const ended = await child.ended;
    signals.ending();
    await clearStragglers(supervised);
    const gone = await release(holds, ended);
    if (lost.aborted || gone.length > 0) {
      const late = `${gone.join(', ')}: the hold was lost before it could be released`;
      throw new CliExit(EXIT.lost, isTold ? '' : await lossTold(terms, lost, late));
    }
    return { ...ended, interrupted: !child.leads && 'signal' in ended && ended.signal === 'SIGINT' };
  } finally {
    noMoreStops?.();
  }
}

/** On a terminal the process group is the shell's, so only the command gets the signal. */
function pass(child: GatedChild, signal: NodeJS.Signals): void {
  if (child.hasEnded) return;
  // A process group without a shell ignores TSTP, because nothing could wake it.
  const told = signal === 'SIGTSTP' ? 'SIGSTOP' : signal;
  const target = child.leads ? -child.pid : child.pid;
  try {
    process.kill(target, told);
    // A stopped process would not receive it.
    if (MEANT_TO_END.includes(signal)) process.kill(target, 'SIGCONT');
  } catch {
    // The process ended at this very moment.
  }
}

async function afterLoss({ terms, child, signals, voice, lost }: Supervised): Promise<void> {
  const { onLost, graceMs } = terms;
  const told = lossTold(terms, lost);
  if (onLost === 'warn') return voice.say(`${await told}; the command continues`);
  signals.losing();
  const kill = onLost === 'kill' || graceMs === 0;
  const patience = { graceMs: kill ? 0 : graceMs, isOwn: true, hurrying: signals.hurrying, giveUpMs: GIVE_UP_MS };
  // Begins before the message, for which the store may be asked: another holder may have the resource by now.
  const ending = end(child.offspring, patience);
  voice.say(`${await told}; ending the command (${kill ? 'KILL' : `TERM, and KILL after ${spoken(graceMs)}`})`);
  await ending;
}

/** Processes that the command left behind delay the release, but at most for the grace. */
async function clearStragglers({ terms, child, signals, voice, lost }: Supervised): Promise<void> {
  const { graceMs, onLost } = terms;
  const { offspring } = child;
  const impatient = onLost === 'warn' ? undefined : lost;
  if (await isGoneWithin(offspring, true, graceMs, signals.hurrying, impatient)) return;
  const remains = remainsOf(offspring, true);
  const pids = remains.kind === 'some' ? remains.pids.join(', ') : '';
  voice.say(`the command has ended but left processes behind: ${pids}; ending them`);
  const patience = { graceMs: Math.min(graceMs, LAST_MOMENT_MS), hurrying: signals.hurrying, giveUpMs: GIVE_UP_MS };
  child.isLeft = !(await end(offspring, { ...patience, isOwn: true }));
  if (child.isLeft) voice.say(`cannot end these processes: ${pids}`);
}

/** Which of them were lost before. A hold that cannot be released ends with its lease: what matters now is how the command ended. */
async function release(holds: readonly Releasable[], ended: Ended): Promise<readonly string[]> {
  const outcomes = await Promise.all(holds.map((hold) => hold.release(ended).catch(() => undefined)));
  const lost = holds.filter((_, at) => ['already-lost', 'not-owner'].includes(outcomes[at]?.kind ?? ''));
  return lost.map(({ resource, what }) => resource ?? what ?? '');
}

/** `late`: what to say if only the release told of the loss. */
async function lossTold({ explain }: Terms, lost: AbortSignal, late = ''): Promise<string> {
  const reason = lost.reason as HoldLost | undefined;
  const more = reason === undefined ? undefined : await explain?.(reason);
  if (more !== undefined) return more;
  // To this process, a silent store and its own stop look the same.
  if (reason?.why === 'disconnected') return `${reason.message} (this process may have been stopped)`;
  return reason?.message ?? late;
}
