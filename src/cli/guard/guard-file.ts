/** Reads a guard from a YAML or JSON file, from stdin, or from the command line. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from '../command.ts';
import { conditionWithVariables, type Guard, parseGuard } from '../../core/index.ts';
import { placed, readDocument, toldAll } from '../../document/index.ts';
import { readBytes } from '../document-file.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { usageError } from '../usage.ts';
import { printable } from '../output.ts';
import { cut } from '../table.ts';
import { quoted } from '../pipeline/words.ts';

const LIKE_A_CONDITION = /^\s*[{[]|:(\s|$)/;

/** Of a condition, in place of a name. */
const LONGEST_NAME = 60;
/** In messages, in place of the name of a file. */
const THE_EXPRESSION = 'the guard';
/** The name of a guard that has none. */
export const UNNAMED = 'guard';

export async function readGuard(
  command: Command,
  named: string | undefined,
  expression: string | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<Guard> {
  if ((named === undefined) === (expression === undefined)) {
    const what = named === undefined ? 'the guard is missing' : 'FILE and -e name two guards';
    throw usageError(command, `${what}; expected FILE, - for stdin, or -e 'lockFree: main'`);
  }
  const file = named === undefined ? THE_EXPRESSION : named === '-' ? '<stdin>' : named;
  const text = named === undefined ? (expression ?? '') : await readBytes(named);
  if (named !== undefined && typeof text === 'string') {
    const hint = LIKE_A_CONDITION.test(named) ? [`a condition goes after -e: -e ${quoted(named)}`] : [];
    throw wrong([`${file}: ${text}`, ...hint]);
  }
  const read = await readDocument(text, file);
  if (!read.ok) throw wrong(toldAll(file, read.problems));
  const parsed = parseGuard(read.document.value, UNNAMED);
  if (!parsed.ok) throw wrong(toldAll(file, placed(read.document, parsed.problems)));
  const filled = conditionWithVariables(parsed.guard.condition, env);
  if (filled.ok) return { ...parsed.guard, condition: filled.condition };
  // Taken literally, the name would match nothing, and a guard that forbids something would pass.
  const names = filled.unknown.map((name) => `\${${name}}`).join(', ');
  throw wrong([`${file}: ${names} has no value: set it with --env NAME=VALUE, or write $\${ for a plain \${`]);
}

/** `run --guard`: a file if there is one, else a condition if it looks like one. Messages name it by what was typed. */
export function readNamedGuard(
  command: Command,
  text: string,
  env: Readonly<Record<string, string>> | undefined,
): Promise<Guard> {
  const isCondition = LIKE_A_CONDITION.test(text) && !existsSync(text);
  const named = (guard: Guard): Guard => {
    if (guard.id !== UNNAMED) return guard;
    return { ...guard, id: isCondition ? cut(printable(text.trim()), LONGEST_NAME) : basename(text) };
  };
  return readGuard(command, isCondition ? undefined : text, isCondition ? text : undefined, env).then(named);
}

/** With the place in a file as compilers write it, so that editors find it. An expression of one line needs no place. */
function wrong(told: readonly string[]): CliExit {
  const bare = new RegExp(`^${THE_EXPRESSION}:1:\\d+: `);
  return new CliExit(EXIT.usage, told.map((line) => line.replace(bare, '')).join('\n  '));
}
