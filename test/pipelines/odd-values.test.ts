// What goes in and out of phases that is not plain text of a usual size, and phases that act on their own pipeline.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineRunbook, open, type Signalbox } from 'signalbox';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';

let box: Signalbox;

beforeEach(async () => {
  box = await open('memory:');
  return () => box.close();
});

async function run(
  phases: Parameters<typeof defineRunbook>[0]['phases'],
  options: Parameters<Signalbox['pipelines']['run']>[1] = {},
): Promise<NonNullable<Awaited<ReturnType<Signalbox['pipelines']['show']>>>> {
  await box.pipelines.run(defineRunbook({ name: 'r', phases }), { id: 'p', ...options });
  const record = await box.pipelines.show('p');
  if (record === undefined) throw new TypeError('there is none');
  return record;
}

const logOf = async (phase: string): Promise<string | undefined> =>
  (await box.pipelines.logs('p')).find((log) => log.phase === phase)?.text;

describe('bytes that are not UTF-8', () => {
  it('in an output fail the phase and name the line: the next phase would get other bytes', async () => {
    const line = String.raw`printf 'GOOD=1\nNAME=caf\351\n' >> "$SIGNALBOX_OUTPUT"`;
    const record = await run([
      { name: 'a', run: line },
      { name: 'b', run: 'true' },
    ]);
    expect(record).toMatchObject({ state: 'failed', outputs: {}, phases: [{ state: 'failed' }, { runs: 0 }] });
    expect(record.reason).toMatch(/line 2 of its outputs is not UTF-8.*base64/);
  });

  it('that a command prints are shown as what they are', async () => {
    await run([{ name: 'a', run: String.raw`printf 'caf\351 → \377'` }]);
    expect(await logOf('a')).toBe('caf\\xe9 → \\xff');
  });
});

describe('a variable that is called __proto__', () => {
  const given = JSON.parse('{"__proto__":"of a function"}') as object;
  const look = { name: 'look', run: 'printf %s "$__proto__"' };

  it.each([
    [
      'an output of a command',
      { name: 'a', run: 'echo "__proto__=of a command" >> "$SIGNALBOX_OUTPUT"' },
      'of a command',
    ],
    ['an output of a function', { name: 'a', run: () => given }, 'of a function'],
  ])('reaches the next phase: %s', async (_, first, expected) => {
    const record = await run([first, look]);
    expect(record).toMatchObject({ state: 'done' });
    expect(Object.entries(record.outputs)).toEqual([['__proto__', expected]]);
    expect(await logOf('look')).toBe(expected);
  });

  it('reaches a phase that is a function, and its command', async () => {
    const env = JSON.parse('{"__proto__":"given"}') as Record<string, string>;
    const seen: unknown[] = [];
    await run([look, { name: 'b', run: (phase) => void seen.push(...Object.entries(phase.env)) }], { env });
    expect(await logOf('look')).toBe('given');
    expect(seen).toEqual([['__proto__', 'given']]);
  });
});

describe('an environment that is too large for the system', () => {
  it('fails the phase, and says which variable has how many bytes, and how many it may have', async () => {
    const env = { BIG: 'x'.repeat(140_000) };
    const record = await run([{ name: 'a', run: 'true' }], { env });
    expect(record.state).toBe('failed');
    expect(record.reason).toBe(
      'phase a: its environment is too large: the variable BIG has 140005 bytes, and the system passes on at most ' +
        '131072 in one. Pass it on in a file',
    );
  });

  it('keeps a guard from passing, for the same reason', async () => {
    const pre = { command: { cmd: 'true' } };
    const record = await run([{ name: 'a', pre, run: 'true' }], { env: { BIG: 'x'.repeat(140_000) }, waits: false });
    expect(record).toMatchObject({ state: 'blocked', blocked: { on: 'guard', guards: [{ outlook: 'unknown' }] } });
    expect(JSON.stringify(record.blocked)).toContain('the variable BIG has 140005 bytes');
  });

  it('is told as a whole where no variable alone is too large', async () => {
    const env = Object.fromEntries(Array.from({ length: 4 }, (_, at) => [`V${at}`, 'x'.repeat(60_000)]));
    const whole = Array.from({ length: 40 }, (_, at) => [`W${at}`, 'x'.repeat(130_000)] as const);
    for (const [name, value] of whole) process.env[name] = value;
    onTestFinished(() => whole.forEach(([name]) => Reflect.deleteProperty(process.env, name)));
    const record = await run([{ name: 'a', run: 'true' }], { env });
    expect(record.state).toBe('failed');
    expect(record.reason).toMatch(/its environment is too large: 5\d{6} bytes in \d+ variables.*at most \d+/);
  });
});

describe('a phase that cancels its own pipeline', () => {
  it('does not wait for itself: its signal has aborted, and the pipeline is cancelled once it has ended', async () => {
    const seen: unknown[] = [];
    const cancels = {
      name: 'a',
      run: async ({ pipeline, signal }: { pipeline: string; signal: AbortSignal }) => {
        const record = await box.pipelines.cancel(pipeline, { by: 'ann', reason: 'no use' });
        seen.push(signal.aborted, record?.state, record?.cancel?.by);
      },
    };
    const record = await run([cancels, { name: 'b', run: () => void seen.push('b') }]);
    expect(record).toMatchObject({ state: 'cancelled', reason: 'no use', phases: [{ state: 'cancelled' }, {}] });
    expect(seen).toEqual([true, 'running', 'ann']);
  });

  it('does so from a pipeline that it drives itself, and by another signalbox too', async () => {
    await using shared = await open(`memory:own-${process.pid}`);
    await using other = await open(`memory:own-${process.pid}`);
    const inner = {
      name: 'inner',
      phases: [{ name: 'x', run: () => other.pipelines.cancel('p').then(() => undefined) }],
    };
    const outer = {
      name: 'outer',
      phases: [{ name: 'a', run: () => shared.pipelines.run(inner, { id: 'q' }).then(() => undefined) }],
    };
    expect(await shared.pipelines.run(outer, { id: 'p' })).toMatchObject({ record: { state: 'cancelled' } });
    expect(await shared.pipelines.show('q')).toMatchObject({ state: 'done' });
  });

  it('nor does it wait for itself when it wants to take over', async () => {
    const seen: unknown[] = [];
    await run([{ name: 'a', run: async () => void seen.push(await box.pipelines.resume('p', { standsBy: true })) }]);
    expect(seen).toMatchObject([{ kind: 'driven' }]);
  });

  it('is waited for by what it left behind, which is part of it no longer', async () => {
    let left: Promise<unknown> = Promise.resolve();
    let go = (): void => undefined;
    const begun = new Promise<void>((resolve) => (go = resolve));
    const leaves = {
      name: 'a',
      run: () => {
        left = begun.then(() => box.pipelines.cancel('p'));
      },
    };
    const stays = {
      name: 'b',
      run: ({ signal }: { signal: AbortSignal }) => {
        go();
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      },
    };
    expect(await run([leaves, stays])).toMatchObject({ state: 'cancelled' });
    expect(await left).toMatchObject({ state: 'cancelled' });
  });
});

describe('a decision that is none', () => {
  it.each(['Skip', { choice: 'skip' }, 'abort', null, '', true])(
    'is refused, and the phase is not run: %j',
    async (decision) => {
      const directory = mkdtempSync(join(tmpdir(), 'signalbox-odd-'));
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
      await run([{ name: 'pay', onFailure: 'block', run: 'echo paid >> paid; exit 1' }], { cwd: directory });
      const resuming = box.pipelines.resume('p', { decision: decision as never });
      await expect(resuming).rejects.toMatchObject({ code: 'invalid' });
      await expect(resuming).rejects.toThrow('expected "rerun" or "skip"');
      expect(readFileSync(join(directory, 'paid'), 'utf8')).toBe('paid\n');
    },
  );
});
