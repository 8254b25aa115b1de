// Completion as the shells do it: each is asked what it would offer.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

/** Each line of input, and what has to be offered for it. */
const EXPECTED: readonly (readonly [string, readonly string[]])[] = [
  ['signalbox lo', ['lock']],
  ['signalbox lock ', ['acquire', 'renew', 'release', 'show', 'list', 'break']],
  ['signalbox --json lock re', ['renew', 'release']],
  ['signalbox lock acquire --sh', ['--shared']],
  ['signalbox lock acquire main', ['main-branch']],
  ['signalbox sem show ', ['builds']],
  ['signalbox sem --store x acquire --cap', ['--capacity']],
  ['signalbox pipeline re', ['resume']],
  ['signalbox pipeline status ', ['release-7']],
  ['signalbox completion ', ['bash', 'zsh', 'fish']],
  ['signalbox lock acquire main-branch --ttl ', []],
];

describe.skipIf(isMissing('bash'))('bash', () => {
  const offered = (line: string): Promise<string[]> =>
    run(
      'bash',
      `source <(signalbox completion bash); COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; _signalbox
       for one in "\${COMPREPLY[@]}"; do echo "$one"; done; exit 0`,
    );

  it.each(EXPECTED)('completes %j', async (line, words) => {
    expect(await offered(line)).toEqual(words);
  });

  it('completes files where a runbook is wanted', async () => {
    expect(await offered('signalbox pipeline run rel')).toEqual(['release.yaml']);
  });

  it('offers names as they are, quoted, and never runs what is in them', async () => {
    const names = await offered('signalbox lock show ');
    expect(names).toContain('main-branch');
    expect(names.some((name) => name.startsWith('\\$\\(touch'))).toBe(true);
    expect(await run('bash', 'ls was-run 2>/dev/null; exit 0')).toEqual([]);
  });

  it('goes on after a colon, where bash has split the word', async () => {
    expect(await offered('signalbox lock show docs:p')).toEqual(['public']);
    expect(await offered("signalbox events tail 'lock:ac".replace("'", ''))).toEqual(['acquired']);
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
  const offered = async (line: string): Promise<string[]> => {
    const words = line.split(' ');
    const script = `${STUBS}\nsource <(signalbox completion zsh)
      words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}; _signalbox; exit 0`;
    return (await run('zsh', script)).filter((word) => word.startsWith(words.at(-1) ?? ''));
  };

  it.each(EXPECTED)('completes %j', async (line, words) => {
    expect(await offered(line)).toEqual(words);
  });
});

describe.skipIf(isMissing('fish'))('fish', () => {
  it.each(EXPECTED)('completes %j', async (line, words) => {
    const lines = await run('fish', `signalbox completion fish | source; complete -C '${line}'`);
    expect(lines.map((offer) => offer.split('\t')[0]).sort()).toEqual([...words].sort());
  });
});
