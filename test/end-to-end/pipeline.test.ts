// Pipelines on the command line, on both engines that several processes can share.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Scratch, signalbox } from '../support/cli.ts';
import { built, isAlive } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

interface Line {
  readonly type: string;
  readonly state?: string;
  readonly result?: string;
  readonly phase?: string | null;
  readonly text?: string;
  readonly outputs?: Record<string, string>;
}

describe.each(stores)('signalbox pipeline on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let scratch: Scratch;
  beforeAll(built);
  beforeEach(() => {
    scratch = new Scratch(newStore);
  });
  afterEach(() => scratch.remove());

  /** Written as `release.yaml`, unless named. */
  const write = (text: string, name = 'release.yaml'): string => {
    writeFileSync(scratch.path(name), text);
    return name;
  };
  const read = (name: string): string => readFileSync(scratch.path(name), 'utf8');
  const pipeline = (...args: readonly string[]): ReturnType<Scratch['run']> => scratch.run('pipeline', ...args);
  const status = (id: string): Promise<Record<string, never>> => scratch.json('pipeline', 'status', id);

  it('runs its phases in order, shows each change and what they print, and passes outputs on', async () => {
    const file = write(`
name: release
env: { TARGET: staging }
phases:
  - name: build
    run: echo "building" && echo "VERSION=1.4" >> "$SIGNALBOX_OUTPUT"
  - name: deploy
    holds: { locks: ["deploy-\${TARGET}"] }
    run: printf '%s to %s for %s' "$VERSION" "$TARGET" "$WHO"
`);
    const { code, stdout, stderr } = await pipeline('run', file, '--id', 'r7', '--env', 'WHO=all of us');
    expect(stderr).toBe('');
    expect(stdout.replace(/\d+ m?s/g, 'a while')).toBe(
      [
        'pipeline/r7: started',
        'build: begins',
        'build | building',
        'build: done after a while',
        'deploy: begins',
        'deploy | 1.4 to staging for all of us',
        'deploy: done after a while',
        'pipeline/r7: done after a while',
        '',
      ].join('\n'),
    );
    expect(code).toBe(0);
    expect((await pipeline('status', 'pipeline/r7')).stdout).toMatch(/^r7 {2}done · .*\n {2}✓ build .*\n {2}✓ deploy /);
    expect((await pipeline('status', 'r7', '--log', 'build')).stdout).toBe('── build\nbuilding\n');
    expect((await pipeline('list')).stdout).toMatch(/^PIPELINE .*\nr7 +done +2\/2 /);
    expect((await pipeline('list', '--status', 'blocked')).stdout).toBe('No pipeline is blocked.\n');
    expect(await status('r7')).toMatchObject({
      pipeline: 'r7',
      state: 'done',
      outputs: { VERSION: '1.4' },
      isDriven: false,
    });
    expect(await pipeline('run', file, '--id', 'r7')).toMatchObject({
      code: 1,
      stderr:
        'signalbox: pipeline/r7: there is one already\n  see: signalbox pipeline status r7\n' +
        '  if it has ended, free its id: signalbox pipeline forget r7\n',
    });
    expect(await pipeline('resume', 'r7')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('pipeline/r7: it is done\n  free its id') as string,
    });
    expect(await pipeline('resume', 'r7', '--skip')).toMatchObject({ code: 1 });
    expect(await pipeline('forget', 'r7')).toMatchObject({ code: 0, stdout: 'pipeline/r7: deleted\n' });
    expect(await pipeline('forget', 'r7')).toMatchObject({ code: 1 });
    expect((await pipeline('list')).stdout).toBe('There are no pipelines.\n');
  });

  it('tells programs each change as an object in a line, and the result last', async () => {
    const file = write('name: r\nphases:\n  - { name: a, run: "echo hi; echo A=1 >> $SIGNALBOX_OUTPUT" }\n');
    const { code, stdout } = await pipeline('run', file, '--id', 'j', '--json');
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(code).toBe(0);
    expect(
      lines
        .filter(({ type }) => type === 'output')
        .map(({ text }) => text)
        .join(''),
    ).toBe('hi\n');
    expect(lines.filter(({ type }) => type === 'change').map(({ state }) => state)).toEqual([
      'pending',
      'running',
      'running',
      'done',
    ]);
    expect(lines.at(-1)).toMatchObject({ type: 'result', result: 'done', outputs: { A: '1' } });
  });

  it('waits for a lock that another process has, and goes on when it is released', async () => {
    const file = write(`
name: r
phases:
  - name: merge
    pre: { lockFree: incident }
    run: echo merged
`);
    const token = (
      await scratch.run('lock', 'acquire', 'incident', '--holder', 'agent:7', '--ttl', '60s')
    ).stdout.trim();
    const { ended, printed } = scratch.start('pipeline', 'run', file, '--id', 'w');
    await printed('merge:   checks again after lock:released');
    expect(await status('w')).toMatchObject({
      state: 'blocked',
      isDriven: true,
      blocked: { on: 'guard', guards: [{ id: 'merge.pre', reasons: ['lock "incident" is held by agent:7'] }] },
    });
    expect((await pipeline('list')).stdout).toContain('merge.pre: lock "incident" is held by agent:7');
    await scratch.run('lock', 'release', 'incident', '--holder', 'agent:7', '--token', token);
    const { code, stdout } = await ended;
    expect(stdout).toContain('merge: blocked: merge.pre: lock "incident" is held by agent:7\n');
    expect(stdout).toContain('merge | merged\n');
    expect(code).toBe(0);
  });

  it('leaves a pipeline that is blocked if told not to wait, and says how to go on with it', async () => {
    const file = write('name: r\nphases:\n  - { name: a, run: echo ran, pre: { fileExists: go } }\n');
    const left = await pipeline('run', file, '--id', 'n', '--no-wait');
    expect(left.code).toBe(75);
    expect(left.stderr).toBe(
      'signalbox: pipeline/n: left blocked; it can be resumed\n  continue it: signalbox pipeline resume n\n  or end it for good: signalbox pipeline cancel n\n',
    );
    expect((await pipeline('status', 'n')).stdout).toMatch(
      /no process drives it[^]*continue it: signalbox pipeline resume n/,
    );
    write('', 'go');
    const resumed = await pipeline('resume', 'n');
    expect(resumed.stdout).toMatch(/^pipeline\/n: driven from here, at a\n[^]*a \| ran\n/);
    expect(resumed.code).toBe(0);
  });

  it('ends with 1 when a phase fails, and runs none after it', async () => {
    const file = write('name: r\nphases:\n  - { name: a, run: "echo oh; exit 3" }\n  - { name: b, run: touch ran }\n');
    const { code, stdout } = await pipeline('run', file, '--id', 'f');
    expect(stdout).toMatch(
      /a \| oh\na: failed: exit code 3\npipeline\/f: failed after \d+ m?s: phase a: exit code 3\n$/,
    );
    expect(code).toBe(1);
    expect(existsSync(scratch.path('ran'))).toBe(false);
  });

  it('that has failed starts again from a phase, with what the phases before it passed on', async () => {
    const file = write(`
name: r
phases:
  - { name: build, run: 'echo x >> built; echo "VERSION=2" >> "$SIGNALBOX_OUTPUT"' }
  - { name: test, run: 'test -e fixed' }
  - { name: push, run: 'echo pushed $VERSION' }
`);
    expect((await pipeline('run', file, '--id', 'again')).code).toBe(1);
    expect((await pipeline('status', 'again')).stdout).toContain(
      'start it again: signalbox pipeline resume again --from test\n',
    );
    expect(await pipeline('resume', 'again')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('signalbox pipeline resume again --from test') as string,
    });
    expect(await pipeline('resume', 'again', '--from', 'push')).toMatchObject({
      code: 64,
      stderr:
        'signalbox: pipeline/again: phase "push" comes after the one that failed; it can start again from build, test\n',
    });
    write('', 'fixed');
    const again = await pipeline('resume', 'again', '--from', 'test');
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('push | pushed 2\n') as string });
    expect(read('built')).toBe('x\n');
    expect((await pipeline('resume', 'again', '--from', 'test')).stderr).toContain(
      'pipeline/again is done; only a failed',
    );
  });

  it('asks a person when its driver was killed during a phase that is not idempotent', async () => {
    const file = write(
      'name: r\nphases:\n  - { name: a, run: "echo $$ >> runs; echo begun; test $(wc -l < runs) -gt 1 || exec sleep 100" }\n',
    );
    const { child, ended, printed } = scratch.start('pipeline', 'run', file, '--id', 'k');
    await printed('a | begun');
    const early = await pipeline('resume', 'k', '--skip', '--wait');
    expect(early.code, 'nobody can answer what has not been asked').toBe(1);
    expect(early.stderr).toContain('nothing was done, because no phase waits for a decision: it is running');
    child.kill('SIGKILL');
    await ended;
    // What `status` recommends works at once, although the lease of the killed driver has not ended.
    expect((await pipeline('status', 'k')).stdout).toContain('continue it: signalbox pipeline resume k\n');
    const asked = await pipeline('resume', 'k');
    expect(asked.stderr).toContain("waiting for pipeline/k; its driver's process is gone; its lease ends in ");
    // What signalbox does is not what the phase prints.
    expect(asked.stderr).toMatch(/^signalbox: a: lock\/pipeline:k: ending process \d+, left behind by driver:/m);
    expect(asked.stdout).not.toContain('ending process');
    expect(asked.code).toBe(75);
    const [, question = ''] =
      /run the phase again: signalbox pipeline resume k --rerun --question (\d+)/.exec(asked.stderr) ?? [];
    const status = await pipeline('status', 'k', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({ blocked: { on: 'person', question: Number(question) } });
    const other = await pipeline('resume', 'k', '--skip', '--question', '999999');
    expect(other.stderr).toContain(
      `nothing was done, because that question is not open. The open one is question ${question}`,
    );
    expect(other.code).toBe(1);
    expect(isAlive(Number(read('runs').trim())), 'nothing runs beside an orphan').toBe(false);
    const again = await pipeline('resume', 'k', '--rerun', '--question', question);
    expect(again.stdout).toContain('a: begins (run 2)');
    expect(again.code).toBe(0);
    expect(read('runs').trim().split('\n')).toHaveLength(2);
  });

  it('shows after its driver was killed what the phase had printed, and that nobody drives it', async () => {
    const file = write(`
name: release
phases:
  - { name: deploy, run: 'echo begun; echo the last line; exec sleep 1000' }
`);
    const { child, ended, printed } = scratch.start('pipeline', 'run', file, '--id', 'r7');
    await printed('the last line');
    child.kill('SIGKILL');
    await ended;
    const { stdout } = await pipeline('status', 'r7');
    expect(stdout).toMatch(/^r7 {2}stopped · .* · no process drives it\n/);
    expect(stdout).not.toContain('driven by');
    expect(stdout).toContain('signalbox pipeline resume r7');
    expect((await pipeline('list')).stdout).toMatch(/r7 +stopped +deploy .*\n {2}no process drives it; continue it: /);
    expect(await status('r7')).toMatchObject({ isDriven: false });
    expect(await scratch.json('pipeline', 'list')).toMatchObject({ pipelines: [{ pipeline: 'r7', isDriven: false }] });
    const all = '── deploy\nbegun\nthe last line\n';
    expect((await pipeline('status', 'r7', '--log')).stdout).toBe(all);
    // The next driver leaves it for a person to decide, and all of the log is in the store.
    expect((await pipeline('resume', 'r7', '--wait')).code).toBe(75);
    const env = { SIGNALBOX_URL: scratch.store, TMPDIR: scratch.path('elsewhere') };
    expect((await signalbox(['pipeline', 'status', 'r7', '--log'], { env })).stdout).toContain(all.trimEnd());
  });

  it('can be stood by for: the second takes over when the first is killed, and goes on by itself where it may', async () => {
    const file = write(
      'name: r\nphases:\n  - { name: a, idempotent: true, run: "echo x >> runs; echo begun; test $(wc -l < runs) -gt 1 || exec sleep 100" }\n',
    );
    const first = scratch.start('pipeline', 'run', file, '--id', 'sb');
    await first.printed('a | begun');
    const refused = await pipeline('resume', 'sb');
    expect(refused).toMatchObject({
      code: 75,
      stderr: expect.stringMatching(/^signalbox: pipeline\/sb: driven by driver:.*\n.* resume sb --wait$/m) as string,
    });
    const second = scratch.start('pipeline', 'resume', 'sb', '--wait');
    first.child.kill('SIGKILL');
    await first.ended;
    expect(await second.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('a: begins (run 2)') as string,
    });
  });

  it('stops at Ctrl-C: its command is ended, and it can be resumed', async () => {
    const file = write(`
name: r
phases:
  - name: a
    idempotent: true
    run: trap 'echo ending; exit 0' TERM; echo begun; test -e again || { touch again; while :; do sleep 0.1; done; }
`);
    const { child, ended, printed } = scratch.start('pipeline', 'run', file, '--id', 's');
    await printed('a | begun');
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    expect(stdout).toContain('a | ending');
    expect(stderr).toMatch(/^signalbox: stopping its command[^]*stopped; it can be resumed\n {2}continue it: /);
    expect(code).toBe(130);
    expect((await pipeline('status', 's')).stdout).toMatch(
      /^s {2}stopped · .* · no process drives it\n[^]*continue it/,
    );
    expect((await pipeline('list')).stdout).toMatch(/s +stopped +a .*\n {2}no process drives it; continue it: /);
    expect(await pipeline('resume', 's')).toMatchObject({ code: 0 });
  });

  it('kills at the second Ctrl-C what does not heed the first', async () => {
    const file = write(
      'name: r\nphases:\n  - { name: a, run: "trap \'echo no\' TERM; echo $$ > pid; echo begun; while :; do sleep 0.1; done" }\n',
    );
    const { child, ended, printed } = scratch.start('pipeline', 'run', file, '--id', 'h', '--grace', '1h');
    await printed('a | begun');
    child.kill('SIGINT');
    await printed('a | no');
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(isAlive(Number(read('pid').trim()))).toBe(false);
  });

  it('is cancelled from another process, which waits until its command has ended', async () => {
    const file = write('name: r\nphases:\n  - { name: a, run: "echo $$ > pid; echo begun; exec sleep 100" }\n');
    const { ended, printed } = scratch.start('pipeline', 'run', file, '--id', 'c');
    await printed('a | begun');
    expect(await pipeline('cancel', 'c', '--reason', 'not needed')).toMatchObject({
      code: 0,
      stdout: 'pipeline/c: cancelled\n',
    });
    expect(isAlive(Number(read('pid').trim()))).toBe(false);
    expect(await ended).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/pipeline\/c: cancelled after .*: not needed\n$/) as string,
    });
    expect(await pipeline('cancel', 'c')).toMatchObject({
      code: 1,
      stderr: 'signalbox: pipeline/c: it is cancelled already\n',
    });
    expect(await pipeline('resume', 'c')).toMatchObject({ code: 1 });
  });

  it('runs a runbook that is a program, functions and all', async () => {
    const file = write(
      `export default {
  name: 'js',
  phases: [
    { name: 'count', run: async ({ log, env }) => { log('counting for ' + env.WHO); return { TWO: 2 }; } },
    { name: 'tell', run: 'echo "it is $TWO"' },
    { name: 'throw', run: () => { throw new Error('as agreed'); }, onFailure: 'warn' },
  ],
};\n`,
      'release.mjs',
    );
    const { code, stdout, stderr } = await pipeline('run', file, '--id', 'p', '-e', 'WHO=you');
    expect(stdout, stderr).toContain('count | counting for you\n');
    expect(stdout).toContain('tell | it is 2\n');
    expect(stdout).toContain('throw: warning: phase throw: as agreed\n');
    expect(code).toBe(0);
  });

  it('says so when there is no such pipeline', async () => {
    for (const name of ['status', 'resume', 'cancel']) {
      expect(await pipeline(name, 'nope')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('there is no such pipeline') as string,
      });
    }
    expect((await pipeline('list')).stdout).toMatch(/There are no pipelines\.$/m);
  });
});
