/** `signalbox task run [ID] -- CMD`: claims one task, runs a command for it, and ends the task as the command ended. */
import type { Command } from '../command.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { taskId } from './arguments.ts';
import { addCommandOptions, aroundDashes, type CommandFlags } from './options.ts';

export interface RunFlags extends CommandFlags {
  readonly wait?: number;
}

const EXAMPLES = `
Examples:
  signalbox task run build-7 -- make image                  this task
  signalbox task run --capability gpu -- ./train.sh         the next one that this worker can do
  signalbox task run -- sh -c 'jq -r .commit "$SIGNALBOX_TASK_FILE" | xargs git checkout'

signalbox renews the claim while the command runs. The command gets the data of the task on stdin and in the file
$SIGNALBOX_TASK_FILE, its id in $SIGNALBOX_TASK, and the number of the attempt, from 1, in $SIGNALBOX_TASK_ATTEMPT.

If the command exits with 0, the task is complete, and its result is what the command printed: JSON as it is, other
text as {"output": …}. With any other exit code the attempt has failed: the task is tried again while it has retries,
and fails after the last. Ctrl-C gives the task back. If the claim is lost, signalbox stops the command.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            1 nothing to claim · 64 usage · 69 store unreachable · 75 taken or blocked · 76 lost while running
            77 the store refuses you`;

export function run(command: Command): void {
  addCommandOptions(command.description('claim a task, run a command for it, and complete or fail it'))
    .usage('[options] [ID] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'the id of a task (default: the next one), then -- and what to run')
    .duration('--wait', 'wait at most this long for a task (default: do not wait)')
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
