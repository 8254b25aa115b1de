/** `signalbox run`: acquire all or nothing, run a command, release. */
import type { Command } from 'commander';
import { CliExit, EXIT } from './exit-code.ts';

export function define(command: Command): void {
  command
    .argument('<command...>', 'what to run, with its arguments')
    .passThroughOptions()
    .addHelpText('after', '\nExamples:\n  signalbox run --lock main-branch -- git push')
    .action(() => {
      throw new CliExit(EXIT.internal, 'run is not there yet');
    });
}
