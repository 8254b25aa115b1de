/** A mistake in the call: what was wrong, what is accepted, and where to read more. */
import type { Command, CommanderError } from 'commander';
import { CliExit, EXIT } from './exit-code.ts';
import { withoutPassword } from '../store/index.ts';
import { pathOf } from './option-values.ts';

export function usageProblem(command: Command, error: CommanderError): CliExit {
  const path = pathOf(command);
  const help = `see: ${path} --help`;
  // No command at all was named: the help has been printed.
  if (error.code === 'commander.help') return new CliExit(EXIT.usage, '');
  const [what = '', ...hints] = withoutSecrets(error.message.replace(/^error: /, '')).split('\n');
  const hint = hints.map((line) => ` ${line.replace('(Did', '(did')}`).join('');
  return new CliExit(EXIT.usage, [what + hint, acceptedBy(command, error.code), help].join('\n  '));
}

/** What is no option has no value that anybody needs to see; and what is no command may be a URL. */
function withoutSecrets(message: string): string {
  return message.replace(/'([^]*)'/, (_, argument: string) => {
    const option = /^(--[^=]+)=/.exec(argument)?.[1];
    return `'${option ?? withoutPassword(argument)}'`;
  });
}

function acceptedBy(command: Command, code: string): string {
  if (code === 'commander.unknownCommand') {
    return `accepted: ${command.commands.map((inner) => inner.name()).join(', ')}`;
  }
  if (code === 'commander.unknownOption') {
    const options = command.createHelp().visibleOptions(command);
    return `accepted: ${options.map(({ long, short }) => long ?? short).join(', ')}`;
  }
  return `usage: ${pathOf(command)} ${command.usage()}`;
}
