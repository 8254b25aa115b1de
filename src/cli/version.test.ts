import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { VERSION } from './version.ts';

const read = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')) as Record<string, unknown>;

it('the version that is printed is the version of the package', () => {
  expect(VERSION).toBe(read('package.json')['version']);
});

it('the entry for the MCP registry names this package and this version', () => {
  const { name, version, packages } = read('server.json');
  const { mcpName, name: identifier } = read('package.json');
  expect(name).toBe(mcpName);
  expect(version).toBe(VERSION);
  expect(packages).toMatchObject([{ registryType: 'npm', identifier, version: VERSION }]);
});
