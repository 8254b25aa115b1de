/** `signalbox github run`: the wrapper of `signalbox run`, with an issue for a lock. */
import type { Command } from '../command.ts';
import { spoken } from '../../core/index.ts';
import type { GitHubHold, LockManager } from '../../github/index.ts';
import { endLike, type RunEnded } from '../run/ended.ts';
import { runAlongside } from '../run/alongside.ts';
import type { Signals } from '../run/signals.ts';
import type { Voice } from '../run/voice.ts';
import { addAsking, type AskOptions, askingOf, issueNumber, managerFor, refusal } from './arguments.ts';
import { type OnLost, onLostArgument } from '../arguments.ts';

interface RunOptions extends AskOptions {
  readonly onLost: OnLost;
  readonly grace: number;
}

export function run(command: Command): void {
  addAsking(command)
    .about(`run a command while holding an issue

Examples:
  signalbox github run 42 --worker agent:7 -- ./fix.sh
  signalbox github run 42 --worker agent:7 --strategy steal-stale -- npm test

The command gets SIGNALBOX_TOKEN, SIGNALBOX_HOLDER and SIGNALBOX_GITHUB_ISSUE in its environment.
Exit codes: as of signalbox run.`)
    .usage('ISSUE --worker ID [options] -- COMMAND [ARGUMENT…]')
    .argument('<issue>', 'its number', issueNumber)
    .argument('<command...>', 'what to run, with its arguments')
    .duration('--ttl', 'how long the lock outlives this process if it vanishes', '5m')
    .option('--on-lost <what>', 'when the lock is lost: term, kill or warn', onLostArgument, 'term')
    .duration('--grace', 'between TERM and KILL, and for processes the command leaves behind', '5s')
    .action(async (issue: number, argv: string[], options: RunOptions) => endLike(await held(issue, argv, options)));
}

async function held(issue: number, given: readonly string[], options: RunOptions): Promise<RunEnded> {
  const terms = { graceMs: options.grace, onLost: options.onLost };
  return runAlongside(given, terms, 'now-and-then', async (signals, voice) => {
    const manager = managerFor(options, options.ttl);
    const hold = await acquired(manager, issue, options, signals, voice);
    const environment = {
      SIGNALBOX_HOLDER: hold.workerId,
      SIGNALBOX_TOKEN: String(hold.token),
      SIGNALBOX_GITHUB_ISSUE: String(issue),
    };
    return {
      what: `issue #${issue}`,
      environment,
      get isValid() {
        return hold.isValid;
      },
      signal: hold.signal,
      release: () => hold.release(),
      abandon: () => hold.release('ended before it began'),
    };
  });
}

async function acquired(
  manager: LockManager,
  issue: number,
  options: RunOptions,
  signals: Signals,
  voice: Voice,
): Promise<GitHubHold> {
  voice.waiting(async (sinceMs) => {
    const { metadata } = await manager.getLockStatus(issue);
    if (metadata === null) return undefined;
    const { worker_id, claimed_at } = metadata.lock;
    const what = `for issue #${issue}; held by ${worker_id} since ${claimed_at}`;
    return { line: `waiting ${spoken(sinceMs)} ${what}`, lasting: `waiting ${what}` };
  });
  try {
    const result = await manager.acquireLock(issue, askingOf(options, signals.leaving));
    if (!result.success) throw refusal(result.error, result.reason);
    return result.lock;
  } finally {
    voice.done();
  }
}
