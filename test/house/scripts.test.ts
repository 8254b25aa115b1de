// Scripts that run for minutes say what they do when asked, and refuse what they do not know, before they begin.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from './sources.ts';

function run(script: string, ...args: readonly string[]): { readonly status: number | null; readonly printed: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join('scripts', `${script}.mjs`), ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, printed: stdout + stderr };
}

describe('a script that takes minutes', () => {
  it.each(['bench', 'test', 'test-install', 'simulate', 'mcp-conformance'])('says how it is used: %s', (script) => {
    const { status, printed } = run(script, '--help');
    expect(status).toBe(0);
    expect(printed).toMatch(/Example|Usage/);
    expect(printed).not.toContain('== ');
  });

  it.each([
    ['bench', 'nonsense'],
    ['bench', '--nonsense'],
    ['test-install', '--nonsense'],
    ['simulate', '--nonsense'],
    ['simulate', 'nonsense'],
  ])('refuses what it does not know: %s %s', (script, argument) => {
    const { status, printed } = run(script, argument);
    expect(status).toBe(64);
    expect(printed).toContain(argument);
  });

  it('names every bench, with the question that it answers', () => {
    const { printed } = run('bench', '--help');
    const benches = readdirSync(join(root, 'bench')).filter((file) => file.endsWith('.mjs'));
    const told = benches.filter((file) => new RegExp(`^ {2}${file.slice(0, -4)} .*\\?$`, 'm').test(printed));
    expect(told).toEqual(benches);
  });
});
