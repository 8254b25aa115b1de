/** A command as signalbox defines it: commander's, with a help that is one text, and an answer for people or programs. */
import { Command as Commander } from 'commander';
import { print, printJson } from './output.ts';
import { isJson } from './usage.ts';

export { Argument, InvalidArgumentError, Option } from 'commander';

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
