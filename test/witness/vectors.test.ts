import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { vectors } from './vectors.ts';

it('docs/witness.md has test vectors as the code makes them', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/witness.md'), 'utf8');
  const [, shown = ''] = /### Test vectors[^]*?```json\n([^]*?)\n```/.exec(page) ?? [];
  expect(JSON.parse(shown)).toEqual(vectors());
});
