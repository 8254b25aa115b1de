import { describe, expect, it } from 'vitest';
import { needsCommands } from './commands-last.ts';
import type { Condition } from './condition.ts';
import type { Inputs } from './inputs.ts';

const tests: Condition = { command: { cmd: 'make test' } };
const go: Condition = { fileExists: 'go' };
const stop: Condition = { fileExists: 'stop' };
const broken: Condition = { fileExists: 'broken' };
const inputs = {
  'file:go': { value: { exists: true } },
  'file:stop': { value: { exists: false } },
  'file:broken': { error: 'EACCES' },
} as unknown as Inputs;

describe('the commands of a guard run', () => {
  const needs = (condition: Condition): boolean => needsCommands([condition], [condition], inputs);

  it.each<[string, Condition]>([
    ['if there is nothing else', tests],
    ['if everything else passes', { all: [go, tests] }],
    ['if they decide under "not"', { all: [go, { not: tests }] }],
    ['if they can make up for what fails', { any: [stop, tests] }],
    ['if they can make up for what could not be read', { any: [broken, tests] }],
  ])('%s', (_, condition) => expect(needs(condition)).toBe(true));

  it.each<[string, Condition]>([
    ['if something else fails', { all: [stop, tests] }],
    ['if something else could not be read', { all: [broken, tests] }],
    ['if it passes without them', { any: [go, tests] }],
    ['if what fails is next to a "not"', { all: [{ not: go }, { not: tests }] }],
    ['if there are none', go],
  ])('but not %s', (_, condition) => expect(needs(condition)).toBe(false));

  it('whatever becomes of guards that only warn', () => {
    expect(needsCommands([stop, tests], [tests], inputs)).toBe(true);
    expect(needsCommands([stop, tests], [stop], inputs)).toBe(false);
  });
});
