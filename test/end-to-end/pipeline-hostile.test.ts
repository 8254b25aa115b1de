// Runbooks that are wrong, or were made to do harm: a clear error with its place, and nothing of them runs.

import { existsSync, writeFileSync } from 'node:fs';
import { defineRunbook, open } from 'signalbox';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CLI, type Ended, Scratch, startProgram } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';

describe('a runbook that cannot be right', () => {
  let scratch: Scratch;
  beforeAll(built);
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(() => scratch.remove());

  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]'];
  for (let level = 1; level < 20; level++) {
    bomb.push(
      `a${level}: &a${level} [${Array(9)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    );
  }

  const FIRST = 'name: r\nphases:\n  - { name: first, run: touch ran }\n';
  it.each<[string, string, string]>([
    [
      'a phase that contains itself',
      `${FIRST}  - &x\n    name: b\n    run: "true"\n    pre: { all: [*x] }\n`,
      '7:18: *x is inside of what it stands for',
    ],
    ['a bomb of aliases', `${FIRST}${bomb.join('\n')}\n`, '1:1: its aliases expand to '],
    ['an unknown key', `${FIRST}    on_failure: warn\n`, '4:5: '],
    [
      'an unknown key, nearly right',
      `${FIRST}  - { name: b, run: x, onfailure: warn }\n`,
      '4:24: "onfailure" is unknown here; did you mean onFailure?',
    ],
    ['a key that is there twice', `${FIRST}  - { name: b, run: x, run: y }\n`, '4:24: the key "run" is there twice'],
    [
      'a tag that would build an object',
      `${FIRST}  - !!js/function "function () {}"\n`,
      '4:5: tags (!name) are not accepted',
    ],
    ['a command that YAML reads as a truth', `${FIRST}  - { name: b, run: true }\n`, '4:16: run is true;'],
    [
      'a mistake in the last phase of many',
      `${FIRST}  - name: b\n    run: x\n    pre: { branchMerged: { branch: main } }\n`,
      '6:12: into is missing;',
    ],
    ['nesting that would fill the stack', `${FIRST}x: ${'['.repeat(100_000)}`, '4:'],
    ['a megabyte of nothing', `${FIRST}# ${'x'.repeat(1_100_000)}\n`, '1:1: it has more than 1048576 bytes'],
    ['no text at all', '\0\0\0\0', '1:1: here is the character U+0000'],
    [
      'the name of a phase that is there twice',
      `${FIRST}  - { name: first, run: x }\n`,
      '4:7: another phase is called "first" too',
    ],
    ['a variable of ours', `${FIRST}env: { SIGNALBOX_URL: "memory:" }\n`, "4:8: SIGNALBOX_URL is signalbox's own"],
  ])('is refused with its place, and nothing of it runs: %s', async (_, text, told) => {
    writeFileSync(scratch.path('r.yaml'), text);
    const validated = await scratch.run('pipeline', 'validate', 'r.yaml');
    const { code, stdout, stderr } = await scratch.run('pipeline', 'run', 'r.yaml', '--id', 'x');
    expect(stderr).toContain(`r.yaml:${told}`);
    expect(stdout).toBe('');
    expect(code).toBe(64);
    expect(validated).toEqual({ code: 64, stdout: '', stderr });
    expect(existsSync(scratch.path('ran'))).toBe(false);
    expect((await scratch.run('pipeline', 'status', 'x')).code).toBe(1);
  });

  it('is refused if it asks for a variable that nobody gives', async () => {
    writeFileSync(scratch.path('r.yaml'), `${FIRST}  - { name: b, run: x, pre: { branchExists: "\${BRANCH}" } }\n`);
    const { code, stderr } = await scratch.run('pipeline', 'run', 'r.yaml');
    expect(stderr).toContain('r.yaml: BRANCH has to be given: --env BRANCH=VALUE');
    expect(code).toBe(64);
    expect(existsSync(scratch.path('ran'))).toBe(false);
  });

  it('is told by its file and place as JSON, all of it', async () => {
    writeFileSync(
      scratch.path('r.yaml'),
      `${FIRST}    timeout: soon\n  - { name: b, run: 5 }\n`.replace(
        '- { name: first, run: touch ran }',
        '- name: first\n    run: touch ran',
      ),
    );
    const { code, stdout } = await scratch.run('pipeline', 'validate', 'r.yaml', '--json');
    expect(code).toBe(64);
    expect(JSON.parse(stdout)).toMatchObject({
      file: 'r.yaml',
      ok: false,
      problems: [
        { line: 5, column: 5, message: expect.stringContaining('timeout is "soon"') as string },
        { line: 6, column: 16, message: expect.stringContaining('run is 5') as string },
      ],
    });
  });

  it.each<[string, string, string, string]>([
    ['a program that throws', 'r.mjs', 'throw new Error("boom");\n', 'r.mjs:1: it cannot be loaded: Error: boom'],
    ['a program without a runbook', 'r.mjs', 'export default 5;\n', 'r.mjs: its default export is not a runbook;'],
    [
      'a program with a wrong one',
      'r.mjs',
      'export default { name: "r", phases: [{ name: "a", run: 5 }] };\n',
      'r.mjs: phases[0].run: run is 5;',
    ],
    ['a file that is not there', 'no.yaml', '', 'signalbox: no.yaml: there is no such file'],
  ])('is told as well: %s', async (_, file, text, told) => {
    if (text !== '') writeFileSync(scratch.path(file), text);
    const { code, stderr } = await scratch.run('pipeline', 'run', file);
    expect(stderr).toContain(told);
    expect(code).toBe(64);
  });

  it('among several is found, and the others are fine', async () => {
    writeFileSync(scratch.path('a.yaml'), FIRST);
    writeFileSync(scratch.path('b.json'), '{ "name": "b", "phases": [] }');
    const { code, stdout, stderr } = await scratch.run('pipeline', 'validate', 'a.yaml', 'b.json', 'a.yaml');
    expect(stdout).toBe('a.yaml: r is fine: 1 phase: first\n'.repeat(2));
    expect(stderr).toMatch(/^b\.json:1:16: phases is \[\];/);
    expect(code).toBe(64);
  });
});

describe('a command that prints ten megabytes', () => {
  const scratch = new Scratch();
  beforeAll(built);
  afterEach(() => scratch.remove());

  it('is shown in full, and kept with its beginning and its end', async () => {
    const print = 'echo the beginning; head -c 10000000 /dev/zero | tr "\\\\0" x; echo; echo the end';
    writeFileSync(
      scratch.path('r.yaml'),
      `name: r\nphases:\n  - { name: a, run: '${print.replaceAll('\\\\', '\\')}' }\n  - { name: b, run: echo done }\n`,
    );
    const { code, stdout } = await ended(scratch);
    expect(code).toBe(0);
    expect(stdout.match(/x/g)).toHaveLength(10_000_000);
    expect(stdout).toContain('a | the end\n');
    const log = await scratch.run('pipeline', 'status', 'big', '--log', 'a');
    expect(log.stdout.length).toBeLessThan(100_000);
    expect(log.stdout).toMatch(/^── a\nthe beginning\nx+\n… \d+ bytes left out …\nx+\nthe end\n$/);
  });
});

describe('output that cannot be written', () => {
  let scratch: Scratch;
  beforeAll(built);
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(() => scratch.remove());

  it('ends the command, and leaves the pipeline to be resumed', async () => {
    writeFileSync(
      scratch.path('r.yaml'),
      'name: r\nphases:\n  - { name: a, run: "touch ran; exec sleep 100", idempotent: true }\n',
    );
    const shell = startProgram('sh', ['-c', '"$NODE" "$CLI" pipeline run r.yaml --id full > /dev/full'], {
      cwd: scratch.dir,
      env: { NODE: process.execPath, CLI, SIGNALBOX_URL: scratch.store },
    });
    expect(await shell.ended).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('stdout cannot be written') as string,
    });
    expect(await scratch.json('pipeline', 'status', 'full')).toMatchObject({ isDriven: false, endedAt: null });
  });

  it('ends a standing driver too', async () => {
    const box = await open(scratch.store, { maintains: false });
    const phases = [{ name: 'a', run: 'exec sleep 100', idempotent: true }];
    await box.pipelines.start(defineRunbook({ name: 'r', phases }), { id: 'driven', cwd: scratch.dir });
    await box.close();
    const shell = startProgram('sh', ['-c', '"$NODE" "$CLI" pipeline drive --all > /dev/full'], {
      cwd: scratch.dir,
      env: { NODE: process.execPath, CLI, SIGNALBOX_URL: scratch.store },
    });
    expect(await shell.ended).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('stdout cannot be written') as string,
    });
    expect(await scratch.json('pipeline', 'status', 'driven')).toMatchObject({ isDriven: false, endedAt: null });
  });
});

function ended(scratch: Scratch): Promise<Ended> {
  return scratch.run('pipeline', 'run', 'r.yaml', '--id', 'big');
}
