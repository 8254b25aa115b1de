/**
 * A command as signalbox defines it: commander's, with a help that is one text, options by the kind of their value, work in the
 * store that it opens, and an answer for people or programs.
 */
import { Command as Commander, Option } from 'commander';
import type { Signalbox } from '../runtime/signalbox.ts';
import { durationArgument, limitArgument } from './arguments.ts';
import { print, printJson } from './output.ts';
import { isJson } from './usage.ts';

export { Argument, InvalidArgumentError, Option } from 'commander';

/** The store that a command works in. The signal aborts on Ctrl-C, and when the store is over. */
interface Opened {
  readonly box: Signalbox;
  readonly signal: AbortSignal;
}

/** `given`: the arguments, then the options. */
type Work<Given extends unknown[]> = (opened: Opened, ...given: Given) => unknown;

export class Command extends Commander {
  override createCommand(name?: string): Command {
    return new Command(name);
  }

  /** `text` has what the command does in its first line, and below that what its help shows after the options. */
  about(text: string): this {
    const [does = '', ...below] = text.split('\n');
    return this.description(does).addHelpText('after', below.join('\n'));
  }

  /** In the order of the help. Each function defines the subcommand of its name. */
  subcommands(all: Readonly<Record<string, (command: Command) => unknown>>): void {
    for (const [name, define] of Object.entries(all)) define(this.command(name));
  }

  /** `usual`: the default as a user would write it. */
  duration(name: string, purpose: string, usual?: string, parse = durationArgument): this {
    const option = new Option(`${name} <duration>`, purpose).argParser(parse);
    return this.addOption(usual === undefined ? option : option.default(parse(usual), usual));
  }

  /** The time of a lease, or the limit of a hold. */
  limit(name: string, purpose: string, usual?: string): this {
    return this.duration(name, purpose, usual, limitArgument);
  }

  /** An option that may be given several times. */
  list(flags: string, purpose: string): this {
    const none: readonly string[] = [];
    return this.option(flags, purpose, (value: string, before: readonly string[]) => [...before, value], none);
  }

  oneOf(flags: string, purpose: string, choices: readonly string[]): this {
    return this.addOption(new Option(flags, purpose).choices(choices));
  }

  /** Opens the store for `work`, and closes it in the end. Loads what does that only then, so that `--help` is fast. */
  inStore<Given extends unknown[]>(work: Work<Given>): this {
    return this.action(async (...given) => {
      const { withBox } = await import('./store.ts');
      await withBox(this, async (box, signal) => work({ box, signal }, ...(given as Given)));
    });
  }

  /** The same for commands that need the record of the witness; refuses if the witness is off. */
  inRecord<Given extends unknown[]>(work: Work<Given>): this {
    return this.action(async (...given) => {
      const { withWitness } = await import('./witness/with-witness.ts');
      await withWitness(this, async (box, signal) => work({ box, signal }, ...(given as Given)));
    });
  }

  get isJson(): boolean {
    return isJson(this);
  }

  /** The value of `--store`. */
  get store(): string | undefined {
    return this.optsWithGlobals<{ readonly store?: string }>().store;
  }

  /** Prints the result: `json` for a program that asks for it, else `line`. */
  answer(json: object, line: string | (() => string)): void {
    if (this.isJson) printJson(json);
    else print(typeof line === 'string' ? line : line());
  }
}
