/** What a phase passes on to later phases: `NAME=VALUE` lines that it wrote to `$SIGNALBOX_OUTPUT`. */
import { shown } from '../shown.ts';

/** The limit for all phases together: outputs are part of the pipeline's record. */
export const LARGEST_OUTPUTS_BYTES = 65_536;

export type ParsedOutputs =
  | { readonly ok: true; readonly outputs: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly problem: string };

export function parseOutputs(text: string): ParsedOutputs {
  const outputs = new Map<string, string>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    const name = line.slice(0, Math.max(0, equals));
    const problem = equals < 0 ? `${shown(line)} has no =` : outputNameProblem(name);
    if (problem !== undefined) return refused(`line ${at + 1} of its outputs: ${problem}; expected NAME=VALUE`);
    outputs.set(name, line.slice(equals + 1));
  }
  return { ok: true, outputs: Object.fromEntries(outputs) };
}

/** What is wrong with a name; outputs become environment variables of the phases that follow. */
export function outputNameProblem(name: string): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return `${shown(name)} is no name of a variable`;
  if (name.startsWith('SIGNALBOX_')) return `${name} is signalbox's own: names must not begin with SIGNALBOX_`;
  return undefined;
}

export function withOutputs(
  before: Readonly<Record<string, string>>,
  outputs: Readonly<Record<string, string>>,
): ParsedOutputs {
  for (const [name, value] of Object.entries(outputs)) {
    const problem = outputNameProblem(name) ?? (typeof value === 'string' ? undefined : `${name} is no text`);
    if (problem !== undefined) return refused(`its outputs: ${problem}`);
    if (value.includes('\0')) return refused(`its outputs: the value of ${name} has a NUL in it`);
  }
  const all = { ...before, ...outputs };
  const size = Object.entries(all).reduce((sum, [name, value]) => sum + name.length + 3 * value.length, 0);
  // One unit of a string takes three bytes at most.
  if (size <= LARGEST_OUTPUTS_BYTES) return { ok: true, outputs: all };
  return refused(
    `its outputs are too large: what all phases pass on must stay below ${Math.floor(LARGEST_OUTPUTS_BYTES / 3)} letters`,
  );
}

function refused(problem: string): ParsedOutputs {
  return { ok: false, problem };
}
