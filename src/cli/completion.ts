/** `signalbox completion SHELL`: prints a completion script, generated from the commands themselves. */
import { Argument, type Command } from './command.ts';
import { bashCompletion } from './completion/bash.ts';
import { fishCompletion } from './completion/fish.ts';
import { nodesOf } from './completion/model.ts';
import { zshCompletion } from './completion/zsh.ts';
import { wholeProgram } from './program.ts';

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

const EXAMPLES = `
Examples:
  source <(signalbox completion bash)                    now; put it into ~/.bashrc to keep it
  source <(signalbox completion zsh)                     in ~/.zshrc, after compinit
  signalbox completion fish > ~/.config/fish/completions/signalbox.fish

It also completes the names of locks and semaphores, from the store that the command would use.`;

export function define(command: Command): void {
  command
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(Object.keys(SHELLS)))
    .addHelpText('after', EXAMPLES)
    .action(async (shell: keyof typeof SHELLS) => {
      const script = SHELLS[shell](nodesOf(await wholeProgram()));
      command.answer({ shell, script }, script.trimEnd());
    });
}
