/** Loaded into a process that is measured (`--expose-gc --import`): says what it keeps after a collection, when its parent asks. */
process.on('message', () => {
  globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send({ heap: heapUsed + external, rss });
});
