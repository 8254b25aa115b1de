import { describe, expect, it } from 'vitest';
import { Failure } from '../../failure.ts';
import { prefixed, type KeyRange } from '../contract.ts';
import { keyspace } from './keyspace.ts';

const { etcdKey, etcdStart, etcdEnd, ourKey } = bound(keyspace('signalbox/', ''));

function bound(keys: ReturnType<typeof keyspace>): typeof keys {
  return {
    etcdKey: (key) => keys.etcdKey(key),
    etcdStart: (range) => keys.etcdStart(range),
    etcdEnd: (range) => keys.etcdEnd(range),
    ourKey: (key) => keys.ourKey(key),
  };
}

const inEtcd = (range: KeyRange): (string | undefined)[] => [etcdStart(range), etcdEnd(range)];

function isRefused(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    return Failure.is(error, 'invalid');
  }
}

describe('our own keys', () => {
  it('are under the prefix, and come back as they were', () => {
    expect(etcdKey('r/lock/x')).toBe('signalbox/r/lock/x');
    expect(ourKey('signalbox/r/lock/x')).toBe('r/lock/x');
  });

  it('are found by ranges that do not leave the prefix', () => {
    expect(inEtcd(prefixed('q/'))).toEqual(['signalbox/q/', 'signalbox/q0']);
    expect(inEtcd({ key: 'q/', end: '\0' })).toEqual(['signalbox/q/', 'signalbox0']);
    expect(inEtcd({ key: '!', end: '/' })).toEqual(['signalbox/!', 'signalbox//']);
    expect(inEtcd({ key: 'a' })).toEqual(['signalbox/a', undefined]);
  });
});

describe('keys that begin with a slash', () => {
  it('are what everybody sees in etcd', () => {
    expect(etcdKey('//tasks/7/owner')).toBe('/tasks/7/owner');
    expect(etcdKey('/deploys')).toBe('deploys');
    expect(ourKey('/tasks/7/owner')).toBe('//tasks/7/owner');
    expect(inEtcd(prefixed('//tasks/'))).toEqual(['/tasks/', '/tasks0']);
  });

  it('may have a prefix of their own, and what lies outside of it is nobody’s here', () => {
    const keys = keyspace('signalbox/', '/team-a');
    expect(keys.etcdKey('//tasks/7')).toBe('/team-a/tasks/7');
    expect(keys.ourKey('/team-a/tasks/7')).toBe('//tasks/7');
    expect(keys.ourKey('/team-b/tasks/7')).toBeUndefined();
    expect([keys.etcdStart(prefixed('/')), keys.etcdEnd(prefixed('/'))]).toEqual(['/team-a', '/team-b']);
  });

  it('reach into our own neither by name nor by range', () => {
    expect(isRefused(() => etcdKey('/signalbox/r/x'))).toBe(true);
    expect(isRefused(() => etcdEnd(prefixed('/signalbox/')))).toBe(true);
    expect(isRefused(() => etcdEnd(prefixed('/s')))).toBe(true);
    expect(isRefused(() => etcdEnd(prefixed('/')))).toBe(true);
    expect(isRefused(() => etcdEnd({ key: '/signalbox/x', end: '/z' }))).toBe(true);
    expect(inEtcd({ key: '/a', end: '/signalbox/' })).toEqual(['a', 'signalbox/']);
    expect(inEtcd({ key: '/signalbox0', end: '0' })).toEqual(['signalbox0', '\0']);
  });

  it('have a name', () => {
    expect(isRefused(() => etcdKey('/'))).toBe(true);
  });

  it('are empty in a range that ends before it begins, and not without end', () => {
    expect(inEtcd({ key: '/b', end: '/' })).toEqual(['b', 'b']);
    expect(inEtcd({ key: '/b', end: '/a' })).toEqual(['b', 'a']);
  });
});

it('a range over both kinds is refused, because in etcd they lie apart', () => {
  for (const range of [
    { key: '!', end: 'a' },
    { key: '\0', end: '\0' },
    { key: '/a', end: 'b' },
    { key: '/a', end: '\0' },
  ])
    expect(isRefused(() => etcdEnd(range))).toBe(true);
});

it('without a prefix every key is itself', () => {
  const keys = keyspace('', '');
  expect([keys.etcdKey('/a'), keys.etcdKey('a'), keys.ourKey('/a')]).toEqual(['/a', 'a', '/a']);
  expect([keys.etcdStart({ key: '\0', end: '\0' }), keys.etcdEnd({ key: '\0', end: '\0' })]).toEqual(['\0', '\0']);
});

it('prefixes that could not be told apart are refused', () => {
  for (const [prefix, plain] of [
    ['a/', 'a/b/'],
    ['', 'x'],
    ['a b', ''],
    ['ä', ''],
  ] as const)
    expect(isRefused(() => keyspace(prefix, plain))).toBe(true);
});
