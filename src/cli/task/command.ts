/** The options that `task run` and `task work` share, and the command that stands after them. */
import type { Command } from 'commander';
import { hostname } from 'node:os';
import { randomHex, type Text } from '../../host/index.ts';
import { shown } from '../../failure.ts';
import { outerHolds } from '../../runtime/processes/environment.ts';
import { storeUrl } from '../../runtime/location/location.ts';
import { durationArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import type { GlobalOptions } from '../program.ts';
import { givenDescriptors, stillOpen } from '../run/descriptors.ts';
import { findProgram } from '../run/program.ts';
import type { OnLost } from '../run/request.ts';
import { originalArgv } from '../run/run.ts';
import { all, none } from './arguments.ts';
import type { JobTerms } from './job.ts';

export interface CommandFlags {
  readonly holder?: string;
  readonly capability: readonly string[];
  readonly ttl: number;
  readonly grace: number;
  readonly onLost: string;
}

const ON_LOST: readonly string[] = ['term', 'kill', 'warn'];
/** As of `run`: a shorter lease could end between two renewals of a busy process. */
const SHORTEST_TTL_MS = 100;

export function addCommandOptions(command: Command): Command {
  return command
    .option('--holder <id>', 'who claims it (default: $SIGNALBOX_HOLDER, or a new name)')
    .option('--capability <name>', 'what this worker can do (repeatable)', all, none)
    .option('--ttl <duration>', 'the lease: how long the claim outlives this process if it vanishes', durationArgument, 15_000)
    .option('--on-lost <what>', 'when the claim is lost: term, kill or warn', 'term')
    .option(
      '--grace <duration>',
      'time between TERM and KILL, and for processes that the command leaves behind',
      durationArgument,
      5_000,
    );
}

/** What stands before `--` and after it; commander drops the dashes. */
export function aroundDashes(words: readonly string[], argv = process.argv): { ids: string[]; command: string[] } {
  const dashes = argv.indexOf('--', 2);
  const after = dashes < 0 ? 0 : argv.length - dashes - 1;
  return { ids: words.slice(0, words.length - after), command: words.slice(words.length - after) };
}

export type Program = Pick<
  JobTerms,
  'program' | 'argv' | 'env' | 'url' | 'outer' | 'ttlMs' | 'graceMs' | 'onLost' | 'given'
>;

/** Finds the command before anything is claimed. */
export function programOf(command: Command, words: readonly string[], flags: CommandFlags): Program {
  const [name, ...args] = words;
  if (name === undefined || name === '') throw new CliExit(EXIT.usage, 'the command is missing; write it after --');
  const { onLost, ttl, grace } = flags;
  if (!ON_LOST.includes(onLost))
    throw new CliExit(EXIT.usage, `--on-lost is ${shown(onLost)}; accepted is ${ON_LOST.join(', ')}`);
  if (ttl < SHORTEST_TTL_MS) throw new CliExit(EXIT.usage, `--ttl is too short; accepted is ${SHORTEST_TTL_MS}ms and more`);
  const given = stillOpen(givenDescriptors());
  const argv: readonly [Text, ...Text[]] = originalArgv([name, ...args]);
  const url = storeUrl(command.optsWithGlobals<GlobalOptions>().store);
  const { env } = process;
  return {
    program: findProgram(argv[0], env),
    ...{ argv, env, url, given },
    outer: outerHolds(env, url),
    ttlMs: ttl,
    graceMs: grace,
    onLost: onLost as OnLost,
  };
}

export function workerName(kind: string, { holder }: CommandFlags): string {
  return holder ?? (process.env['SIGNALBOX_HOLDER'] || `${kind}:${hostname()}:${process.pid}:${randomHex(3)}`);
}
