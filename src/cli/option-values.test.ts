import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliExit } from './exit-code.ts';
import { wholeProgram } from './program.ts';

/** Parses only as far as the mistake, so that nothing is done. */
async function mistakeIn(...args: readonly string[]): Promise<string> {
  const program = await wholeProgram();
  const error: unknown = await program.parseAsync(args, { from: 'user' }).then(
    () => new Error('it was accepted'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CliExit)) throw error;
  expect(error.exitCode).toBe(64);
  return error.message;
}

describe('an option without its value', () => {
  it.each([
    [['run', '--lock', '--', 'true'], '--lock needs a name, but "--" follows'],
    [['run', '--sem', '--lock', 'a', '--', 'true'], '--sem needs a name, but "--lock" follows'],
    [['run', '--lock', 'a', '--reason', '--no-wait', '--', 'true'], '--reason needs a text'],
    [['run', '--lock', 'a', '--holder', '--wait=5', '--', 'true'], '--holder needs an id'],
    [['run', '--lock', '-v', '--', 'true'], '--lock needs a name'],
    [['lock', 'acquire', 'a', '--wait', '--holder', 'b'], '--wait needs a duration'],
    [['lock', 'break', 'a', '--reason', '--'], '--reason needs a text'],
    [['who', '--store', '--json'], '--store needs a url'],
  ])('does not swallow the next one: %j', async (args, problem) => {
    expect(await mistakeIn(...args)).toContain(problem);
  });
});

describe('two options that contradict each other', () => {
  it.each([
    [['run', '--lock', 'a', '--no-wait', '--wait', '5', '--', 'true']],
    [['lock', 'acquire', 'a', '--holder', 'b', '--wait', '5', '--no-wait']],
  ])('are refused: %j', async (args) => {
    expect(await mistakeIn(...args)).toContain('--wait and --no-wait contradict each other');
  });
});

describe('a store that no other process sees', () => {
  const before = process.env['SIGNALBOX_URL'];
  beforeEach(() => void delete process.env['SIGNALBOX_URL']);
  afterEach(() => {
    if (before !== undefined) process.env['SIGNALBOX_URL'] = before;
    else delete process.env['SIGNALBOX_URL'];
  });

  it.each([
    [['run', '--store', 'memory:', '--lock', 'a', '--', 'true']],
    [['--store', 'memory:x', 'lock', 'acquire', 'a', '--holder', 'b']],
    [['who', '--store=memory:']],
    [['doctor', '--store', 'memory:']],
  ])('is refused, because it would protect nothing: %j', async (args) => {
    expect(await mistakeIn(...args)).toMatch(/no other process sees it.*expected file:DIRECTORY/);
  });

  it('is refused in SIGNALBOX_URL too', async () => {
    process.env['SIGNALBOX_URL'] = 'memory:';
    expect(await mistakeIn('sem', 'list')).toMatch(/^SIGNALBOX_URL: .*no other process sees it/);
  });
});
