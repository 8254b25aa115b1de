/** The arguments and options that the GitHub commands share, and how a refusal ends a command. */
import { type Command, InvalidArgumentError, Option } from '../command.ts';
import { hostname } from 'node:os';
import { type AcquireOptions, ConflictStrategy, LockManager, type LockReason } from '../../github/index.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain } from '../output.ts';

export interface PlaceOptions {
  readonly repo?: string;
  readonly api?: string;
}

export interface AskOptions extends PlaceOptions {
  readonly worker: string;
  readonly node?: string;
  readonly strategy?: string;
  readonly reason?: string;
  readonly queue?: true;
  readonly priority?: string;
  readonly ttl: number;
}

export function issueNumber(text: string): number {
  const number = Number(text.replace(/^#/, ''));
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError('expected the number of an issue');
  return number;
}

export function addPlace(command: Command): Command {
  return command
    .option('--repo <owner/name>', 'the repository; by default GITHUB_REPO')
    .option('--api <url>', "the address of GitHub's API; by default GITHUB_API_URL");
}

export function addAsking(command: Command): Command {
  return addPlace(command)
    .requiredOption('--worker <id>', 'who holds it')
    .option('--node <id>', 'the machine; by default the name of this one')
    .addOption(
      new Option('--strategy <what>', 'what to do if it is taken')
        .choices(Object.values(ConflictStrategy))
        .default(ConflictStrategy.RETRY),
    )
    .option('--reason <text>', 'why, for --strategy force; shown on the issue')
    .option('--queue', 'wait in the queue with the other workers that use it')
    .option('--priority <p>', 'in the queue: high, medium, low, or a number from -100 to 100');
}

/** Derives the heartbeat from the timeout if that is short. */
export function managerFor({ repo, api }: PlaceOptions, timeoutMs?: number): LockManager {
  return new LockManager({
    ...given({ githubRepo: repo, baseUrl: api }),
    ...(timeoutMs !== undefined && { lockTimeoutMs: timeoutMs, heartbeatIntervalMs: Math.min(30_000, timeoutMs / 4) }),
    onWarning: (message) => complain(`signalbox: ${message}`),
  });
}

export function askingOf(options: AskOptions, signal?: AbortSignal): AcquireOptions {
  const { worker, node, strategy, reason, queue, priority } = options;
  const number = Number(priority);
  return {
    workerId: worker,
    nodeId: node ?? hostname(),
    conflictStrategy: strategy as ConflictStrategy,
    ...given({ reason, queue, signal }),
    ...(priority !== undefined && { priority: (Number.isFinite(number) ? number : priority) as number }),
  };
}

/** Ends the command. */
export function refusal(error: string, reason: LockReason): CliExit {
  return new CliExit(EXIT_CODES[reason.kind], error, {
    reason: reason.kind === 'retries-exhausted' ? reason.last.kind : reason.kind,
    ...(reason.kind === 'unauthorised' && { code: 'forbidden' }),
  });
}

const EXIT_CODES: Readonly<Record<LockReason['kind'], number>> = {
  unreachable: EXIT.unreachable,
  'foreign-ref': EXIT.unreachable,
  unauthorised: EXIT.notPermitted,
  'not-owner': EXIT.notPermitted,
  'already-locked': EXIT.notAcquired,
  assigned: EXIT.notAcquired,
  'retries-exhausted': EXIT.notAcquired,
  'race-lost': EXIT.notAcquired,
  'queued-behind': EXIT.notAcquired,
  deadlock: EXIT.notAcquired,
  'rate-limited': EXIT.notAcquired,
  'issue-closed': EXIT.notAcquired,
  'issue-missing': EXIT.notAcquired,
  aborted: EXIT.notAcquired,
};
