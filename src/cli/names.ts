/** Names as they are printed are names as they are accepted: `lock/main` is the lock `main`. */
import { InvalidArgumentError } from 'commander';
import { plainName, wantedLock, wantedSlots } from '../core/index.ts';
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
  if (name === text) {
    refuseWanted(kind, text, subcommand);
    return plainName(kind, text);
  }
  const instead = subcommand === undefined ? '' : `: signalbox ${KINDS[other].command} ${subcommand} ${quoted(name)}`;
  throw new InvalidArgumentError(
    `expected a ${kind}, and this names a ${other}${instead}. A ${kind} that is really called so is ${quoted(`${kind}/${text}`)}`,
  );
}

/**
 * `docs:shared` and `builds=2/8` are how `run` names what it wants. Taken as names, they would be resources that nobody else uses.
 * Only where a resource begins to exist: a lock that is really called so can be shown, released and so on as it is listed.
 */
function refuseWanted(kind: keyof typeof KINDS, text: string, subcommand: string | undefined): void {
  const options =
    plainName(kind, text) === text && subcommand !== undefined ? optionsFor(kind, text)?.[subcommand] : undefined;
  if (options === undefined) return;
  const instead = `signalbox ${KINDS[kind].command} ${subcommand} ${options}`;
  throw new InvalidArgumentError(
    `only run takes it in this form; here: ${instead}. A ${kind} that is really called so is ${quoted(`${kind}/${text}`)}`,
  );
}

/** The name and the options that say the same, for each subcommand; undefined if the text is no more than a name. */
function optionsFor(kind: keyof typeof KINDS, text: string): Readonly<Record<string, string>> | undefined {
  if (kind === 'lock') {
    const [, name = '', mode] = /^(.+):(shared|exclusive)$/s.exec(text) ?? [];
    if (mode === undefined || !wantedLock(text).ok) return undefined;
    return { acquire: `${quoted(name)}${mode === 'shared' ? ' --shared' : ''}`, configure: quoted(name) };
  }
  const wanted = /=\d+(\/\d+)?$/.test(text) ? wantedSlots(text) : undefined;
  if (wanted?.ok !== true) return undefined;
  const { semaphore, weight, capacity } = wanted.want;
  const slots = capacity === undefined ? '' : ` --capacity ${capacity}`;
  return {
    acquire: `${quoted(semaphore)}${weight === undefined ? '' : ` --weight ${weight}`}${slots}`,
    configure: `${quoted(semaphore)}${slots}`,
  };
}
