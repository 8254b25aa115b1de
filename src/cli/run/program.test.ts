import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProgram } from './program.ts';

describe('a command is found as a shell finds it', () => {
  let top: string;
  beforeAll(() => {
    top = mkdtempSync(join(tmpdir(), 'signalbox-program-'));
    for (const directory of ['first', 'second', 'first/tool']) mkdirSync(join(top, directory));
    for (const [file, mode] of [
      ['second/tool', 0o755],
      ['first/plain', 0o644],
      ['second/late', 0o755],
      ['first/late', 0o644],
    ] as const) {
      writeFileSync(join(top, file), '');
      chmodSync(join(top, file), mode);
    }
  });
  afterAll(() => rmSync(top, { recursive: true }));

  const find = (name: string, path = `${top}/first:${top}/second`): unknown => findProgram(name, { PATH: path }, top);
  const codeOf = (name: string, path?: string): unknown => {
    try {
      return find(name, path);
    } catch (error) {
      return (error as { exitCode: number }).exitCode;
    }
  };

  it('in the path, past directories and files that are no programs', () => {
    expect(find('tool')).toBe(join(top, 'second/tool'));
    expect(find('late')).toBe(join(top, 'second/late'));
  });

  it('in the directory it is in, where the path has an empty place', () => {
    expect(codeOf('late', '')).toBe(127);
    expect(findProgram('late', { PATH: ':/nowhere' }, join(top, 'second'))).toBe(join(top, 'second/late'));
  });

  it('by its own path', () => {
    expect(find('./second/tool')).toBe(join(top, 'second/tool'));
    expect(find(join(top, 'second/tool'))).toBe(join(top, 'second/tool'));
  });

  it('or not: 127 if there is none, 126 if it is no program', () => {
    expect(codeOf('no-such')).toBe(127);
    expect(codeOf('./no-such')).toBe(127);
    expect(codeOf('tool', `${top}/first`)).toBe(127);
    expect(codeOf('plain')).toBe(126);
    expect(codeOf('./first/plain')).toBe(126);
    expect(codeOf('./first')).toBe(126);
  });
});
