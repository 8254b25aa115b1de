// What a page gets: one file of the built package, without anything of Node.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';

describe('the file that browsers import', () => {
  it('imports nothing, names nothing of Node, and is small', () => {
    const code = readFileSync(join(root, 'dist/client/index.js'), 'utf8');
    expect(code).not.toMatch(/\bimport\b|\brequire\(|node:|\bprocess\.|\bBuffer\b/);
    expect(gzipSync(code).length).toBeLessThan(15_600);
  });
});
