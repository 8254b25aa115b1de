// @ts-check
// node scripts/bundle.mjs DIST: makes DIST/bin/signalbox.cjs of DIST/cli/main.js. A command line of a hundred modules
// spends more time finding them than doing anything (docs/decisions/0010): in one file it starts four times faster.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const dist = process.argv[2];
if (dist === undefined) throw new Error('say which dist');

const bundle = await rolldown({
  input: { signalbox: join(dist, 'cli', 'main.js') },
  platform: 'node',
  // It has a native part, which it finds beside itself.
  external: ['better-sqlite3'],
});
await bundle.write({
  dir: join(dist, 'bin'),
  // Node takes CommonJS up several milliseconds faster than modules.
  format: 'cjs',
  entryFileNames: '[name].cjs',
  codeSplitting: false,
  minify: { mangle: false, compress: true, codegen: { removeWhitespace: true } },
});
await bundle.close();
chmodSync(join(dist, 'bin', 'signalbox.cjs'), 0o755);
