/** `signalbox pipeline resume`: continues a pipeline that no process drives. */
import { type Command, Option } from '../command.ts';
import { given } from '../arguments.ts';
import { directoryOf } from '../directory.ts';
import type { RunbookWithFunctions } from '../../runtime/pipelines/terms.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { askedBy, GRACE, pipelineId, questionArgument } from './arguments.ts';
import { drive } from './drive.ts';
import { loadRunbook } from './runbook-file.ts';
import { complainOf } from './validate.ts';

interface Flags {
  readonly rerun?: true;
  readonly skip?: true;
  readonly question?: number;
  readonly from?: string;
  readonly wait?: true;
  readonly runbook?: string;
  readonly dir?: string;
  readonly grace?: number;
  readonly holder?: string;
}

export function resume(command: Command): void {
  command
    .about(`continue a pipeline whose driver died, was stopped or left it blocked, or start a failed one again

Examples:
  signalbox pipeline resume release-7
  signalbox pipeline resume release-7 --rerun
  signalbox pipeline resume release-7 --from test   it has failed: begins again with the phase test
  signalbox pipeline resume release-7 --wait        stands by, in case its driver dies

A phase that had begun runs again by itself only if it is marked idempotent. Otherwise signalbox cannot know how far
it came: look, then use --rerun or --skip. Either answers the question that is open now (or the one that --question
names), never a later one: if it was answered meanwhile, nothing is done, and the exit code is 1.

--from runs the named phase and all after it again; what earlier phases passed on is kept. If the driver was
killed a moment ago, resume waits until its lease has ended, and says so.

Exit codes: 0 done · 1 failed, cancelled, or not found · 64 usage, or --from names no such phase · 69 store unreachable
            75 it waits for a person, or another process drives it · 76 its driver's hold was lost · 130 Ctrl-C`)
    .argument('<id>', 'of the pipeline', pipelineId)
    .addOption(new Option('--rerun', 'run the interrupted or failed phase again').conflicts(['skip', 'from']))
    .addOption(new Option('--skip', 'treat that phase as done').conflicts('from'))
    .option(
      '--question <number>',
      'the question that --rerun or --skip answers (default: the open one)',
      questionArgument,
    )
    .option('--from <phase>', 'start a failed pipeline again from this phase: the one that failed, or one before it')
    .option('--wait', 'stand by while another process drives it, and take over when that process is gone')
    .option('--runbook <file>', 'the program that defines the functions of its phases')
    .option('-C, --dir <dir>', 'where its commands run (default: where it was started)')
    .duration(...GRACE)
    .option('--holder <id>', 'who decides (default: $SIGNALBOX_HOLDER)')
    .action(async (id: string, flags: Flags) => {
      const decision = flags.rerun ? ('rerun' as const) : flags.skip ? ('skip' as const) : undefined;
      if (flags.question !== undefined && decision === undefined) {
        throw new CliExit(EXIT.usage, '--question needs an answer: add --rerun or --skip');
      }
      const functions = flags.runbook === undefined ? undefined : await functionsIn(flags.runbook);
      const cwd = flags.dir === undefined ? undefined : directoryOf('--dir', flags.dir);
      const by = askedBy(flags.holder);
      await drive(command, { id, hasDecided: decision !== undefined }, (box, driven) =>
        box.pipelines.resume(id, {
          ...given({ decision, question: flags.question, from: flags.from, functions, cwd, graceMs: flags.grace }),
          ...driven,
          by,
          standsBy: flags.wait === true,
        }),
      );
    });
}

async function functionsIn(file: string): Promise<RunbookWithFunctions['functions']> {
  const loaded = await loadRunbook(file);
  if (loaded.ok) return loaded.defined.functions;
  complainOf(loaded);
  throw new CliExit(EXIT.usage, '');
}
