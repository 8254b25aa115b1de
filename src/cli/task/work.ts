/** `signalbox task work -- CMD`: a standing worker, which runs a command for one task after another. */
import type { Command } from 'commander';
import { CliExit, EXIT } from '../exit-code.ts';
import { countArgument } from '../events.ts';
import { addCommandOptions, aroundDashes, type CommandFlags } from './options.ts';

export interface WorkFlags extends CommandFlags {
  readonly jobs: number;
  readonly exitWhenIdle?: true;
}

const EXAMPLES = `
Examples:
  signalbox task work -- ./build.sh                          one task after another, until Ctrl-C
  signalbox task work --jobs 4 --capability gpu -- ./train.sh
  signalbox task work --exit-when-idle -- ./build.sh         ends when no task is left that it could do

For each task the command runs as with task run: data on stdin and in $SIGNALBOX_TASK_FILE, exit code 0
completes the task, any other one fails it. Failed tasks are tried again while they have retries
(task publish --retries N --backoff 5s). The first Ctrl-C finishes what runs; the second ends it and
gives the tasks back.

Exit codes: 0 idle, or done after the first Ctrl-C · 130 after the second · 126 not executable · 127 not found`;

export function addTaskWork(command: Command): void {
  addCommandOptions(command.description('run a command for one task after another, until Ctrl-C'))
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .option('--jobs <number>', 'how many tasks at once', countArgument, 1)
    .option('--exit-when-idle', 'end when there is no task left that this worker could do')
    .addHelpText('after', EXAMPLES)
    .action(async (words: string[], flags: WorkFlags) => {
      const { ids, command: argv } = aroundDashes(words);
      if (ids.length > 0) throw new CliExit(EXIT.usage, 'write the command after --: signalbox task work -- COMMAND');
      const { workOnTasks } = await import('./crew.ts');
      await workOnTasks(command, argv, flags);
    });
}
