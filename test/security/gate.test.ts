/** What a command is given passes its gate unchanged, and nobody else reads it on the way. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GatedChild } from '../../src/host/index.ts';
import { built, type Ended, Place } from '../support/run-processes.ts';

let place: Place;
beforeAll(built);
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.leave());

/** A script that starts `run` itself: Node, which runs this test, could not pass on what is no UTF-8. */
const bash = (script: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  place.start('bash', ['-c', `run() { "$NODE" "$ENTRY" run --lock a -- "$@"; }\n${script}`], { stdin: '', env }).ended;

describe('a secret in the environment', () => {
  const odd = 'npm_config_//packages.example.org/:_authToken';

  it('is in no list of processes while the command waits at its gate, nor for another user at any time', async () => {
    const env = { PATH: process.env['PATH'], [odd]: 'SECRET123' };
    const child = await GatedChild.start('/bin/cat', ['cat'], env, { leads: true, mark: 'm', isCaptured: true });
    try {
      const seen = execFileSync('cat', [`/proc/${child.pid}/cmdline`]).toString();
      expect(seen).not.toBe('');
      expect(seen).not.toContain('SECRET123');
      if (process.getuid?.() === 0) {
        const asNobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups', 'sh', '-c'];
        const look = `cat /proc/${child.pid}/cmdline; cat /proc/${child.pid}/environ 2>&1; ps -eo args ww`;
        expect(execFileSync('setpriv', [...asNobody, `${look}; true`]).toString()).not.toContain('SECRET123');
      }
    } finally {
      await child.abandon();
    }
  });

  it('reaches the command, whatever its name', async () => {
    const { stdout } = await place.run(['--lock', 'a', '--', 'env', '-0'], { env: { [odd]: 'SECRET123', '-i': 'x' } })
      .ended;
    expect(stdout.split('\0')).toEqual(expect.arrayContaining([`${odd}=SECRET123`, '-i=x']));
  });
});

describe('a command', () => {
  it('whose name has an equals sign is the one that runs, with an odd variable too', async () => {
    copyFileSync('/bin/echo', place.path('a=b'));
    for (const env of [{}, { 'odd.name': '1' }]) {
      const { stdout, code } = await bash('PATH="$PWD:$PATH"; run a=b echo wrong', env);
      expect({ stdout, code }).toEqual({ stdout: 'echo wrong\n', code: 0 });
    }
  });

  it('gets arguments and variables that are no UTF-8 byte for byte', async () => {
    const show =
      'printf %s "$1" | od -An -v -tx1 | tr -d " \\n"; echo; tr "\\0" "\\n" </proc/$$/environ | LC_ALL=C grep -a "^[Rn]" | od -An -c';
    const { stdout, stderr, code } = await bash(
      `all=$(for i in $(seq 255); do printf '\\\\x%02x' $i; done)
       eval "all=\\$'$all'"
       env -i PATH="$PATH" SIGNALBOX_URL="$SIGNALBOX_URL" XDG_CACHE_HOME="$PWD" LC_ALL=nowhere \
         RAW=$'a\\xffb' $'n\\xffm=1' $'n\\xfem=\\xfd' "$NODE" "$ENTRY" run --lock a -- sh -c '${show}' sh "$all"`,
    );
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    const [bytes, ...lines] = stdout.split('\n');
    expect(bytes).toBe(Array.from({ length: 255 }, (_, at) => (at + 1).toString(16).padStart(2, '0')).join(''));
    const variables = lines.join('').replaceAll(/\s+/g, '');
    for (const variable of ['RAW=a377b\\n', 'n377m=1\\n', 'n376m=375\\n']) expect(variables).toContain(variable);
  });

  it('is found by a name, on a path and in a directory that are no UTF-8', async () => {
    const { stdout, stderr } = await bash(
      `d=$PWD/$'d\\xff'; mkdir "$d"; cp /bin/echo "$d"/$'e\\xfe'; cp /bin/echo "$d"/plain; cd "$d"
       run ./$'e\\xfe' one; PATH="$d:$PATH"; run plain two`,
    );
    expect({ stdout, stderr }).toEqual({ stdout: 'one\ntwo\n', stderr: '' });
  });

  it('begins although a variable of the user means something to shells, and has it unchanged', async () => {
    const env = { OPTIND: 'abc', IFS: 'x', PPID: '5', SHELLOPTS: 'noexec', TMOUT: '1', PERL5OPT: '-Mnone', LANG: 'no' };
    const { stdout, stderr, code } = await place.run(['--lock', 'a', '--', 'env', '-0'], { env }).ended;
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    expect(stdout.split('\0')).toEqual(expect.arrayContaining(Object.entries(env).map((each) => each.join('='))));
  });

  it('that cannot be executed after all ends with the codes of a shell', async () => {
    mkdirSync(place.path('bin'));
    const { stdout } = await bash(
      `printf '#!/no/such\\n' > bin/x; printf 'echo script' > bin/y; chmod +x bin/*
       run bin/x 2>/dev/null; echo $?; run bin/y; echo $?`,
      { 'odd.name': '1' },
    );
    expect(stdout).toBe('127\nscript\n0\n');
  });
});
