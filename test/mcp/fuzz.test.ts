// Wrong arguments for every tool: a clear error, nothing changed, nothing leaked.

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { TOOLS } from '../../src/mcp/index.ts';
import type { TestServer } from '../support/server.ts';
import { type Agent, httpAgent, mcpServerOn, streamAgent } from './agents.ts';

const RUNS = 12;

let boxes: Signalbox[];
let server: TestServer;
let agents: Record<'stdio' | 'http', Agent>;

beforeAll(async () => {
  boxes = [await open('memory:fuzzed'), await open('memory:fuzzed')];
  const [first, second] = boxes as [Signalbox, Signalbox];
  server = mcpServerOn({ box: first, limits: { blockMs: 5 } });
  agents = {
    http: await httpAgent('2026-07-28', server),
    stdio: (await streamAgent('2025-11-25', { box: second, limits: { blockMs: 5 } })).agent,
  };
  await first.lock('held').acquireDetached({ holder: 'owner', reason: 'kept', ttlMs: 3_600_000 });
  await first.tasks.publish('job', { secret: 1 });
});
afterAll(async () => {
  for (const agent of Object.values(agents)) await agent.close();
  await Promise.all(boxes.map((box) => box.close()));
});

/** All that could change; not the time, nor the revision, which maintenance moves. */
async function state(): Promise<string> {
  const [box] = boxes as [Signalbox, Signalbox];
  const { locks, semaphores } = await box.survey();
  const all = [locks, semaphores, await box.tasks.list()];
  return JSON.stringify(all, (field, value: unknown) => (field === 'lease' ? undefined : value));
}

const nasty = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>,
  fc.constantFrom<unknown>(
    ...['', '\0', 'a'.repeat(201), '../../etc/passwd', '__proto__', 'sbx-', 'sbx-e30', '\u202e', -1, 0, 1.5, 1e308],
    ...[null, true, [], {}, { lockFree: 1 }, { command: 'touch /tmp/x' }, { all: [{}] }, [['x']]],
  ),
);

/** Of the fields of a tool, and of others, any values; at least one is wrong. */
function argumentsOf(fields: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const names = fc.constantFrom(...fields, 'constructor', 'toString', 'unknown');
  return fc.dictionary(names, nasty, { maxKeys: 6 }).map((given) => ({ ...given, unheard: 1 }));
}

describe.each(['http', 'stdio'] as const)('over %s', (way) => {
  it.each(TOOLS.map((tool) => [tool.name, tool] as const))(
    '%s refuses what it cannot understand',
    async (name, { input }) => {
      const fields = Object.keys((input as unknown as { shape: object }).shape);
      const before = await state();
      await fc.assert(
        fc.asyncProperty(argumentsOf(fields), async (args) => {
          const answer = await agents[way].call(name, args);
          expect(answer.isError).toBe(true);
          expect(answer.status).toBe('invalid-input');
          expect(answer.message).toContain('unheard');
          expect(answer.message.length + answer.next.length).toBeLessThan(3_000);
          expect(`${answer.message}${answer.next}`).not.toMatch(/ {2}at |node_modules|src\/|\blease\b|sbx_/);
        }),
        { numRuns: RUNS },
      );
      expect(await state()).toBe(before);
    },
  );

  it('no arguments, however strange, take anything from its holder, or break the server', async () => {
    const [box] = boxes as [Signalbox, Signalbox];
    const likely = fc.oneof(
      nasty,
      fc.constantFrom<unknown>('held', 'job', 'lock', 'agent:x', 1, 2, 0.001, 'complete', 'x'),
    );
    const tools = TOOLS.filter(({ name }) => name !== 'break_lock');
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...tools),
        fc.infiniteStream(likely),
        fc.infiniteStream(fc.boolean()),
        async (tool, values, isGiven) => {
          const fields = Object.keys((tool.input as unknown as { shape: object }).shape);
          const given = fields.filter(() => isGiven.next().value === true).map((field) => [field, values.next().value]);
          const answer = await agents[way].call(tool.name, Object.fromEntries(given) as object);
          for (const field of ['status', 'message', 'next']) expect(typeof answer[field]).toBe('string');
          expect(answer.status).not.toBe('internal');
        },
      ),
      { numRuns: 4 * RUNS },
    );
    expect(await box.lock('held').isHeldBy('owner')).toBe(true);
  });
});
