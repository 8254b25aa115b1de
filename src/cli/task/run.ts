/** `signalbox task run [ID] -- CMD`: claims one task, runs a command for it, and ends the task as the command ended. */
import type { Command } from 'commander';
import { spoken } from '../../core/index.ts';
import { NotStarted } from '../../host/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { EndOutcome, TaskClaim } from '../../runtime/tasks/claim.ts';
import { durationArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, printable, printJson, printText, tell } from '../output.ts';
import type { RunEnded } from '../run/ended.ts';
import { endLike } from '../run/ended.ts';
import { NOT_STARTED, opened, unlessLeaving } from '../run/run.ts';
import { Signals } from '../run/signals.ts';
import { leaveStreamsAlone } from '../run/streams.ts';
import { hasTerminal } from '../run/terminal.ts';
import { Voice } from '../run/voice.ts';
import { isJson } from '../store.ts';
import { taskId } from './arguments.ts';
import { claimed } from './claim.ts';
import { addCommandOptions, aroundDashes, type CommandFlags, type Program, programOf, workerName } from './command.ts';
import { type JobEnd, runJob } from './job.ts';

interface Flags extends CommandFlags {
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
    .action(async (words: string[], flags: Flags) => {
      const { ids, command: argv } = aroundDashes(words);
      if (ids.length > 1 || argv.length === 0)
        throw new CliExit(EXIT.usage, 'write the command after --: signalbox task run [ID] -- COMMAND [ARGUMENT…]');
      const program = programOf(command, argv, flags);
      endLike(await run(command, ids[0] === undefined ? undefined : taskId(ids[0]), program, flags));
    });
}

async function run(command: Command, id: string | undefined, program: Program, flags: Flags): Promise<RunEnded> {
  leaveStreamsAlone();
  const sharesTerminal = hasTerminal();
  const signals = new Signals(sharesTerminal);
  const voice = new Voice('on-a-terminal');
  // A store's timers and watches do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const box = await unlessLeaving(signals, opened(program.url, program.ttlMs));
    try {
      const claim = await claimOf(box, id, flags, signals);
      const onOutput = isJson(command) ? (): void => undefined : printText;
      const end = await runJob(box, claim, { ...program, leads: !sharesTerminal, onOutput }, signals, voice);
      return told(command, claim, end);
    } finally {
      await box.close();
    }
  } catch (error) {
    if (error instanceof NotStarted) throw new CliExit(NOT_STARTED, error.message);
    if (signals.left === undefined) throw error;
    return { signal: signals.left, interrupted: sharesTerminal && signals.left === 'SIGINT' };
  } finally {
    clearInterval(alive);
    voice.done();
    signals.stop();
  }
}

function claimOf(box: Signalbox, id: string | undefined, flags: Flags, signals: Signals): Promise<TaskClaim> {
  const { capability: capabilities, wait: waitMs = 0 } = flags;
  const options = { holder: workerName('run', flags), capabilities, waitMs, signal: signals.leaving };
  if (waitMs > 0) tell(`signalbox: waiting for ${id === undefined ? 'a task' : `task/${id}`}`);
  return claimed(id === undefined ? box.tasks.claimNext(options) : box.tasks.claim(id, options));
}

function told(command: Command, { id }: TaskClaim, { ended, outcome, error }: JobEnd): RunEnded {
  if (error !== undefined) throw error;
  if (outcome === undefined) throw new CliExit(EXIT.lost, `task/${id}: the claim was lost while the command ran`);
  const { kind, ...details } = outcome;
  if (isJson(command)) printJson({ task: id, outcome: kind, ...details });
  else complain(`signalbox: ${printable(outcomeTold(id, outcome))}`);
  return ended;
}

export function outcomeTold(id: string, outcome: EndOutcome): string {
  switch (outcome.kind) {
    case 'completed':
      return `task/${id}: complete`;
    case 'released':
      return `task/${id}: interrupted, so it was given back`;
    case 'failed':
      return `task/${id}: failed (attempt ${outcome.attempts})`;
    case 'retried': {
      const { attempts, retriesLeft, backoffMs } = outcome;
      const when = backoffMs === 0 ? 'now' : `in ${spoken(backoffMs)}`;
      const left = retriesLeft === 1 ? '1 retry is left' : `${retriesLeft} retries are left`;
      return `task/${id}: attempt ${attempts} failed; ${left}, the next one can begin ${when}`;
    }
    case 'not-owner':
      return `task/${id}: the claim was lost`;
  }
}
