/** Finds the command that stands after the options of `task run` and `task work`. */
import type { Command } from '../command.ts';
import { hostname } from 'node:os';
import { randomHex, type Text } from '../../host/index.ts';
import { outerHolds } from '../../runtime/processes/environment.ts';
import { storeUrl, witnessIn } from '../../runtime/location/location.ts';
import { givenDescriptors, stillOpen } from '../run/descriptors.ts';
import { findProgram } from '../run/program.ts';
import { originalArgv } from '../run/run.ts';
import { usageError } from '../usage.ts';
import type { JobTerms } from './job.ts';
import type { CommandFlags } from './options.ts';

export type Program = Pick<
  JobTerms,
  'program' | 'argv' | 'env' | 'url' | 'witness' | 'outer' | 'ttlMs' | 'graceMs' | 'onLost' | 'given'
>;

/** Finds the command before anything is claimed. */
export function programOf(command: Command, words: readonly string[], flags: CommandFlags): Program {
  const [name, ...args] = words;
  if (name === undefined || name === '') throw usageError(command, 'the command is missing; write it after --');
  const { onLost, ttl, grace } = flags;
  const given = stillOpen(givenDescriptors());
  const argv: readonly [Text, ...Text[]] = originalArgv([name, ...args]);
  const { store } = command;
  const url = storeUrl(store);
  const { env } = process;
  return {
    program: findProgram(argv[0], env),
    ...{ argv, env, url, given, witness: witnessIn(store) },
    outer: outerHolds(env, url),
    ttlMs: ttl,
    graceMs: grace,
    onLost,
  };
}

export function workerName(kind: string, { holder }: CommandFlags): string {
  return holder ?? (process.env['SIGNALBOX_HOLDER'] || `${kind}:${hostname()}:${process.pid}:${randomHex(3)}`);
}
