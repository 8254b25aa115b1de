import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests and printed examples import the package by its own name and get the source, not the last build.
    alias: [
      { find: /^signalbox$/, replacement: source('index.ts') },
      { find: /^signalbox\/(core|store|testing)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    reporters: ['default'],
    // Most tests wait for processes more than they compute: one file at a time would leave half of two cores idle.
    maxWorkers: '100%',
    // Nothing is measured here: on a busy machine everything takes longer, and is right all the same.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What the command line keeps for its next start is kept here, and not with whoever runs the tests.
    env: { XDG_CACHE_HOME: fileURLToPath(new URL('./.cache', import.meta.url)) },
  },
});
