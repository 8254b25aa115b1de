/** `signalbox task run [ID] -- CMD`: claims one task, runs a command for it, and ends the task as the command ended. */
import type { Command } from 'commander';
import { durationArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { taskId } from './arguments.ts';
import { addCommandOptions, aroundDashes, type CommandFlags } from './options.ts';

export interface RunFlags extends CommandFlags {
  readonly wait?: number;
}

const EXAMPLES = `
Examples:
  signalbox task run build-7 -- make image                  this task
  signalbox task run --capability gpu -- ./train.sh         the best one that this worker can do
  signalbox task run -- sh -c 'jq -r .commit "$SIGNALBOX_TASK_FILE" | xargs git checkout'

The claim is renewed for as long as the command runs. The command reads the data of the task on stdin,
and finds it in the file $SIGNALBOX_TASK_FILE; $SIGNALBOX_TASK is its id, $SIGNALBOX_TASK_ATTEMPT
counts from 1. Exit code 0 completes the task, and what the command printed is its result: JSON as it
is, other text as {"output": …}. Any other exit code fails it, or has it tried again while it has
retries. Ctrl-C gives it back. If the claim is lost, the command is ended.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            1 nothing to claim · 64 usage · 69 store unreachable · 75 taken or blocked · 76 lost while running`;

export function addTaskRun(command: Command): void {
  addCommandOptions(command.description('claim a task, run a command for it, and complete or fail it'))
    .usage('[options] [ID] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'the id of the task, if it matters which, then -- and what to run')
    .option('--wait <duration>', 'wait at most this long for a task (default: do not wait)', durationArgument)
    .addHelpText('after', EXAMPLES)
    .action(async (words: string[], flags: RunFlags) => {
      const { ids, command: argv } = aroundDashes(words);
      if (ids.length > 1 || argv.length === 0)
        throw new CliExit(EXIT.usage, 'write the command after --: signalbox task run [ID] -- COMMAND [ARGUMENT…]');
      const { runTask } = await import('./run-task.ts');
      const { endLike } = await import('../run/ended.ts');
      endLike(await runTask(command, ids[0] === undefined ? undefined : taskId(ids[0]), argv, flags));
    });
}
