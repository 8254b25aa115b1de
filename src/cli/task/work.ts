/** `signalbox task work -- CMD`: a standing worker, which runs a command for one task after another. */
import { type Command, InvalidArgumentError } from '../command.ts';
import { numberArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { addCommandOptions, aroundDashes, type CommandFlags } from './options.ts';

export interface WorkFlags extends CommandFlags {
  readonly jobs: number;
  readonly exitWhenIdle?: true;
}

/** Each job has a command of its own; with many more the worker would no longer renew its claims in time. */
const MOST_JOBS = 256;

const EXAMPLES = `
Examples:
  signalbox task work -- ./build.sh                          one task after another, until Ctrl-C
  signalbox task work --jobs 4 --capability gpu -- ./train.sh
  signalbox task work --exit-when-idle -- ./build.sh         ends when no task is left for this worker

Each task runs as with task run: the command gets its data on stdin and in $SIGNALBOX_TASK_FILE, exit code 0 completes
it, and any other exit code fails the attempt. The task is tried again while it has retries (task publish --retries 3
--backoff 5s). If its workers die three times, the task fails; the workers that are left say so.

After the first Ctrl-C the worker finishes the tasks that it has; after the second it stops them and gives them back.

With --exit-when-idle the worker ends when it can claim nothing, now or after a pause before a retry. It waits for
the tasks of a worker that died on this machine until their claims end. It does not wait for tasks that other workers
run, here or on other machines, and says on stderr how many there are.

Exit codes: 0 idle, or done after the first Ctrl-C · 1 idle, and a task that it ran failed for good
            126 not executable · 127 not found · 130 after the second Ctrl-C`;

export function work(command: Command): void {
  addCommandOptions(command.description('run a command for one task after another, until Ctrl-C'))
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .option('--jobs <number>', `how many tasks at once, from 1 to ${MOST_JOBS}`, jobsArgument, 1)
    .option('--exit-when-idle', 'end when no task is left for this worker; exit code 1 if one failed')
    .addHelpText('after', EXAMPLES)
    .action(async (words: string[], flags: WorkFlags) => {
      const { ids, command: argv } = aroundDashes(words);
      if (ids.length > 0) throw new CliExit(EXIT.usage, 'write the command after --: signalbox task work -- COMMAND');
      const { workOnTasks } = await import('./standing-worker.ts');
      await workOnTasks(command, argv, flags);
    });
}

function jobsArgument(text: string): number {
  const jobs = numberArgument(text);
  if (jobs < 1 || jobs > MOST_JOBS) throw new InvalidArgumentError(`expected a whole number from 1 to ${MOST_JOBS}`);
  return jobs;
}
