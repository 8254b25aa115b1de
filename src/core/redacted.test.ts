import { describe, expect, it } from 'vitest';
import { redacted, redactedWords } from './redacted.ts';
import { shown } from './shown.ts';

describe('a password in what is shown', () => {
  it.each([
    ['etcd://me:P@a', 'etcd://me@a'],
    ['etcd//me:P@a', 'etcd//me@a'],
    ['//me:P@a', '//me@a'],
    ['--stroe=etcd://me:P@a', '--stroe=etcd://me@a'],
    ['etcd:me:P@a', 'etcd:me@a'],
    ['ETCDS://me:P@a', 'ETCDS://me@a'],
    ['https://me:P@Q:P/P@a', 'https://me@a'],
    ['etcd://me:P\nP @a', 'etcd://me@a'],
  ])('is hidden: %s', (value, safe) => {
    expect(redacted(value)).toBe(safe);
    expect(shown(value)).toBe(JSON.stringify(safe));
    expect(shown({ url: value })).not.toContain('P');
    // A cut value may end before the @.
    expect(shown(value.replace('P', 'P'.repeat(100)))).not.toContain('P');
  });

  it('is hidden in a message, and nothing else is', () => {
    expect(redactedWords('no etcd://me:P@a here, held by agent:7@b')).toBe('no etcd://me@a here, held by agent:7@b');
  });

  it.each(['etcd://a:2379', 'etcd://me@a', 'file:/a:b@c', 'agent:7@host', 'a:b@c'])('%s has none', (value) => {
    expect(redacted(value)).toBe(value);
  });
});
