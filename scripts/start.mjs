// @ts-check
// npm start: the demonstration, on the package as its users get it.

import { join } from 'node:path';
import { ensure, root, run } from './ensure.mjs';

ensure();
process.exit(run(process.execPath, [join(root, 'examples', 'demo.mjs'), ...process.argv.slice(2)]));
