/** `signalbox pipeline validate`: checks runbooks and reports every mistake with its place. */
import type { Command } from '../command.ts';
import { runbookVariables, type Variable } from '../../core/index.ts';
import { MOST_TOLD } from '../../document/index.ts';
import { shown } from '../../failure.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, print, printable, printJson } from '../output.ts';
import { type LoadedRunbook, loadRunbook, toldOf } from './runbook-file.ts';

export function validate(command: Command): void {
  command
    .about(`check runbooks, and report every mistake with its place

Examples:
  signalbox pipeline validate release.yaml
  signalbox pipeline validate runbooks/*.yaml
  signalbox pipeline validate - < release.yaml
  signalbox pipeline validate release.mjs --json

It prints every mistake as FILE:LINE:COLUMN: what is wrong; what is expected. If there is none, it prints the
phases and the variables. Nothing of the runbook runs, but a
program is loaded. Exit code 64 if any file is wrong.`)
    .argument('<file...>', 'YAML or JSON, a program that exports defineRunbook(…), or - for stdin')
    .action(async (files: readonly string[]) => {
      let isWrong = false;
      for (const file of files) {
        const loaded = await loadRunbook(file);
        isWrong ||= !loaded.ok;
        if (command.isJson) printJson(jsonOf(loaded));
        else if (loaded.ok) for (const line of summaryOf(loaded)) print(printable(line));
        else complainOf(loaded);
      }
      if (isWrong) throw new CliExit(EXIT.usage, '');
    });
}

/** Prints mistakes to stderr in the form that compilers use, so that editors find the places. */
export function complainOf({ file, problems }: Extract<LoadedRunbook, { ok: false }>): void {
  for (const problem of problems.slice(0, MOST_TOLD)) {
    // A file that cannot be read has no place to go to.
    const says = problem.line === undefined ? 'signalbox: ' : '';
    complain(says + printable(toldOf(file, problem)));
  }
  const more = problems.length - MOST_TOLD;
  if (more > 0) complain(`${file}: and ${more} more`);
}

function summaryOf({ file, defined }: Extract<LoadedRunbook, { ok: true }>): readonly string[] {
  const { name, phases } = defined.runbook;
  const names = phases.map((phase) => phase.name).join(' → ');
  const found = runbookVariables(defined.runbook);
  const widest = Math.max(0, ...found.map(({ name }) => name.length));
  const variables = found.map((variable) => `${variable.name.padEnd(widest)}  ${toldVariable(variable)}`);
  return [
    `${file}: ${name} is fine: ${phases.length} ${phases.length === 1 ? 'phase' : 'phases'}: ${names}`,
    ...(variables.length === 0 ? [] : ['  variables:', ...variables.map((line) => `    ${line}`)]),
  ];
}

export function toldVariable({ name, value, isRequired }: Variable): string {
  if (value !== undefined) return `is ${shown(value)} unless --env gives another`;
  return isRequired
    ? `has to be given: --env ${name}=VALUE`
    : 'its commands read it; it comes from an earlier phase ($SIGNALBOX_OUTPUT), --env or the environment';
}

export function jsonOf(loaded: LoadedRunbook): object {
  if (!loaded.ok) return { file: loaded.file, ok: false, problems: loaded.problems };
  const { name, phases } = loaded.defined.runbook;
  const variables = runbookVariables(loaded.defined.runbook).map(({ name: one, value, isRequired }) => ({
    name: one,
    value: value ?? null,
    isRequired,
  }));
  return { file: loaded.file, ok: true, name, phases: phases.map((phase) => phase.name), variables };
}
