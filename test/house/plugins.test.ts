// The plugins are made from what `agents init` writes. To make them again: npm test -- test/house/plugins.test.ts -u

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hooksFor, DEFAULT_TERMS, mcpServer } from '../../src/cli/agents/content.ts';
import { pluginFiles } from '../../src/cli/agents/plugins.ts';
import { VERSION } from '../../src/cli/version.ts';
import { root } from './sources.ts';

const files = pluginFiles(VERSION);

describe('the plugins', () => {
  it.each(Object.keys(files))('have %s as their one source says', async (path) => {
    await expect(files[path]).toMatchFileSnapshot(join(root, path));
  });

  it('have no other file', () => {
    const found = readdirSync(join(root, 'plugins'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replace(/^\//, ''));
    expect(found.sort()).toEqual(
      Object.keys(files)
        .filter((path) => path.startsWith('plugins/'))
        .sort(),
    );
  });

  it.each(['claude-code', 'codex'] as const)(
    'of %s have the hooks and the server that agents init writes',
    (client) => {
      const read = (path: string): unknown => JSON.parse(readFileSync(join(root, 'plugins', client, path), 'utf8'));
      expect(read('hooks/hooks.json')).toEqual({ hooks: hooksFor(client, DEFAULT_TERMS) });
      expect(read('.mcp.json')).toEqual({ mcpServers: { signalbox: mcpServer(DEFAULT_TERMS) } });
    },
  );
});
