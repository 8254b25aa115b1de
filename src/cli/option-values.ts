/** Refuses mistakes that commander would accept: an option that swallows the next one, and two that contradict. */
import type { Command, Option } from 'commander';
import { shown } from '../failure.ts';
import { CliExit, EXIT } from './exit-code.ts';

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
      if (isOption(value)) throw needsValue(command, option, value);
      return parse === undefined ? value : parse(value, before);
    });
  }
}

function needsValue(command: Command, { long, short, flags }: Option, value: string): CliExit {
  const what = /<(\w+)>/.exec(flags)?.[1] ?? 'value';
  const article = /^[aeio]/.test(what) ? 'an' : 'a';
  const why = `but ${shown(value)} follows: was a variable empty?`;
  return new CliExit(EXIT.usage, `${long ?? short} needs ${article} ${what}, ${why}\n  see: ${pathOf(command)} --help`);
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
        if (given.size < 2) return;
        throw new CliExit(
          EXIT.usage,
          `${positive} and ${long} contradict each other\n  see: ${pathOf(command)} --help`,
        );
      });
    }
  }
}

/** `signalbox lock acquire`. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
