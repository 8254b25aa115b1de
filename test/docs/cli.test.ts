// The reference of the command line names every command and every option that there is.

import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit-code.ts';
import { wholeProgram } from '../../src/cli/program.ts';
import { root } from '../house/sources.ts';

const page = readFileSync(join(root, 'docs', 'cli.md'), 'utf8');

/** Of `run` only the way to its own help. */
function documented(command: Command): readonly Command[] {
  const inner = command.commands.filter((one) => one.name() !== 'run');
  return [command, ...inner.flatMap(documented)];
}

describe('docs/cli.md', async () => {
  const commands = documented(await wholeProgram());

  it('names every command', () => {
    const names = commands.slice(1).map((command) => command.name());
    expect(names.filter((name) => !new RegExp(`\`[^\`]*\\b${name}\\b`).test(page))).toEqual([]);
  });

  it('names every option', () => {
    const options = commands.flatMap((command) => command.options.map(({ long }) => long ?? ''));
    expect(options.filter((option) => !page.includes(`${option}`))).toEqual([]);
  });

  it('lists every exit code', () => {
    expect(Object.values(EXIT).filter((code) => !page.includes(`\n| ${code} |`))).toEqual([]);
  });
});
