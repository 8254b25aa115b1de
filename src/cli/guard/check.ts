/** `signalbox guard check` and `guard explain`: says whether a guard passes now, in a word or as a tree. */
import type { Command } from '../command.ts';
import type { Explanation, Guard } from '../../core/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { look } from '../read-only.ts';
import { type Paint, paintFor, print, printJson, screen } from '../output.ts';
import { readGuard } from './guard-file.ts';
import { ownHolders } from './own-holders.ts';
import { adaptersFor, addGuardOptions, type GuardFlags } from './settings.ts';
import { exitCodeOf, treeLines, verdictJson, verdictLines } from './verdict.ts';

const CODES =
  'Exit code 0 if it passes, 1 if it does not, 69 if something could not be checked, 64 if it is malformed.';

export function check(command: Command): void {
  addGuardOptions(command)
    .about(`say whether a guard passes now, and why

Examples:
  signalbox guard check -e 'lockFree: main'
  signalbox guard check before-merge.yaml
  signalbox guard check -e '{"all":[{"branchClean":"main"},{"not":{"sessionAlive":"agent-3"}}]}'
  signalbox guard check - --json < guard.json | jq -r .verdict

The answer is about now. To act on it, use signalbox run --guard: it checks while it holds the lock. Inside a
run, what that run holds does not count. Commands run only if everything else passes.
${CODES}`)
    .action((file: string | undefined, flags: GuardFlags) => {
      const lines: Lines = ({ verdict }, paint) => verdictLines(verdict, paint);
      return show(command, file, flags, lines);
    });
}

export function explain(command: Command): void {
  addGuardOptions(command)
    .about(`show a guard as a tree, with the reason at every leaf

Examples:
  signalbox guard explain before-merge.yaml
  signalbox guard explain -e 'any: [{taskDone: build}, {fileExists: SKIP}]'

Commands run only if everything else passes.
${CODES}`)
    .action((file: string | undefined, flags: GuardFlags) => show(command, file, flags, treeLines));
}

type Lines = (explanation: Explanation, paint: Paint) => readonly string[];

async function show(command: Command, file: string | undefined, flags: GuardFlags, lines: Lines): Promise<void> {
  const guard = await readGuard(command, file, flags.expression, flags.env);
  const adapters = await adaptersFor(flags);
  const { found } = await look(command, async (box, signal, url) => {
    const own = await ownHolders(box, url, process.env);
    return box.explain(guard.condition, {}, { adapters, signal, own, commandsLast: true });
  });
  tellVerdict(command, guard, found, lines(found, paintFor(screen())));
}

/** Ends the command with the exit code of the verdict. */
export function tellVerdict(
  command: Command,
  guard: Guard,
  explanation: Explanation,
  lines: readonly string[],
  message = failureOf(guard, explanation),
): void {
  if (command.isJson) printJson(verdictJson(guard, explanation));
  else for (const line of lines) print(line);
  const exitCode = exitCodeOf(explanation.verdict);
  if (exitCode !== EXIT.ok) throw new CliExit(exitCode, command.isJson ? '' : message);
}

/** The guard's own message for its failure. */
function failureOf({ onFailure }: Guard, { verdict }: Explanation): string {
  return verdict.kind === 'failed' && typeof onFailure === 'object' && 'fail' in onFailure ? onFailure.fail : '';
}
