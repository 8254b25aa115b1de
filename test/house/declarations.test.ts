// What users see of the package: each name has a comment that says what it is for, and nothing of the inside shows.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { type Declaration, declarationsIn, exportedBy } from './declarations.ts';
import { root } from './sources.ts';

const dist = join(root, 'dist');
const ENTRIES = [
  'index',
  'testing/index',
  'github/index',
  'metrics/index',
  'opentelemetry/index',
  'store/index',
  'client/index',
] as const;

function undocumented(entry: string): readonly string[] {
  return exportedBy(join(dist, `${entry}.d.ts`)).flatMap((declared) => [
    ...(declared.isDocumented ? [] : [declared.name]),
    ...declared.members.filter((member) => !member.isDocumented).map((member) => `${declared.name}.${member.name}`),
  ]);
}

describe('the declarations of the package', () => {
  it.each(ENTRIES)('have a comment on everything that %s exports, and on each of its members', (entry) => {
    expect([...new Set(undocumented(entry))]).toEqual([]);
  });

  it('are read by a check that finds what has no comment', () => {
    const found = declarationsIn(join(import.meta.dirname, 'declarations-without-comments.txt'));
    expect(found.map(({ name, isDocumented, parents }) => [name, isDocumented, parents])).toEqual([
      ['Told', true, []],
      ['Untold', false, ['Told', 'Partial']],
      ['Hidden', false, []],
    ]);
    expect(
      found.flatMap(({ members }) => members.filter((each) => !each.isDocumented)).map(({ name }) => name),
    ).toEqual(['bare', 'method', '[Symbol.asyncDispose]']);
  });
});

describe('an object that users have', () => {
  let box: Signalbox;
  const objects = new Map<string, object>();

  beforeAll(async () => {
    box = await open('memory:');
    const lock = box.lock('a');
    const semaphore = box.semaphore('a', { capacity: 2 });
    await box.tasks.publish('a', {});
    const joined = await box.members.join('m');
    for (const [name, object] of Object.entries({
      Signalbox: box,
      Lock: lock,
      LockHold: await lock.acquire(),
      Semaphore: semaphore,
      SemaphoreHold: await semaphore.acquire(),
      HoldSet: await box.acquireAll([{ lock: 'b' }]),
      Tasks: box.tasks,
      TaskClaim: await box.tasks.claim('a'),
      Members: box.members,
      Guards: box.guards,
      Pipelines: box.pipelines,
      Bus: box.bus,
      ...('membership' in joined && { Membership: joined.membership }),
    })) {
      objects.set(name, object);
    }
  });

  afterAll(() => box.close());

  const declared = new Map(exportedBy(join(dist, 'index.d.ts')).map((one) => [one.name, one]));

  function declaredNames(one: Declaration): readonly string[] {
    const parents = one.parents.flatMap((parent) => declared.get(parent) ?? []);
    return [...one.members.map(({ name }) => name), ...parents.flatMap(declaredNames)];
  }

  it.each([
    'Signalbox',
    'Lock',
    'LockHold',
    'Semaphore',
    'SemaphoreHold',
    'HoldSet',
    'Tasks',
    'TaskClaim',
    'Members',
    'Membership',
    'Guards',
    'Pipelines',
    'Bus',
  ])('shows nothing that its declarations do not: %s', (name) => {
    const one = declared.get(name);
    const object = objects.get(name);
    if (one === undefined || object === undefined) throw new Error(`there is no ${name}`);
    const known = new Set(declaredNames(one));
    expect(namesOf(object).filter((each) => !known.has(each))).toEqual([]);
  });
});

/** Own and inherited names, as `for … in`, a debugger or a REPL finds them. */
function namesOf(object: object): readonly string[] {
  const names: string[] = [];
  for (let at = object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    names.push(...Reflect.ownKeys(at).map(nameOf));
  }
  // Node asks for it when it prints an object.
  return names.filter((name) => name !== 'constructor' && name !== 'Symbol(nodejs.util.inspect.custom)');
}

function nameOf(key: string | symbol): string {
  return key === Symbol.asyncDispose ? '[Symbol.asyncDispose]' : String(key);
}
