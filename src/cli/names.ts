/** Names as they are printed are names as they are accepted: `lock/main` is the lock `main`. */
import { InvalidArgumentError } from 'commander';
import { plainName } from '../core/index.ts';
import { quoted } from './pipeline/words.ts';

/** Each kind in the command that is for it, and as others are called. */
const KINDS = {
  lock: { command: 'lock', other: 'semaphore' },
  semaphore: { command: 'sem', other: 'lock' },
} as const;

/** `subcommand`: given if locks and semaphores both have it. */
export const lockName = (text: string, subcommand?: string): string => nameOf('lock', text, subcommand);
export const semaphoreName = (text: string, subcommand?: string): string => nameOf('semaphore', text, subcommand);

/** `sem/api` names a semaphore everywhere; taken as the name of a lock, it would be a lock that nobody else uses. */
function nameOf(kind: keyof typeof KINDS, text: string, subcommand: string | undefined): string {
  const { other } = KINDS[kind];
  const name = plainName(other, text);
  if (name === text) return plainName(kind, text);
  const instead = subcommand === undefined ? '' : `: signalbox ${KINDS[other].command} ${subcommand} ${quoted(name)}`;
  throw new InvalidArgumentError(
    `expected a ${kind}, and this names a ${other}${instead}. A ${kind} of this very name is ${kind}/${text}`,
  );
}
