/** `signalbox pipeline validate`: checks runbooks and reports every mistake with its place. */
import type { Command } from 'commander';
import { MOST_TOLD } from '../../document/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, print, printable, printJson } from '../output.ts';
import { isJson } from '../store.ts';
import { type LoadedRunbook, loadRunbook, toldOf } from './runbook-file.ts';

export function addValidate(command: Command): void {
  command
    .description('check runbooks, and report every mistake with its place')
    .argument('<file...>', 'YAML or JSON, a program that exports defineRunbook(…), or - for stdin')
    .addHelpText(
      'after',
      `
Examples:
  signalbox pipeline validate release.yaml
  signalbox pipeline validate runbooks/*.yaml
  signalbox pipeline validate - < release.yaml
  signalbox pipeline validate release.mjs --json

It prints every mistake as FILE:LINE:COLUMN: what is wrong; what is accepted. Nothing of the runbook runs, but a
program is loaded. Exit code 64 if any file is wrong.`,
    )
    .action(async (files: readonly string[]) => {
      let isWrong = false;
      for (const file of files) {
        const loaded = await loadRunbook(file);
        isWrong ||= !loaded.ok;
        if (isJson(command)) printJson(jsonOf(loaded));
        else if (loaded.ok) print(summaryOf(loaded));
        else complainOf(loaded);
      }
      if (isWrong) throw new CliExit(EXIT.usage, '');
    });
}

/** Prints mistakes to stderr in the form that compilers use, so that editors find the places. */
export function complainOf({ file, problems }: Extract<LoadedRunbook, { ok: false }>): void {
  for (const problem of problems.slice(0, MOST_TOLD)) complain(printable(toldOf(file, problem)));
  const more = problems.length - MOST_TOLD;
  if (more > 0) complain(`${file}: and ${more} more`);
}

function summaryOf({ file, defined }: Extract<LoadedRunbook, { ok: true }>): string {
  const { name, phases } = defined.runbook;
  const names = phases.map((phase) => phase.name).join(' → ');
  return printable(`${file}: ${name} is fine: ${phases.length} ${phases.length === 1 ? 'phase' : 'phases'}: ${names}`);
}

export function jsonOf(loaded: LoadedRunbook): object {
  if (!loaded.ok) return { file: loaded.file, ok: false, problems: loaded.problems };
  const { name, phases } = loaded.defined.runbook;
  return { file: loaded.file, ok: true, name, phases: phases.map((phase) => phase.name) };
}
