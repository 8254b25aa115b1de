import { describe, expect, it } from 'vitest';
import { defineRunbook, Failure, lockFree, type RunbookDefinition } from 'signalbox';

describe('a runbook in TypeScript', () => {
  it('is spelt as in YAML, and brings its functions along', () => {
    const announce = (): void => undefined;
    const { runbook, functions } = defineRunbook({
      name: 'release',
      env: { TARGET: 'staging' },
      phases: [
        { name: 'build', run: 'make', holds: { semaphores: { builds: 2 } }, timeout: '10m' },
        {
          name: 'announce',
          run: announce,
          pre: lockFree('deploy'),
          wakeOn: 'lock:released',
          retries: { times: 2, backoffMs: 10 },
        },
      ],
    });
    expect(runbook.phases.map(({ run }) => run)).toEqual([{ shell: 'make' }, { function: true }]);
    expect(runbook.phases[0]).toMatchObject({ holds: [{ semaphore: 'builds', weight: 2 }], timeoutMs: 600_000 });
    expect(runbook.phases[1]?.pre).toEqual([
      { id: 'announce.pre', condition: { lockFree: 'deploy' }, wakeOn: ['lock:released'] },
    ]);
    expect([...functions]).toEqual([['announce', announce]]);
  });

  it('is plain JSON but for its functions, so that any store can keep it', () => {
    const { runbook } = defineRunbook({ name: 'r', phases: [{ name: 'p', run: () => ({ A: 'b' }) }] });
    expect(JSON.parse(JSON.stringify(runbook))).toEqual(runbook);
  });

  it('is refused with everything that is wrong with it', () => {
    const definition = { name: 'r', phases: [{ name: 'p', run: 5, timeout: 5000 }] } as unknown as RunbookDefinition;
    const problems = [
      'phases[0].run: run is 5; expected a line for the shell, of 1 to 65536 characters without NUL, or a function; quote it: run: "5"',
      'phases[0].timeout: timeout is 5000; expected text such as "30s" or "5m"; milliseconds go under timeoutMs',
    ];
    expect(() => defineRunbook(definition)).toThrow(new Failure('invalid', problems.join('\n')));
  });
});
