// On a terminal a pipeline is a picture that is drawn again in its place, and the terminal is left as it was.

import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isMissing } from '../support/programs.ts';
import { built, isAlive, Place, type Started } from '../support/run-processes.ts';

const CTRL_C = '\x03';
const HIDDEN = '\x1b[?25l';
const SHOWN = '\x1b[?25h';
const hasNoTerminals = isMissing('script') || isMissing('bash');

describe.skipIf(hasNoTerminals)('a pipeline on a terminal', () => {
  let place: Place;
  let shell: Started;
  beforeAll(built);
  beforeEach(async () => {
    place = new Place();
    writeFileSync(place.path('box'), '#!/bin/sh\nexec "$NODE" "$ENTRY" "$@"\n', { mode: 0o755 });
    const env = { TERM: 'xterm', HISTFILE: '', PATH: `${place.directory}:${process.env['PATH']}` };
    shell = place.start('script', ['-qfec', 'bash --norc --noprofile -i', '/dev/null'], { env });
    type('stty -echo columns 100 rows 30; echo ready');
    await shell.prints(/^ready/m);
  });
  afterEach(async () => {
    shell.write('\nexit\n');
    await place.leave();
  });

  const type = (line: string): void => shell.write(`${line}\n`);
  const runbook = (text: string): void => writeFileSync(place.path('r.yaml'), text);

  it('shows its phases, what they print and what it waits for, in colours, and ends with how it went', async () => {
    runbook(
      'name: r\nphases:\n  - { name: plan, run: echo planning }\n  - { name: merge, pre: { lockFree: m }, run: echo merging }\n',
    );
    const box = await place.open();
    const hold = await box.lock('m').acquire({ holder: 'agent:7' });
    type('box pipeline run r.yaml --id t; echo code $?');
    await shell.prints(
      /\x1b\[33m▸\x1b\[39m merge +blocked[^]*merge\.pre: lock "m" is held by agent:7[^]*checks again after lock:released/,
    );
    await hold.release();
    await shell.prints(/code 0/);
    expect(shell.stdout).toContain('planning');
    expect(shell.stdout).toMatch(/\x1b\[32mdone · [^]*\x1b\[32m✓\x1b\[39m plan [^]*\x1b\[32m✓\x1b\[39m merge/);
    expect(shell.stdout).toContain(HIDDEN);
    expect(shell.stdout.lastIndexOf(SHOWN)).toBeGreaterThan(shell.stdout.lastIndexOf(HIDDEN));
  });

  it('has no colours if nobody wants them', async () => {
    runbook('name: r\nphases:\n  - { name: plan, run: exit 0 }\n');
    type('NO_COLOR=1 box pipeline run r.yaml --id t; echo code $?');
    await shell.prints(/code 0/);
    expect(shell.stdout).toMatch(/t {2}done/);
    expect(shell.stdout).not.toMatch(/\x1b\[3\dm/);
  });

  it('is lines on a terminal that cannot be drawn on', async () => {
    runbook('name: r\nphases:\n  - { name: plan, run: exit 0 }\n');
    type('TERM=dumb box pipeline run r.yaml --id t; echo code $?');
    await shell.prints(/plan: begins\s[^]*pipeline\/t: done[^]*code 0/);
    expect(shell.stdout).not.toContain(HIDDEN);
  });

  it('ends its command when the terminal is closed, and can be resumed', async () => {
    runbook('name: r\nphases:\n  - { name: plan, run: "echo $$ > pid; echo begun; exec sleep 100" }\n');
    const box = await place.open();
    let isLeft = (_: unknown): void => undefined;
    const left = new Promise((resolve) => (isLeft = resolve));
    await box.on('pipeline:blocked', (event) => isLeft(event));
    type('box pipeline run r.yaml --id t');
    await shell.prints(/│ begun/);
    shell.kill('SIGKILL');
    await left;
    expect(isAlive(Number(readFileSync(place.path('pid'), 'utf8')))).toBe(false);
    expect(await box.pipelines.show('t')).toMatchObject({ state: 'blocked', blocked: { on: 'person' } });
  });

  it('gives the cursor back at Ctrl-C, and says how to go on', async () => {
    runbook('name: r\nphases:\n  - { name: plan, run: "echo begun; exec sleep 100" }\n');
    type('box pipeline run r.yaml --id t');
    await shell.prints(/│ begun/);
    shell.write(CTRL_C);
    await shell.prints(/stopping its command[^]*run the phase again: signalbox pipeline resume t --rerun[^]*[$#] $/);
    type('echo code $?');
    await shell.prints(/code 130/);
    expect(shell.stdout.lastIndexOf(SHOWN)).toBeGreaterThan(shell.stdout.lastIndexOf(HIDDEN));
  });
});
