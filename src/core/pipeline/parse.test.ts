import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eventNames } from '../event-names.ts';
import { wakePatterns } from '../guard/wake.ts';
import { patternProblem } from '../event-names.ts';
import { MOST_PHASES, parseRunbook } from './parse.ts';
import type { Phase, Runbook } from './runbook.ts';

function runbookOf(value: unknown, dialect?: 'code'): Runbook {
  const parsed = parseRunbook(value, dialect);
  if (!parsed.ok) throw new Error(told(value, dialect).join('\n'));
  return parsed.runbook;
}

/** `phases.0.run: run is missing; …`. */
function told(value: unknown, dialect?: 'code'): readonly string[] {
  const parsed = parseRunbook(value, dialect);
  return parsed.ok ? [] : parsed.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

const withPhase = (phase: object): unknown => ({ name: 'r', phases: [{ name: 'p', run: 'true', ...phase }] });
const phaseOf = (phase: object): Phase => runbookOf(withPhase(phase)).phases[0] as Phase;
const toldOf = (phase: object): readonly string[] => told(withPhase(phase));

describe('a runbook', () => {
  test('becomes what the machine takes, with everything filled in', () => {
    expect(
      runbookOf({
        name: 'release',
        env: { TARGET: 'staging', COUNT: 3, DRY: false },
        phases: [
          { name: 'plan', run: './plan.sh' },
          {
            name: 'merge',
            run: 'git merge --no-ff "$BRANCH"',
            pre: [
              { lockFree: 'deploy' },
              { id: 'tests-green', condition: { command: { cmd: 'npm test' } }, onFailure: { fail: 'tests are red' } },
            ],
            post: { branchMerged: { branch: 'feature', into: 'main' } },
            holds: { locks: ['main-branch', 'docs:shared'], semaphores: ['agents=1/2'] },
            wakeOn: ['lock:released'],
            onFailure: 'warn',
            timeout: '10m',
            retries: { times: 2, backoff: '5s' },
            idempotent: true,
            env: { A: 'b' },
          },
        ],
      }),
    ).toEqual({
      name: 'release',
      env: { TARGET: 'staging', COUNT: '3', DRY: 'false' },
      phases: [
        {
          name: 'plan',
          run: { shell: './plan.sh' },
          pre: [],
          post: [],
          holds: [],
          retries: 0,
          backoffMs: 1000,
          idempotent: false,
          env: {},
        },
        {
          name: 'merge',
          run: { shell: 'git merge --no-ff "$BRANCH"' },
          pre: [
            { id: 'merge.pre', condition: { lockFree: 'deploy' }, onFailure: 'warn', wakeOn: ['lock:released'] },
            {
              id: 'tests-green',
              condition: { command: { cmd: 'npm test' } },
              onFailure: { fail: 'tests are red' },
              wakeOn: ['lock:released'],
            },
          ],
          post: [
            {
              id: 'merge.post',
              condition: { branchMerged: { branch: 'feature', into: 'main' } },
              onFailure: 'warn',
              wakeOn: ['lock:released'],
            },
          ],
          holds: [
            { lock: 'main-branch' },
            { lock: 'docs', mode: 'shared' },
            { semaphore: 'agents', weight: 1, capacity: 2 },
          ],
          onFailure: 'warn',
          timeoutMs: 600_000,
          retries: 2,
          backoffMs: 5000,
          idempotent: true,
          env: { A: 'b' },
        },
      ],
    });
  });

  test('names guards that have no id by their place', () => {
    const { pre } = phaseOf({
      pre: [{ lockFree: 'a' }, { id: 'mine', condition: { lockFree: 'b' } }, { lockFree: 'c' }],
    });
    expect(pre.map(({ id }) => id)).toEqual(['p.pre', 'mine', 'p.pre.3']);
  });

  test.each<[string, object, unknown]>([
    [
      'names, as on the command line',
      { locks: 'lock/a', semaphores: 's/4' },
      [{ lock: 'a' }, { semaphore: 's', capacity: 4 }],
    ],
    [
      'objects',
      {
        locks: [
          { name: 'a', mode: 'shared' },
          { name: 'b:c', mode: 'exclusive' },
        ],
        semaphores: { name: 's', weight: 2 },
      },
      [{ lock: 'a', mode: 'shared' }, { lock: 'b:c' }, { semaphore: 's', weight: 2 }],
    ],
    [
      'a map of weights',
      { semaphores: { agents: 1, ram: { weight: 8, capacity: 32 } } },
      [
        { semaphore: 'agents', weight: 1 },
        { semaphore: 'ram', weight: 8, capacity: 32 },
      ],
    ],
    ['nothing', {}, []],
  ])('says what a phase holds as %s', (_, holds, expected) => {
    expect(phaseOf({ holds }).holds).toEqual(expected);
  });

  test.each<[unknown, number]>([
    ['250ms', 250],
    ['1h', 3_600_000],
    [90, 90_000],
    [1.5, 1500],
    ['2', 2000],
  ])('takes %j as a time limit', (timeout, ms) => {
    expect(phaseOf({ timeout }).timeoutMs).toBe(ms);
  });

  test('retries a guard after a while, and a command so often', () => {
    expect(phaseOf({ pre: { lockFree: 'm' }, onFailure: { retry: '30s' }, retries: 3 })).toMatchObject({
      pre: [{ onFailure: { retry: 30_000 } }],
      onFailure: { retry: 30_000 },
      retries: 3,
      backoffMs: 1000,
    });
  });
});

describe('a mistake in a runbook is reported with its place, what is wrong and what is accepted', () => {
  const run = 'a line for the shell, of 1 to 65536 characters without NUL';
  test.each<[string, unknown, readonly string[]]>([
    ['no object', 'name', [': the runbook is "name"; expected an object with name, phases, env']],
    [
      'nothing in it',
      {},
      ['name: name is missing; expected name, phases, env', 'phases: phases is missing; expected name, phases, env'],
    ],
    [
      'a misspelt key',
      { name: 'r', phase: [], phases: [{ name: 'p', run: 'x' }] },
      ['phase: "phase" is unknown here; did you mean phases? Expected name, phases, env'],
    ],
    [
      'no phases',
      { name: 'r', phases: [] },
      ['phases: phases is []; expected a list of at least one phase, each {name, run, …}'],
    ],
    [
      'phases as a map',
      { name: 'r', phases: { a: 'x' } },
      ['phases: phases is {"a":"x"}; expected a list of at least one phase, each {name, run, …}'],
    ],
    [
      'a phase that is no object',
      { name: 'r', phases: ['make'] },
      [
        'phases.0: phases[0] is "make"; expected an object with name, run, pre, post, holds, wakeOn, onFailure, timeout, retries, idempotent, env',
      ],
    ],
    [
      'two phases of a name',
      {
        name: 'r',
        phases: [
          { name: 'a', run: 'x' },
          { name: 'a', run: 'y' },
        ],
      },
      ['phases.1.name: another phase is called "a" too; expected a name of its own'],
    ],
    [
      'a name that is too long',
      { name: 'x'.repeat(101), phases: [{ name: 'p', run: 'x' }] },
      [`name: name "${'x'.repeat(76)}… has 101 characters; expected 1 to 100 printable characters`],
    ],
    [
      'a capacity that changes',
      {
        name: 'r',
        phases: [
          { name: 'a', run: 'x', holds: { semaphores: 's/2' } },
          { name: 'b', run: 'x', holds: { semaphores: 's/3' } },
        ],
      },
      ['phases.1.holds: the semaphore s has a capacity of 3 here and of 2 before; expected the same everywhere'],
    ],
    [
      'a runbook that no store takes',
      {
        name: 'r',
        env: Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`V${at}`, 'x'.repeat(65_000)])),
        phases: [{ name: 'p', run: 'x' }],
      },
      [expect.stringMatching(/^: the runbook has \d+ characters as JSON; expected at most 262144/) as string],
    ],
  ])('%s', (_, value, problems) => {
    expect(told(value)).toEqual(problems);
  });

  test.each<[string, object, readonly string[]]>([
    [
      'a misspelt key',
      { onfailure: 'warn' },
      [
        'phases.0.onfailure: "onfailure" is unknown here; did you mean onFailure? Expected name, run, pre, post, holds, wakeOn, onFailure, timeout, retries, idempotent, env',
      ],
    ],
    [
      'true, which YAML takes for a truth',
      { run: true },
      [`phases.0.run: run is true; expected ${run}; quote it: run: "true"`],
    ],
    ['nothing to run', { run: ' \n' }, [`phases.0.run: run is " \\n"; expected ${run}`]],
    ['a list to run', { run: ['a'] }, [`phases.0.run: run is ["a"]; expected ${run}`]],
    [
      'no duration',
      { timeout: 'soon' },
      [
        'phases.0.timeout: timeout is "soon"; expected a number of seconds, or a number with a unit: 250ms, 60s, 5m, 1h, 2d',
      ],
    ],
    ['no time at all', { timeout: 0 }, ['phases.0.timeout: timeout is 0; expected 1 ms or more']],
    [
      'half a retry',
      { retries: 0.5 },
      ['phases.0.retries: retries is 0.5; expected a whole number from 0 to 1000, or {times: 2, backoff: 5s}'],
    ],
    [
      'retries without a number',
      { retries: { backoff: '5s' } },
      ['phases.0.retries.times: times is missing; expected times, backoff'],
    ],
    [
      'yes, which is a word',
      { idempotent: 'yes' },
      ['phases.0.idempotent: idempotent is "yes"; expected true or false'],
    ],
    [
      'what to do, unknown',
      { onFailure: 'ignore' },
      ['phases.0.onFailure: onFailure is "ignore"; expected block, warn, {retry: 30s} or {fail: a message}'],
    ],
    [
      'two things to do',
      { onFailure: { retry: '1s', fail: 'x' } },
      [
        'phases.0.onFailure: onFailure is {"retry":"1s","fail":"x"}; expected block, warn, {retry: 30s} or {fail: a message}',
      ],
    ],
    [
      'an event that never comes',
      { wakeOn: ['lock:relased'] },
      [
        'phases.0.wakeOn.0: wakeOn[0] is "lock:relased"; did you mean lock:released? Expected an event such as lock:released, all of a kind such as task:*, or *',
      ],
    ],
    [
      'an event as a map',
      { wakeOn: { lock: 'released' } },
      [
        'phases.0.wakeOn: wakeOn is {"lock":"released"}; expected an event such as lock:released, all of a kind such as task:*, or *',
      ],
    ],
    [
      'a variable without a value',
      { env: { A: null } },
      ['phases.0.env.A: A is null; expected text, a number, true or false; an empty one is ""'],
    ],
    ['no name of a variable', { env: { 'A-B': 1 } }, ['phases.0.env.A-B: "A-B" is no name of a variable']],
    [
      'a variable of ours',
      { env: { SIGNALBOX_TOKEN: 1 } },
      ["phases.0.env.SIGNALBOX_TOKEN: SIGNALBOX_TOKEN is signalbox's own: names must not begin with SIGNALBOX_"],
    ],
    [
      'a lock twice',
      { holds: { locks: ['a', 'a:shared'] } },
      ['phases.0.holds.locks.1: the lock a is held twice by this phase; expected once'],
    ],
    [
      'more than there is',
      { holds: { semaphores: ['s=3/2'] } },
      ['phases.0.holds.semaphores.0: a weight of 3 of the semaphore s can never be had: its capacity is 2'],
    ],
    [
      'a mode nearly meant',
      { holds: { locks: ['a:share'] } },
      ['phases.0.holds.locks.0: "a:share": did you mean a:shared? A lock of that very name is a:share:exclusive'],
    ],
    [
      'half a slot',
      { holds: { semaphores: { s: 0.5 } } },
      ['phases.0.holds.semaphores.s: s is 0.5; expected a whole number of at least 1'],
    ],
    [
      'lock for locks',
      { holds: { lock: 'a' } },
      ['phases.0.holds.lock: "lock" is unknown here; did you mean locks? Expected locks, semaphores'],
    ],
    [
      'a wrong condition, deep inside',
      { pre: [{ all: [{ branchMerged: { branch: 'x' } }] }] },
      ['phases.0.pre.0.all.0.branchMerged.into: into is missing; expected branch, into'],
    ],
    [
      'a misspelt condition',
      { post: { lockfree: 'm' } },
      [
        expect.stringMatching(
          /^phases\.0\.post\.lockfree: "lockfree" is not a condition; did you mean lockFree\?/,
        ) as string,
      ],
    ],
    [
      'a condition beside what belongs to a guard',
      { pre: { lockFree: 'm', onFailure: 'warn' } },
      ['phases.0.pre.lockFree: "lockFree" is next to "onFailure"; expected {condition: {lockFree: …}, …}'],
    ],
    [
      'a guard without a condition',
      { pre: { id: 'x' } },
      ['phases.0.pre.condition: condition is missing; expected condition, id, onFailure, wakeOn'],
    ],
    [
      'a guard of the same id',
      { pre: { id: 'p.post', condition: { lockFree: 'm' } }, post: { lockFree: 'n' } },
      ['phases.0.post: another guard has the id "p.post" too; expected an id of its own'],
    ],
    [
      'a guard that is a word',
      { pre: 'lockFree' },
      [expect.stringMatching(/^phases\.0\.pre: pre is "lockFree"; expected a condition such as/) as string],
    ],
    [
      'milliseconds, which only code can say',
      { timeoutMs: 5 },
      [expect.stringMatching(/^phases\.0\.timeoutMs: "timeoutMs" is unknown here; did you mean timeout\?/) as string],
    ],
  ])('%s', (_, phase, problems) => {
    expect(toldOf(phase)).toEqual(problems);
  });

  test('all of them at once', () => {
    expect(
      told({
        name: '',
        phases: [
          { nam: 'a', run: 'x' },
          { name: 'b', run: 3 },
        ],
      }).map((line) => line.split(':')[0]),
    ).toEqual(['name', 'phases.0.name', 'phases.0.nam', 'phases.1.run']);
  });

  test(`more than ${MOST_PHASES} phases`, () => {
    const phases = Array.from({ length: MOST_PHASES + 1 }, (_, at) => ({ name: `p${at}`, run: 'x' }));
    expect(told({ name: 'r', phases })).toEqual(['phases: 201 phases are too many; expected at most 200']);
    expect(told({ name: 'r', phases: phases.slice(1) })).toEqual([]);
  });
});

describe('a runbook in code', () => {
  test('may bring functions along, and say milliseconds as such', () => {
    const { phases } = runbookOf(
      {
        name: 'r',
        phases: [
          {
            name: 'p',
            run: () => undefined,
            timeoutMs: 5,
            retries: { times: 1, backoffMs: 7 },
            onFailure: { retryMs: 9 },
          },
        ],
      },
      'code',
    );
    expect(phases[0]).toMatchObject({ run: { function: true }, timeoutMs: 5, backoffMs: 7, onFailure: { retry: 9 } });
  });

  test.each<[string, object, string]>([
    [
      'a bare number',
      { timeout: 5000 },
      'phases.0.timeout: timeout is 5000; expected text such as "30s" or "5m"; milliseconds go under timeoutMs',
    ],
    [
      'both',
      { timeout: '5s', timeoutMs: 5000 },
      'phases.0.timeoutMs: timeout and timeoutMs are both there; expected one',
    ],
  ])('cannot say a duration as %s', (_, phase, message) => {
    expect(told(withPhase(phase), 'code')).toEqual([message]);
  });

  test('has no functions if it came from a file', () => {
    expect(toldOf({ run: () => undefined })).toHaveLength(1);
  });
});

test('the events that wake conditions are known by name', () => {
  const leaves = [
    { lockFree: 'm' },
    { lockHeld: 'm' },
    { semaphoreAvailable: { name: 's', slots: 1 } },
    { pipelineInPhase: { pipeline: 'a', phase: 'b' } },
    { pipelineComplete: 'a' },
    { taskDone: 't' },
    { memberAlive: 'm' },
  ];
  const patterns = leaves.flatMap((leaf) => [...wakePatterns(leaf), ...wakePatterns({ not: leaf })]);
  expect(patterns.length).toBeGreaterThan(10);
  expect(patterns.filter((pattern) => !eventNames.includes(pattern))).toEqual([]);
  expect([...patterns, '*', 'task:*'].map((pattern) => patternProblem(pattern, 'it')).filter(Boolean)).toEqual([]);
});

describe('whatever JSON says', () => {
  const keys = [
    'name',
    'run',
    'phases',
    'pre',
    'post',
    'holds',
    'locks',
    'semaphores',
    'env',
    'condition',
    'all',
    'not',
    'retries',
    'times',
    'timeout',
    'onFailure',
    'retry',
    'wakeOn',
    '__proto__',
  ];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie('tree'), { maxKeys: 5 }),
    ),
  }));

  test('is a runbook, or told what it is not', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          tree,
          tree.map((phase) => ({ name: 'r', phases: [phase] })),
        ),
        (value) => {
          const parsed = parseRunbook(value);
          if (parsed.ok) expect(parseRunbook(JSON.parse(JSON.stringify(value))).ok).toBe(true);
          else expect(parsed.problems.every(({ message }) => message.length > 0)).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
