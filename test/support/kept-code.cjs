// @ts-check
// node kept-code.cjs FILE ARGS…: runs FILE with the code that V8 made of it before. To be told `keep` makes it keep the
// code that it has by then, and end.

const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

const [file = ''] = process.argv.splice(2, 1);
const kept = `${file}.${process.version}.v8`;
const script = new Script(`(function (exports, require, module, __filename) {${readFileSync(file, 'latin1')}\n})`, {
  filename: file,
  ...(existsSync(kept) && { cachedData: readFileSync(kept) }),
});
process.on('message', (message) => {
  if (message !== 'keep') return;
  writeFileSync(kept, script.createCachedData());
  process.exit();
});
const module_ = { exports: {} };
script.runInThisContext()(module_.exports, require('node:module').createRequire(file), module_, file);
