import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { VERSION } from './version.ts';

it('the version that is printed is the version of the package', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(VERSION).toBe((JSON.parse(text) as { version: string }).version);
});
