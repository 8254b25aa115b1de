/** `signalbox github run`: the wrapper of `signalbox run`, with an issue for a lock. */
import type { Command } from 'commander';
import { spoken } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { GitHubHold, LockManager } from '../../github/index.ts';
import { GatedChild, NotStarted, randomHex } from '../../host/index.ts';
import { MARK } from '../../host/mark.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { givenDescriptors, stillOpen } from '../run/descriptors.ts';
import { endLike, type RunEnded } from '../run/ended.ts';
import { findProgram } from '../run/program.ts';
import type { OnLost } from '../run/request.ts';
import { NOT_STARTED, originalArgv } from '../run/run.ts';
import { Signals } from '../run/signals.ts';
import { leaveStreamsAlone } from '../run/streams.ts';
import { supervise } from '../run/supervise.ts';
import { hasTerminal } from '../run/terminal.ts';
import { Voice } from '../run/voice.ts';
import { addAsking, type AskOptions, askingOf, issueNumber, managerFor, refusal, timeoutOf } from './arguments.ts';
import { parseDuration } from '../duration.ts';

interface RunOptions extends AskOptions {
  readonly onLost: string;
  readonly grace: string;
}

const ON_LOST: readonly string[] = ['term', 'kill', 'warn'];

export function addRun(command: Command): void {
  addAsking(command)
    .description('run a command while holding an issue')
    .usage('ISSUE --worker ID [options] -- COMMAND [ARGUMENT…]')
    .argument('<issue>', 'its number', issueNumber)
    .argument('<command...>', 'what to run, with its arguments')
    .option('--ttl <duration>', 'how long the lock outlives this process when it is not heard of', '5m')
    .option('--on-lost <what>', 'when the lock is lost: term, kill or warn', 'term')
    .option('--grace <duration>', 'between TERM and KILL, and for processes the command leaves behind', '5s')
    .addHelpText(
      'after',
      '\nExamples:\n  signalbox github run 42 --worker agent:7 -- ./fix.sh\n  signalbox github run 42 --worker agent:7 --strategy steal-stale -- npm test\n\nThe command gets SIGNALBOX_TOKEN, SIGNALBOX_HOLDER and SIGNALBOX_GITHUB_ISSUE in its environment.\nExit codes: as of signalbox run.',
    )
    .action(async (issue: number, argv: string[], options: RunOptions) => endLike(await run(issue, argv, options)));
}

async function run(issue: number, given: readonly string[], options: RunOptions): Promise<RunEnded> {
  if (!ON_LOST.includes(options.onLost)) throw new Failure('invalid', `--on-lost: expected ${ON_LOST.join(', ')}`);
  const [name, ...args] = given;
  if (name === undefined) throw new Failure('invalid', 'there is no command to run; it goes after --');
  leaveStreamsAlone();
  const descriptors = givenDescriptors();
  const argv = originalArgv([name, ...args]);
  const program = findProgram(argv[0], process.env);
  const sharesTerminal = hasTerminal();
  const signals = new Signals(sharesTerminal);
  const voice = new Voice('on-a-terminal');
  // The heartbeats keep no process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const timeoutMs = timeoutOf(options.ttl) ?? 300_000;
    const manager = managerFor(options, timeoutMs);
    const hold = await acquired(manager, issue, options, signals, voice);
    const mark = randomHex(8);
    const around = process.env[MARK] ?? '';
    const environment = {
      ...process.env,
      ...{
        SIGNALBOX_HOLDER: hold.workerId,
        SIGNALBOX_TOKEN: String(hold.token),
        SIGNALBOX_GITHUB_ISSUE: String(issue),
      },
      [MARK]: around === '' ? mark : `${around}.${mark}`,
    };
    try {
      const child = await GatedChild.start(program, argv, environment, {
        leads: !sharesTerminal,
        mark,
        given: stillOpen(descriptors),
      });
      try {
        if (!hold.isValid)
          throw new CliExit(EXIT.notAcquired, `issue #${issue}: the lock was lost before the command could begin`);
        const terms = { graceMs: parseDuration(options.grace), onLost: options.onLost as OnLost };
        return await supervise(terms, [{ release: () => hold.release() }], child, signals, voice, hold.signal);
      } finally {
        await child.abandon();
      }
    } finally {
      await hold.release('ended before it began');
    }
  } catch (error) {
    if (error instanceof NotStarted) throw new CliExit(NOT_STARTED, error.message);
    if (signals.left === undefined) throw error;
    return { signal: signals.left, interrupted: sharesTerminal && signals.left === 'SIGINT' };
  } finally {
    clearInterval(alive);
    voice.done();
    signals.stop();
  }
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
    const lasting = `waiting for issue #${issue}; held by ${worker_id} since ${claimed_at}`;
    return {
      line: `waiting ${spoken(sinceMs)} for issue #${issue}; held by ${worker_id} since ${claimed_at}`,
      lasting,
    };
  });
  try {
    const result = await manager.acquireLock(issue, askingOf(options, signals.leaving));
    if (!result.success) throw refusal(result.error, result.reason);
    return result.lock;
  } finally {
    voice.done();
  }
}
