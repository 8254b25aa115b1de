import { describe, expect, it } from 'vitest';
import { agentHolder, pipelineHolder, workerHolder } from './holder.ts';
import { nameProblem } from './name.ts';

describe('a name', () => {
  it.each([
    'main',
    'a',
    'feature/login page',
    'pipeline:release-7',
    'größe',
    '主分支',
    '👩‍🚀 crew',
    'می‌خواهم',
    'x'.repeat(200),
    '🚀'.repeat(200),
  ])('may be %j', (name) => {
    expect(nameProblem(name)).toBeUndefined();
  });

  it('that is empty is refused', () => {
    expect(nameProblem('')).toBe('name is empty; expected 1 to 200 printable characters');
  });

  it('that is too long is refused with its length in characters, not in bytes or units', () => {
    expect(nameProblem('🚀'.repeat(201))).toMatch(/^name "🚀.*… has 201 characters; expected 1 to 200/u);
  });

  it.each([
    ['two\nlines', 'U+000A'],
    ['nul\0', 'U+0000'],
    ['\u007F', 'U+007F'],
    ['line\u2028separator', 'U+2028'],
    ['half a rocket \uD83D', 'U+D83D'],
    ['mirrored \u202Etxt.exe', 'U+202E'],
    ['invisible\u200B', 'U+200B'],
  ])('such as %j is refused, and the character is named', (name, character) => {
    expect(nameProblem(name)).toContain(`the unprintable character ${character}`);
  });

  it.each([42, null, undefined, ['main'], { name: 'main' }, Number.NaN])('that is %j is refused', (name) => {
    expect(nameProblem(name, 'lock')).toMatch(/^lock is .*, not a string; expected/u);
  });
});

describe('a holder', () => {
  it('says what it is before which one it is', () => {
    expect(pipelineHolder('release-7')).toBe('pipeline:release-7');
    expect(workerHolder('ci-3')).toBe('worker:ci-3');
    expect(agentHolder('reviewer')).toBe('agent:reviewer');
  });

  it('of one kind is never the same as one of another kind with the same id', () => {
    expect(workerHolder('7')).not.toBe(pipelineHolder('7'));
  });
});
