import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { root, tool } from '../../scripts/ensure.mjs';

const project = mkdtempSync(join(tmpdir(), 'signalbox-typescript-'));

afterAll(() => rmSync(project, { recursive: true }));

describe('a strict TypeScript project', () => {
  it('uses results, events, tasks and metadata with their types, by the declarations of the package', () => {
    // What `npm install` would make of it. `npm run test:install` really installs the package.
    for (const name of ['signalbox', '@types/node', 'undici-types']) {
      const from = name === 'signalbox' ? root : join(root, 'node_modules', name);
      mkdirSync(join(project, 'node_modules', '@types'), { recursive: true });
      symlinkSync(from, join(project, 'node_modules', name));
    }
    for (const file of ['program.ts', 'tsconfig.nodenext.json', 'package.json']) {
      copyFileSync(join(root, 'test', 'install', file), join(project, file));
    }
    const { status, stdout } = spawnSync(tool('tsc'), ['-p', 'tsconfig.nodenext.json'], {
      cwd: project,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });
});
