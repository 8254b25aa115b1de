import { describe, expect, it } from 'vitest';
import { impurities } from './purity.ts';
import { sourcesUnder } from './sources.ts';

describe('the core', () => {
  it('decides from its arguments alone: no import from outside, no clock, timer, chance, network or file', () => {
    const core = sourcesUnder('src/core');
    expect(core.length).toBeGreaterThan(0);
    expect(core.flatMap(impurities)).toEqual([]);
  });
});

// A check that finds nothing proves nothing, so each kind of slip is planted once and must be found.
describe('the check of the core', () => {
  it.each([
    // imports
    ["import { readFileSync } from 'node:fs';", 'imports node:fs'],
    ["import canonicalize from 'canonicalize';", 'imports canonicalize'],
    ["import { Failure } from '../failure.ts';", 'imports ../failure.ts'],
    ["import type { Store } from '../store/contract.ts';", 'imports ../store/contract.ts'],
    ["import '../runtime/session.ts';", 'imports ../runtime/session.ts'],
    ["export { open } from '../index.ts';", 'imports ../index.ts'],
    ["export * from '../core-of-another/lock.ts';", 'imports ../core-of-another/lock.ts'],
    ["type Store = import('../store/contract.ts').Store;", 'imports ../store/contract.ts'],
    ["import fs = require('node:fs');", 'imports node:fs'],
    ["const later = () => import('./lock.ts');", 'imports at run time'],
    ['const later = (path: string) => import(path);', 'imports at run time'],
    ["const fs = require('node:fs');", 'touches the process (require)'],
    ['const here = import.meta.url;', 'asks where it is'],
    // clocks and timers
    ['const at = Date.now();', 'touches a clock (Date)'],
    ['const at = new Date();', 'touches a clock (Date)'],
    ['function show(at: Date) {}', 'touches a clock (Date)'],
    ['const clock = { Date };', 'touches a clock (Date)'],
    ['const at = performance.now();', 'touches a clock (performance)'],
    ['const at = Temporal.Now.instant();', 'touches a clock (Temporal)'],
    ['const text = new Intl.DateTimeFormat().format();', 'touches a clock (Intl)'],
    ['setTimeout(() => {}, 1);', 'touches a timer (setTimeout)'],
    ['setInterval(() => {}, 1);', 'touches a timer (setInterval)'],
    ['setImmediate(() => {});', 'touches a timer (setImmediate)'],
    ['queueMicrotask(() => {});', 'touches a timer (queueMicrotask)'],
    ['const signal = AbortSignal.timeout(5);', 'touches a timer (AbortSignal)'],
    // randomness
    ['const chance = Math.random();', 'touches randomness (Math.random)'],
    ["const chance = Math['random']();", 'may touch randomness'],
    ['const { random } = Math;', 'may touch randomness'],
    ['const maths = Math;', 'may touch randomness'],
    ['const id = crypto.randomUUID();', 'touches randomness (crypto)'],
    // the world outside
    ["fetch('http://localhost');", 'touches the network (fetch)'],
    ["const socket = new WebSocket('ws://localhost');", 'touches the network (WebSocket)'],
    ['const { env } = process;', 'touches the process (process)'],
    ["console.log('held');", 'touches the process (console)'],
    ["const bytes = Buffer.from('held');", 'touches the process (Buffer)'],
    ["const clock = globalThis['Da' + 'te'];", 'touches every global at once (globalThis)'],
    ["const now = new Function('return Date.now()');", 'touches every global at once (Function)'],
    ["const order = 'a'.localeCompare('b');", "depends on the machine's locale (localeCompare)"],
    // later turns, and memory between calls
    ['async function acquire() {}', 'is async'],
    ['const acquire = async () => {};', 'is async'],
    ['const machine = { async acquire() {} };', 'is async'],
    ['async function* grants() {}', 'is async'],
    ['await acquired;', 'awaits'],
    ['for await (const grant of grants) {}', 'awaits'],
    ['await using hold = held;', 'awaits'],
    ['const acquired = Promise.resolve();', 'touches a later turn (Promise)'],
    ['type Acquire = () => Promise<void>;', 'touches a later turn (Promise)'],
    ['let grants = 0;', 'remembers between calls'],
    ['export var grants = 0;', 'remembers between calls'],
  ])('finds %s', (text, expected) => {
    const found = impurities({ path: 'src/core/planted.ts', text: `\n${text}` });
    expect(found.join('\n')).toContain(`src/core/planted.ts:2 ${expected}`);
  });

  it.each([
    "import { nextInLine } from './queue.ts'; export type { Hold } from './lock/hold.ts';",
    'interface Moment { readonly process: string; fetch(): void } const at = (moment: Moment) => moment.process;',
    "const event = { kind: 'lock:acquired', console: 1, Date: 2 };",
    '// Date.now() would compare two clocks\nconst text = "await new Promise(setTimeout)";',
    'function count(): number { let grants = 0; grants += Math.max(1, 2); return grants; }',
    'for (let index = 0; index < 2; index += 1) {}',
  ])('lets pass %s', (text) => {
    expect(impurities({ path: 'src/core/planted.ts', text })).toEqual([]);
  });

  it('lets a test beside a machine use the test packages, and nothing else from outside', () => {
    const text = [
      "import fc from 'fast-check';",
      "import { it } from 'vitest'; import '../../test/laws/index.ts';",
      "import assert from 'node:assert';",
      "import { TestClock } from '../testing/index.ts';",
    ].join('\n');
    expect(impurities({ path: 'src/core/lock.test.ts', text })).toEqual([
      'src/core/lock.test.ts:4 imports ../testing/index.ts, which is outside core',
    ]);
  });
});
