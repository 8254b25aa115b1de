/** `signalbox pipeline run`: starts a pipeline and drives it. */
import type { Command } from '../command.ts';
import { runbookVariables } from '../../core/index.ts';
import { given } from '../arguments.ts';
import { directoryOf } from '../directory.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printJson } from '../output.ts';
import { askedBy, GRACE, pipelineId, variable, type Variables } from './arguments.ts';
import { drive } from './drive.ts';
import { type LoadedRunbook, loadRunbook } from './runbook-file.ts';
import { complainOf, jsonOf, toldVariable } from './validate.ts';

interface Flags {
  readonly id?: string;
  readonly env?: Variables;
  readonly poll?: number;
  readonly commandTimeout?: number;
  readonly wait: boolean;
  readonly issues?: string;
  readonly dir?: string;
  readonly grace?: number;
  readonly holder?: string;
}

export function run(command: Command): void {
  command
    .about(`start a pipeline and drive it to its end

Examples:
  signalbox pipeline run release.yaml
  signalbox pipeline run release.yaml --id release-7 --env BRANCH=feature --env TARGET=staging
  signalbox pipeline run agent.yaml --id ada -C ../ada --issues github:acme/app
  signalbox pipeline run nightly.yaml --no-wait || test $? -eq 75
  signalbox pipeline run release.mjs --json | jq -r 'select(.type == "output") | .text'

On a terminal it shows the phases as they run; elsewhere it prints one line per change, and the commands' output.
Ctrl-C stops the running command and leaves the pipeline to be resumed; a second Ctrl-C kills the command.

Exit codes: 0 done · 1 failed, cancelled, or the id is taken · 64 a wrong runbook or usage
            69 store unreachable · 75 blocked, with --no-wait · 76 its driver's hold was lost · 130 Ctrl-C`)
    .argument('<file>', 'the runbook: YAML or JSON, a program that exports defineRunbook(…), or - for stdin')
    .option('--id <id>', 'of the pipeline (default: the name of the runbook and the time)', pipelineId)
    .option('-e, --env <name=value>', 'a variable for its commands, guards and holds (repeatable)', variable)
    .duration('--poll', 'how often to check files, branches, issues and commands (default: 2s)')
    .duration('--command-timeout', "time limit of a guard's command (default: 60s)")
    .option('--no-wait', 'exit with 75 when it is blocked, instead of waiting')
    .option('--issues <tracker>', 'the issue tracker of its guards: a JSON file, or github:OWNER/NAME')
    .option('-C, --dir <dir>', 'where its commands run (default: here)')
    .duration(...GRACE)
    .option('--holder <id>', 'who starts it (default: $SIGNALBOX_HOLDER)')
    .action(async (file: string, flags: Flags) => {
      const { id, env, poll: pollMs, commandTimeout: commandTimeoutMs, issues, dir } = flags;
      const cwd = dir === undefined ? undefined : directoryOf('--dir', dir);
      const loaded = withValues(await loadRunbook(file), env);
      if (!loaded.ok) {
        if (command.isJson) printJson(jsonOf(loaded));
        else complainOf(loaded);
        throw new CliExit(EXIT.usage, '');
      }
      const by = askedBy(flags.holder);
      await drive(command, { id: id ?? loaded.defined.runbook.name }, (box, driven) =>
        box.pipelines.run(loaded.defined, {
          ...given({ id, env, pollMs, commandTimeoutMs, issues, cwd, graceMs: flags.grace }),
          ...driven,
          by,
          waits: flags.wait,
        }),
      );
    });
}

/** A variable without a value is a mistake in the call. The error reads as that of `validate`. */
function withValues(loaded: LoadedRunbook, env: Variables = {}): LoadedRunbook {
  if (!loaded.ok) return loaded;
  const missing = runbookVariables(loaded.defined.runbook).filter(
    ({ name, isRequired }) => isRequired && !Object.hasOwn(env, name),
  );
  if (missing.length === 0) return loaded;
  const problems = missing.map((variable) => ({ message: `${variable.name} ${toldVariable(variable)}` }));
  return { ok: false, file: loaded.file, problems };
}
