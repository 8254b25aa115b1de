/** Refuses wrong values, and mistakes that commander would accept: an option that swallows the next one, and two that contradict. */
import type { Argument, Command, Option } from 'commander';
import { shown } from '../failure.ts';
import { contradiction, longIn, usageError, valueIn, wrongValue } from './usage.ts';

/** commander would report a wrong value in words of its own. */
export function refuseWrongValues(command: Command): void {
  for (const option of command.options) refuseInOurWords(command, option, longIn(option.flags));
  for (const argument of command.registeredArguments) {
    refuseInOurWords(command, argument, `<${argument.name()}>`);
  }
}

function refuseInOurWords(command: Command, of: Option | Argument, subject: string): void {
  const parse = of.parseArg;
  if (parse === undefined) return;
  of.argParser((value: string, before: unknown) => {
    try {
      return parse(value, before as never);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'commander.invalidArgument') throw error;
      const expected = of.argChoices === undefined ? (error as Error).message : `expected ${of.argChoices.join(', ')}`;
      throw wrongValue(command, subject, value, expected);
    }
  });
}

/**
 * `--lock $EMPTY -- make` would take a lock called `--`, and run. So the value of an option is never `--`, nor another
 * option of the same command.
 */
export function refuseSwallowedOptions(command: Command): void {
  const flags = new Set(
    command.options.flatMap(({ long, short }) => [long, short].filter((flag) => flag !== undefined)),
  );
  const isOption = (value: string): boolean => value === '--' || flags.has(value.replace(/^(--[^=]+)=.*$/s, '$1'));
  for (const option of command.options.filter(({ required }) => required)) {
    const parse = option.parseArg;
    option.argParser((value: string, before: unknown) => {
      if (isOption(value)) {
        const why = `but ${shown(value)} follows: was a variable empty?`;
        throw usageError(command, `${longIn(option.flags)} needs ${valueIn(option.flags)}, ${why}`);
      }
      return parse === undefined ? value : parse(value, before);
    });
  }
}

/** `--wait 5m --no-wait`: without this check the last one would win silently. */
export function refuseContradictions(command: Command): void {
  for (const { long = '', negate } of command.options) {
    const positive = long.replace(/^--no-/, '--');
    if (!negate || !command.options.some((option) => option.long === positive)) continue;
    const given = new Set<string>();
    for (const flag of [positive, long]) {
      command.on(`option:${flag.slice(2)}`, () => {
        given.add(flag);
        if (given.size > 1) throw contradiction(command, positive, long);
      });
    }
  }
}
