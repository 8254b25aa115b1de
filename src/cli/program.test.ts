import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { fitted } from './help-width.ts';
import { helpAsOption, wholeProgram } from './program.ts';

function all(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(all)];
}

function helpOf(command: Command, width = 100): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += fitted(part, width)), getOutHelpWidth: () => width });
  command.outputHelp();
  return text;
}

describe('every command', async () => {
  const commands = all(await wholeProgram());
  const named = commands.map((command) => [command.name(), command] as const);

  it.each(named)('has help with examples and the options that are everywhere: %s', (_, command) => {
    const help = helpOf(command);
    expect(help).toMatch(/^Usage: signalbox/);
    expect(help).toMatch(/Examples?:\n {2}.*signalbox/);
    for (const option of ['--store <url>', '--json', '--version', '--help']) expect(help).toContain(option);
  });

  it.each(named)('has help that fits into 80 columns: %s', (_, command) => {
    const help = helpOf(command, 80);
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it.each(named)('says what it and each of its options is for: %s', (_, command) => {
    expect(command.description()).not.toBe('');
    expect(command.options.filter(({ description }) => description === '')).toEqual([]);
  });

  it.each(named)('tells a default once, and as one would write it: %s', (_, command) => {
    expect(helpOf(command)).not.toMatch(/default:[^)]*\)\s*\(default|default: (\[|[0-9]{4})/);
  });
});

describe('the word help', () => {
  it.each([
    [['help'], ['--help']],
    [
      ['help', 'run'],
      ['run', '--help'],
    ],
    [
      ['help', 'lock', 'acquire'],
      ['lock', 'acquire', '--help'],
    ],
    // So that it is told what there is instead.
    [['help', 'lok'], ['lok']],
    [
      ['run', '--lock', 'a', '--', 'help'],
      ['run', '--lock', 'a', '--', 'help'],
    ],
  ])('asks for the help of what follows it: %j', (args, meant) => {
    expect(helpAsOption(args)).toEqual(meant);
  });
});
