// Completion as the shells do it: each is asked what it would offer.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventNames } from 'signalbox/core';
import { isMissing } from '../support/programs.ts';
import { CLI, Scratch, startProgram } from '../support/cli.ts';

const scratch = new Scratch();

beforeAll(async () => {
  // As it is installed: under its name, on the path.
  mkdirSync(scratch.path('bin'));
  writeFileSync(scratch.path('bin', 'signalbox'), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  chmodSync(scratch.path('bin', 'signalbox'), 0o755);
  await scratch.run('lock', 'acquire', 'main-branch', '--holder', 'a');
  await scratch.run('lock', 'acquire', 'docs:public', '--holder', 'a');
  await scratch.run('lock', 'acquire', '$(touch was-run) `touch was-run` two words', '--holder', 'a');
  writeFileSync(scratch.path('release.yaml'), 'name: release\nphases: [{ name: a, run: exit 0 }]\n');
  await scratch.run('pipeline', 'run', 'release.yaml', '--id', 'release-7');
  await scratch.run('sem', 'acquire', 'builds', '--capacity', '2', '--holder', 'a');
});
afterAll(() => scratch.remove());

async function run(shell: string, script: string): Promise<string[]> {
  const env = { PATH: `${scratch.path('bin')}:${process.env['PATH'] ?? ''}`, SIGNALBOX_URL: scratch.store };
  const { stdout, stderr, code } = await startProgram(shell, ['-c', script], { env, cwd: scratch.dir }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout.split('\n').filter((line) => line !== '');
}

/** What one shell offers for each of these lines; `ask` is the script for one line, and `before` is done once. */
async function offersOf(
  shell: string,
  before: string,
  lines: readonly string[],
  ask: (line: string) => string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const AFTER_EACH = '-- that was it --';
  const script = [before, ...lines.map((line) => `${ask(line)}\necho '${AFTER_EACH}'`), 'exit 0'].join('\n');
  const offers = new Map<string, readonly string[]>();
  let offered: string[] = [];
  for (const printed of await run(shell, script)) {
    if (printed !== AFTER_EACH) offered.push(printed);
    else {
      offers.set(lines[offers.size] ?? '', offered);
      offered = [];
    }
  }
  expect(offers.size).toBe(lines.length);
  return offers;
}

/** Each line of input, and what has to be offered for it. */
const EXPECTED: readonly (readonly [string, readonly string[]])[] = [
  ['signalbox lo', ['lock']],
  ['signalbox lock ', ['acquire', 'renew', 'release', 'configure', 'show', 'list', 'break', 'upgrade', 'downgrade']],
  ['signalbox --json lock re', ['renew', 'release']],
  ['signalbox lock acquire --sh', ['--shared']],
  ['signalbox lock configure main-branch --on-stale ', ['reclaim', 'alert']],
  ['signalbox lock acquire main', ['main-branch']],
  ['signalbox sem show ', ['builds']],
  ['signalbox sem --store x acquire --cap', ['--capacity']],
  ['signalbox pipeline re', ['resume']],
  ['signalbox pipeline status ', ['release-7']],
  ['signalbox completion ', ['bash', 'zsh', 'fish']],
  ['signalbox lock acquire main-branch --ttl ', []],
];

const LINES = EXPECTED.map(([line]) => line);

describe.skipIf(isMissing('bash'))('bash', () => {
  const OTHERS = ['pipeline run rel', 'lock show ', 'lock show docs:p', 'events tail lock:ac', 'events tail '] as const;
  let offers: ReadonlyMap<string, readonly string[]>;
  const offered = (line: (typeof OTHERS)[number]): readonly string[] => offers.get(`signalbox ${line}`) ?? [];
  beforeAll(async () => {
    const lines = [...LINES, ...OTHERS.map((line) => `signalbox ${line}`)];
    offers = await offersOf(
      'bash',
      'source <(signalbox completion bash)',
      lines,
      (line) => `COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; COMPREPLY=(); _signalbox
        for one in "\${COMPREPLY[@]}"; do echo "$one"; done`,
    );
  });

  it.each(EXPECTED)('completes %j', (line, words) => {
    expect(offers.get(line)).toEqual(words);
  });

  it('completes every event', () => {
    expect(offered('events tail ')).toEqual(expect.arrayContaining([...eventNames]));
  });

  it('completes files where a runbook is wanted', () => {
    expect(offered('pipeline run rel')).toEqual(['release.yaml']);
  });

  it('offers names as they are, quoted, and never runs what is in them', async () => {
    const names = offered('lock show ');
    expect(names).toContain('main-branch');
    expect(names.some((name) => name.startsWith('\\$\\(touch'))).toBe(true);
    expect(await run('bash', 'ls was-run 2>/dev/null; exit 0')).toEqual([]);
  });

  it('goes on after a colon, where bash has split the word', () => {
    expect(offered('lock show docs:p')).toEqual(['public']);
    expect(offered('events tail lock:ac')).toEqual(['acquired']);
  });

  it('is registered for signalbox', async () => {
    expect(await run('bash', 'source <(signalbox completion bash); complete -p signalbox')).toEqual([
      'complete -F _signalbox signalbox',
    ]);
  });
});

describe.skipIf(isMissing('zsh'))('zsh', () => {
  // What zsh itself would do with the answers is replaced by printing them.
  const STUBS = `compdef() { :; }
    compadd() { [[ $1 == -a ]] && print -l -- \${(P)2}; }
    _describe() { [[ $1 == -o ]] && shift; print -l -- \${(P)2%%:*}; }`;
  let offers: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    offers = await offersOf('zsh', `${STUBS}\nsource <(signalbox completion zsh)`, LINES, (line) => {
      const words = line.split(' ');
      return `words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}; _signalbox`;
    });
  });

  it.each(EXPECTED)('completes %j', (line, words) => {
    const begun = line.split(' ').at(-1) ?? '';
    expect(offers.get(line)?.filter((word) => word.startsWith(begun))).toEqual(words);
  });
});

describe.skipIf(isMissing('fish'))('fish', () => {
  let offers: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    offers = await offersOf('fish', 'signalbox completion fish | source', LINES, (line) => `complete -C '${line}'`);
  });

  it.each(EXPECTED)('completes %j', (line, words) => {
    expect(
      offers
        .get(line)
        ?.map((offer) => offer.split('\t')[0])
        .sort(),
    ).toEqual([...words].sort());
  });
});
