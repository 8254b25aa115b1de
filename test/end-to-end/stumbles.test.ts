// What new users ran into: each answer says what is the matter, and what to type next.

import { existsSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, Scratch, startProgram } from '../support/cli.ts';

let scratch: Scratch;
beforeAll(() => void (scratch = new Scratch()));
afterAll(() => scratch.remove());

/** What the commands print, on stderr too, and their exit codes where they fail; `signalbox` is written `s`. */
async function transcript(script: string): Promise<string> {
  const env = { NODE: process.execPath, CLI, SIGNALBOX_URL: scratch.store };
  const prelude = 's() { "$NODE" "$CLI" "$@"; local code=$?; [ $code = 0 ] || echo "($code)"; return $code; }';
  const options = { env, cwd: scratch.dir };
  return (await startProgram('bash', ['-c', `${prelude}\nexec 2>&1\n${script}`], options).ended).stdout;
}

describe('from a shell', () => {
  it('a stale hold that no process may take says that a person decides, and how, to those who wait and to those who look', async () => {
    const told = await transcript(`
      s lock configure prod --on-stale alert > /dev/null
      s lock acquire prod --holder agent:7 --ttl 2s --reason deploying > token
      until s who prod | grep -q 'silent'; do sleep 0.2; done
      s who prod
      s lock acquire prod --holder b --no-wait
      s run --lock prod --wait 1ms -- true
      s lock acquire prod --holder agent:7 --no-wait
      s lock break prod --reason 'switched off'`);
    const decides = 'a person decides: signalbox lock break prod --reason WHY';
    const [, , note, busy, busyCode, late, lateCode, own, ownCode] = told.split('\n');
    // The lease has ended, and with it what the process said about itself there: the hold keeps who took it, and where.
    expect(note).toMatch(new RegExp(`^  ${decides} · deploying · \\S+ in ${scratch.dir} · on \\S+ · detached$`));
    expect(busy).toMatch(
      new RegExp(`^signalbox: lock/prod: held by agent:7 \\(deploying\\) for .*, stale; ${decides}$`),
    );
    expect(late).toMatch(new RegExp(`^signalbox: lock/prod: not granted within 1 ms; held by .*, stale; ${decides}$`));
    // Also to the holder itself, which comes back too late.
    expect(own).toMatch(
      new RegExp(`^signalbox: lock/prod: held by agent:7 \\(deploying\\) for .*, stale; ${decides}$`),
    );
    expect([busyCode, lateCode, ownCode]).toEqual(['(75)', '(75)', '(75)']);
  });

  it('files in place of directories, and directories that are not there, are mistakes of the call', async () => {
    const told = await transcript(`
      touch file; s export file; s export file/in/it; s export /proc/nothing/here; s import nowhere; s import file
      s export made/for/it`);
    expect(told.replaceAll(scratch.dir, 'HERE').trim().split('\n')).toEqual([
      'signalbox: file: this is a file; name a directory',
      '(64)',
      'signalbox: file/in/it: a part of this path is a file; name a directory',
      '(64)',
      'signalbox: /proc/nothing/here: it does not exist, and cannot be made; name another directory',
      '(64)',
      'signalbox: nowhere/locks.json: there is no such file; name a directory that export wrote',
      '(64)',
      'signalbox: file/locks.json: a part of this path is a file; name a directory',
      '(64)',
      expect.stringMatching(/^wrote .* to made\/for\/it$/),
    ]);
  });

  it('a store whose place is a file, or below one, says so and how to name another', async () => {
    const told = await transcript(`
      touch taken; s who --store file:taken; s lock acquire a --holder a --store file:taken/below`);
    const other = '  to name another place: --store file:DIRECTORY, or SIGNALBOX_URL=file:DIRECTORY';
    expect(told.replaceAll(scratch.dir, 'HERE').trim().split('\n')).toEqual([
      ...['signalbox: HERE/taken is a file; expected a directory', other, '(69)'],
      ...['signalbox: HERE/taken/below: a part of this path is a file; expected a directory', other, '(69)'],
    ]);
  });

  it('a pipeline that failed says how to see why, and how to start it again', async () => {
    const told = await transcript(`
      printf '%s\n' 'name: g' 'phases:' '  - name: test' '    run: exit 3' > g.yaml
      s pipeline run g.yaml --id 'g 1' > /dev/null`);
    expect(told.trim().split('\n')).toEqual([
      expect.stringMatching(/^signalbox: pipeline\/g 1: failed: .*test/),
      "  see: signalbox pipeline status 'g 1' --log",
      "  start it again: signalbox pipeline resume 'g 1' --from test",
    ]);
  });

  it('a semaphore that does not exist is not made by resize, and a holder that asks for more hears what it has', async () => {
    const told = await transcript(`
      s sem acquire builds --capacity 4 --holder a > token
      s sem resize build --capacity 8
      s sem acquire builds --weight 2 --holder a --json | grep -o '"outcome":"[a-z-]*"'
      s sem acquire builds --weight 2 --holder a --json | grep -o '"outcome":"[a-z-]*"'
      script -qec '"$NODE" "$CLI" sem acquire builds --weight 3 --holder a' /dev/null | tr -d '\\r'
      s sem list --names`);
    expect(told.trim().split('\n')).toEqual([
      'signalbox: semaphore/build does not exist; did you mean builds?',
      '  to make it: signalbox sem configure build --capacity 8',
      '(64)',
      '"outcome":"increased"',
      '"outcome":"already-held"',
      'signalbox: semaphore/builds: a now has 3 slots; the same hold, renewed',
      expect.stringMatching(/^\d+$/),
      'builds',
    ]);
  });

  it('keys of the bus are listed and deleted', async () => {
    const told = await transcript(`
      s bus put app/colour red; s bus put app/size 7; s bus put other x
      s bus list app/; s bus list --names; s bus delete app/size; s bus delete app/size
      s bus list app/ --json | grep -o '"key":"[^"]*","value":"[^"]*"'; s bus list nothing`);
    expect(told.trim().split('\n')).toEqual([
      'KEY         VALUE',
      'app/colour  red',
      'app/size    7',
      ...['app/colour', 'app/size', 'other'],
      'signalbox: there is no key app/size',
      '(1)',
      '"key":"app/colour","value":"red"',
      'No key begins with nothing.',
    ]);
  });

  it('the newest events of the past are printed, of more than were asked for', async () => {
    const told = await transcript(`
      for n in 1 2 3; do s lock acquire n$n --holder a > token; done
      s events tail lock:acquired --since 1h --no-follow -n 2 | grep -o 'lock/n.'`);
    expect(told).toBe('lock/n2\nlock/n3\n');
  });

  it('a command of a guard does not run while the rest of the guard fails already', async () => {
    const told = await transcript(`
      s guard explain -e '{all: [{fileExists: nix}, {command: {cmd: [touch, ran]}}]}'
      s guard check -e 'issueStatus: {id: "7", expected: done}'`);
    expect(told).toMatch(
      /^✗ all of\n {2}✗ file "nix" does not exist\n {2}\? command: .*everything else has to pass first\n\(1\)\n/,
    );
    expect(told).toMatch(/no issue tracker is set up; name one with --issues github:OWNER\/NAME.*\n\(69\)\n$/);
    expect(existsSync(scratch.path('ran'))).toBe(false);
  });

  it('a task that has lost its last worker is shown as failed, with the reason, before any process has written that down', async () => {
    const told = await transcript(`
      s task publish deadly --data '{}' > /dev/null
      for n in 1 2 3; do s task run deadly --ttl 2s --wait 1h -- sh -c 'kill -9 $PPID' > /dev/null; done
      until s task show deadly | grep -q '^status *failed'; do sleep 0.2; done
      s task show deadly | grep -E '^(status|reason)'; s task list --status failed | grep -o '3 workers.*claim'`);
    expect(told.trim().split('\n').slice(-3)).toEqual([
      'status      failed',
      expect.stringMatching(/^reason +3 workers died or lost the claim while working on it, the last one run:/),
      '3 workers died or lost the claim',
    ]);
  });

  it('a standing worker says why a task failed whose workers died', async () => {
    const told = await transcript(`
      s task publish deadly2 --data '{"lossLimit":1}' > /dev/null
      s task run deadly2 --ttl 2s -- sh -c 'kill -9 $PPID' > /dev/null
      "$NODE" "$CLI" task work -- true > said 2>&1 & worker=$!
      until grep -q deadly2 said; do sleep 0.1; done; kill $worker; wait $worker; cat said`);
    expect(told).toContain('signalbox: task/deadly2: failed: its worker died or lost the claim while working on it');
  });

  it('resume with an answer does not ask again, and a phase that does not exist is a mistake of the call', async () => {
    const told = await transcript(`
      printf '%s\n' 'name: r' 'phases:' '  - name: build' '    run: test -e ok && exit 0; kill -9 $PPID; sleep 60' > r.yaml
      printf '%s\n' 'name: f' 'phases:' '  - name: test' '    run: exit 3' > f.yaml
      s pipeline run f.yaml --id f > /dev/null; s pipeline resume f --from tests
      s pipeline run r.yaml --id r > /dev/null; touch ok
      s pipeline resume r > /dev/null; s pipeline resume r --rerun`);
    const lines = told.trim().split('\n');
    const refused = lines.findIndex((line) => line.includes('there is no phase'));
    expect(lines.slice(refused, refused + 2)).toEqual([
      'signalbox: pipeline/f: there is no phase "tests"; it can start again from test',
      '(64)',
    ]);
    const resumed = lines.slice(lines.lastIndexOf('pipeline/r: driven from here, at build') + 1);
    expect(resumed.slice(0, 2)).toEqual(['build: continues', 'build: begins (run 2)']);
  });

  it('words of other tools, a lock without its option, another capacity and HEAD as a branch lead to what to type', async () => {
    const told = await transcript(`
      s run --lock a --timeout 5s -- true 2>&1 | head -1; s semaphore list 2>&1 | head -1
      s run main -- make test
      s sem configure pool --capacity 3 > /dev/null; s run --sem pool/4 -- true
      s run --lock a --guard 'branchMerged: {branch: topic, into: HEAD}' -- true`);
    expect(told.trim().split('\n')).toEqual([
      'signalbox: unknown option --timeout; did you mean --wait?',
      'signalbox: unknown command "semaphore"; did you mean sem?',
      'signalbox: nothing to hold is named; use --lock NAME or --sem NAME: signalbox run --lock main -- make',
      '  see: signalbox run --help',
      '(64)',
      'signalbox: semaphore/pool: the capacity is 3, not 4; write --sem pool, or change it: signalbox sem resize pool --capacity 4',
      '(64)',
      expect.stringMatching(/into.*HEAD.*expected the name of a branch, such as main$/),
      '(64)',
    ]);
  });

  it('a pipeline is not started in a directory that is none, nor without a value that it needs', async () => {
    writeFileSync(
      scratch.path('var.yaml'),
      'name: v\nphases: [{name: a, pre: [{fileExists: "${BAR}"}], run: "true"}]\n',
    );
    const told = await transcript(`
      export SIGNALBOX_URL=file:$PWD/pipelines
      s pipeline run var.yaml --id v --no-wait --env BAR=x -C nowhere
      s pipeline resume nothing -C var.yaml
      s pipeline run var.yaml --id v
      s pipeline run var.yaml --id v --json
      s pipeline list`);
    expect(told.split('\n')).toEqual([
      ...['signalbox: --dir "nowhere" is not a directory', '(64)'],
      ...['signalbox: --dir "var.yaml" is not a directory', '(64)'],
      ...['signalbox: var.yaml: BAR has to be given: --env BAR=VALUE', '(64)'],
      ...['{"file":"var.yaml","ok":false,"problems":[{"message":"BAR has to be given: --env BAR=VALUE"}]}', '(64)'],
      expect.stringContaining('There are no pipelines.'),
      '',
    ]);
  });

  it('a pipeline that is resumed does not tell an old reason as if it were a new one', async () => {
    writeFileSync(
      scratch.path('go.yaml'),
      'name: go\nphases: [{name: deploy, pre: [{fileExists: ./go}], run: "true"}]\n',
    );
    const told = await transcript(`
      s pipeline run go.yaml --id go --no-wait > /dev/null 2>&1
      touch go
      s pipeline resume go`);
    expect(told.split('\n').slice(1, 4)).toEqual([
      'deploy: was blocked: deploy.pre: file "./go" does not exist',
      'deploy:   checks at once, and again every 2 s at file:./go',
      'deploy: begins',
    ]);
  });

  it('the name of a semaphore is not taken for a lock, nor the other way round', async () => {
    const told = await transcript(`
      export SIGNALBOX_URL=file:$PWD/names
      s lock acquire sem/api --holder a
      s lock upgrade semaphore/api --holder a --token 1
      s sem show lock/api
      s run --lock sem/api -- true
      s lock list --names
      s lock acquire lock/sem/api --holder a > /dev/null
      s lock acquire docs/api --holder a > /dev/null
      s lock list --names`);
    expect(told.split('\n')).toEqual([
      'signalbox: <name> is "sem/api"; expected a lock, and this names a semaphore: signalbox sem acquire api. A lock that is really called so is lock/sem/api',
      ...['  see: signalbox lock acquire --help', '(64)'],
      'signalbox: <name> is "semaphore/api"; expected a lock, and this names a semaphore. A lock that is really called so is lock/semaphore/api',
      ...['  see: signalbox lock upgrade --help', '(64)'],
      'signalbox: <name> is "lock/api"; expected a semaphore, and this names a lock: signalbox lock show api. A semaphore that is really called so is semaphore/lock/api',
      ...['  see: signalbox sem show --help', '(64)'],
      'signalbox: --lock "sem/api" names a semaphore: use --sem api. A lock that is really called so is lock/sem/api',
      ...['  see: signalbox run --help', '(64)'],
      ...['docs/api', 'sem/api', ''],
    ]);
  });

  it('what run writes behind a name is not taken for a part of it where a lock or a semaphore is made', async () => {
    const told = await transcript(`
      export SIGNALBOX_URL=file:$PWD/forms
      s lock acquire docs:shared --holder a
      s lock acquire docs:exclusive --holder a
      s sem acquire gpu=2/4 --holder a
      s sem configure gpu=2/4 --ttl 60s
      s lock acquire lock/docs:shared --holder a > /dev/null
      s lock release docs:shared --holder a
      s lock list --names; s sem list --names`);
    const help = (command: string): readonly string[] => [`  see: signalbox ${command} --help`, '(64)'];
    expect(told.trim().split('\n')).toEqual([
      'signalbox: <name> is "docs:shared"; only run takes it in this form; here: signalbox lock acquire docs --shared. A lock that is really called so is lock/docs:shared',
      ...help('lock acquire'),
      'signalbox: <name> is "docs:exclusive"; only run takes it in this form; here: signalbox lock acquire docs. A lock that is really called so is lock/docs:exclusive',
      ...help('lock acquire'),
      `signalbox: <name> is "gpu=2/4"; only run takes it in this form; here: signalbox sem acquire gpu --weight 2 --capacity 4. A semaphore that is really called so is 'semaphore/gpu=2/4'`,
      ...help('sem acquire'),
      `signalbox: <name> is "gpu=2/4"; only run takes it in this form; here: signalbox sem configure gpu --capacity 4. A semaphore that is really called so is 'semaphore/gpu=2/4'`,
      ...help('sem configure'),
      ...['lock/docs:shared: released', 'docs:shared'],
    ]);
  });

  it('files that are missing, a list as a guard and ids that are too long are told in words', async () => {
    const told = await transcript(`
      s witness verify /nope
      printf '%s\n' '- lockFree: main' '- fileExists: go' > list.yaml
      s guard check list.yaml
      printf '%s\n' 'name: g' 'phases: [{name: a, run: "true"}]' > g.yaml
      s pipeline run g.yaml --id $(printf 'p%.0s' $(seq 230)) | sed 's/p\\{50,\\}/P/'`);
    expect(told.trim().split('\n')).toEqual([
      ...['signalbox: "/nope": there is no such file', '(64)'],
      'signalbox: list.yaml:1:1: the guard is a list of 2; expected one condition: {all: [ … ]} if all of these must hold, {any: [ … ]} if one is enough',
      '(64)',
      expect.stringMatching(/expected a name of 1 to 180 printable characters$/),
      '(64)',
    ]);
  });

  it('a first use without a capacity, and a condition in the place of a file, lead to what to type', async () => {
    const told = await transcript(`
      s sem acquire unused --holder a
      s guard check 'lockFree: main'`);
    expect(told.trim().split('\n')).toEqual([
      'signalbox: semaphore/unused: nobody has used this semaphore yet, so its capacity must be named: --capacity NUMBER',
      '(64)',
      'signalbox: lockFree: main: there is no such file',
      "  a condition goes after -e: -e 'lockFree: main'",
      '(64)',
    ]);
  });

  it('a store that --store names and that is not there is told of, to programs too', async () => {
    const told = await transcript(`
      s lock list --store file:nowhere
      s lock list --store file:nowhere --json`);
    expect(told.replaceAll(scratch.dir, 'HERE').trim().split('\n')).toEqual([
      'There is no store at file:HERE/nowhere yet: check the path, if there should be one. No lock has been used.',
      'signalbox: there is no store at file:HERE/nowhere yet',
      '{"locks":[],"malformed":[]}',
    ]);
  });

  it('a pipeline that nobody drives is listed by the word that the list has for it', async () => {
    const told = await transcript(`
      export SIGNALBOX_URL=file:$PWD/stopped
      printf '%s\n' 'name: w' 'phases: [{name: a, run: "echo $$ > pid; exec sleep 1000"}]' > w.yaml
      "$NODE" "$CLI" pipeline run w.yaml --id w > out & driver=$!
      while ! [ -s pid ]; do sleep 0.05; done
      kill -9 $driver $(cat pid); wait $driver
      s pipeline list --status stopped --names
      s pipeline list --status done`);
    expect(told.trim().split('\n').slice(-2)).toEqual(['w', 'No pipeline is done.']);
  });
});
