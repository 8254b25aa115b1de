// The reference of the command line names every field that a command prints with --json, and every time in it is text.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';
import { CLI, Scratch, startProgram } from '../support/cli.ts';

const page = readFileSync(join(root, 'docs', 'cli.md'), 'utf8');

/** What is inside belongs to the user, or is described with the library. */
const FREE = new Set(['metadata', 'data', 'result', 'outputs', 'byResource', 'condition', 'refusal']);

const scratch = new Scratch();
afterAll(() => scratch.remove());

/** The objects that a script prints, on stderr too; `s` is `signalbox --json` on a store that no other script uses. */
async function printed(store: string, script: string): Promise<readonly unknown[]> {
  const env = { NODE: process.execPath, CLI, SIGNALBOX_URL: `file:${join(scratch.dir, 'stores', store)}` };
  const prelude = 's() { "$NODE" "$CLI" --json "$@"; return 0; }; exec 2>&1';
  const { stdout } = await startProgram('bash', ['-c', `${prelude}\n${script}`], { env, cwd: scratch.dir }).ended;
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as unknown);
}

function fieldsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(fieldsOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...(FREE.has(name) ? [] : fieldsOf(inner))]);
}

/** The names that stand in code in these sections of the page, up to the next heading. */
function namesIn(sections: readonly string[]): ReadonlySet<string> {
  const texts = sections.map((title) => new RegExp(`^#+ ${title}\n([^]*?)(?=^#|(?![^]))`, 'm').exec(page)?.[1] ?? '');
  const code = texts.flatMap((text) => [...text.matchAll(/```json\n([^]*?)```|`([^`\n]+)`/g)]);
  return new Set(code.flatMap(([, block, span]) => (block ?? span ?? '').match(/\w+/g) ?? []));
}

/** The places of numbers that are times of this year: as the page says, a time is text. */
function timesAsNumbers(value: unknown, place = ''): readonly string[] {
  if (typeof value === 'number') return Math.abs(value - Date.now()) < 365 * 86_400_000 ? [place] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => timesAsNumbers(inner, `${place}.${name}`));
}

describe('docs/cli.md names every field that is printed', () => {
  it.concurrent.each([
    {
      of: 'lock',
      sections: ['lock and sem', 'who', 'Tasks by hand', 'Errors'],
      script: `
        s lock acquire a --holder h --max-hold 10m --reason why --metadata '{"m":1}' --pid $$
        s lock acquire a --holder z --no-wait
        s lock acquire a --holder z --wait 1ms --ticket
        s lock acquire r --holder h --shared > held; cat held; token=$(grep -o '"token":[0-9]*' held | cut -d: -f2)
        s lock upgrade r --holder h --token "$token"
        s lock renew r --holder h --token "$token"
        s lock configure a --max-hold 5m
        s lock show a; s lock list; s who
        s lock release a --holder nobody; s lock release a --holder h; s lock break a --reason why`,
    },
    {
      of: 'sem',
      sections: ['lock and sem', 'who', 'Errors'],
      script: `
        s sem acquire s --capacity 4 --weight 2 --holder h
        s sem acquire s --weight 3 --holder z --wait 1ms --ticket
        s sem resize s --capacity 5; s sem configure s --ttl 60s
        s sem drain s --reason why; s sem acquire s --holder y --no-wait; s run --sem s --no-wait -- true
        s sem show s; s sem list; s sem release s --holder h`,
    },
    {
      of: 'task',
      sections: ['task', 'Tasks by hand', 'Errors'],
      script: `
        s task publish one --retries 1; s task publish two --depends-on one
        s task claim one --holder h; s task renew one --holder h; s task list --limit 1
        s task fail one --holder h --reason why
        s task run one -- echo hi
        s task claim two --holder h; s task release two --force --reason why; s task claim two --holder h
        s task fail two --holder h --reason why; s task show two; s task retry two
        s task work --exit-when-idle -- false
        s task forget one two; s task configure`,
    },
    { of: 'bus', sections: ['bus'], script: 's bus put k v; s bus get k; s bus list; s bus delete k' },
    {
      of: 'guard',
      sections: ['guard'],
      script: `s guard check -e 'lockFree: free'; s guard explain -e 'issueStatus: {id: "7", expected: done}'`,
    },
    {
      of: 'pipeline',
      sections: ['pipeline', 'Errors'],
      script: `
        printf '%s\\n' 'name: r' 'phases:' '  - name: build' '    run: echo built' '  - name: deploy' \\
          '    pre: [{lockHeld: nobody-has-it}]' '    run: "true"' > good.yaml
        echo 'phases: 3' > bad.yaml
        s pipeline validate good.yaml bad.yaml
        s pipeline run good.yaml --id p --no-wait
        s pipeline status p --log; s pipeline list; s pipeline cancel p --reason why; s pipeline forget p`,
    },
    {
      of: 'members and status',
      sections: ['members and lead', 'status', 'who', 'task', 'Tasks by hand', 'pipeline'],
      script: `
        "$NODE" "$CLI" members join m --asset x -- sh -c \\
          'for what in "members list" "members watch --for 1ms" status; do "$NODE" "$CLI" --json $what; done'`,
    },
    {
      of: 'events, maintain, doctor, export, import and token',
      sections: ['events tail', 'maintain', 'doctor', 'export and import', 'serve and token', 'Errors'],
      script: `
        s events denied; s maintain; s doctor; s export out; s import out --store "file:$PWD/other"
        s token create me --role viewer --link http://127.0.0.1:7300; s token list; s token local`,
    },
  ])('by $of', async ({ of, sections, script }) => {
    const names = namesIn(sections);
    const objects = await printed(of.replaceAll(/\W+/g, '-'), script);
    expect(objects.length).toBeGreaterThan(0);
    expect([...new Set(fieldsOf(objects))].filter((field) => !names.has(field))).toEqual([]);
    expect(timesAsNumbers(objects)).toEqual([]);
  });
});
