// Which children work under which holds: what the next holder has to know before it starts its own.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Hold } from '../../src/runtime/holds/hold.ts';
import type { Offspring } from '../../src/host/index.ts';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';

const child = (mark: string): Offspring => ({
  pid: 42,
  leads: true,
  mark,
  process: { boot: 'b', space: 's', pid: 42, start: '1', group: true },
});
const terms = { graceMs: 5000, outlivesHold: false };

describe.each(transports)('notes of children on $transport', ({ atOnce }) => {
  let fleet: Fleet;
  let ann: Process;
  let bob: Process;
  beforeEach(async () => {
    fleet = new Fleet(atOnce);
    [ann, bob] = (await fleet.startAll('ann', 'bob')) as [Process, Process];
  });

  const marksOf = (entered: Awaited<ReturnType<Process['box']['children']['enter']>>): unknown =>
    entered.kind === 'entered' ? entered.leftovers.map(({ resource, note }) => [resource, note.child.mark]) : entered;

  it('tell the next holder of a child that the one before left when it died', async () => {
    const hold = await ann.box.lock('a').acquire();
    expect(marksOf(await ann.box.children.enter([hold], child('one'), terms))).toEqual([]);
    ann.crash();
    const next = bob.box.lock('a').acquire();
    await fleet.clock.advance(TTL_MS);
    expect(marksOf(await bob.box.children.enter([await next], child('two'), terms))).toEqual([['lock/a', 'one']]);
  });

  it('tell nothing once they are forgotten', async () => {
    const hold = await ann.box.lock('a').acquire();
    const entered = await ann.box.children.enter([hold], child('one'), terms);
    await ann.box.children.forget(entered.kind === 'entered' ? entered.keys : []);
    await hold.release();
    const next = await bob.box.lock('a').acquire();
    expect(marksOf(await bob.box.children.enter([next], child('two'), terms))).toEqual([]);
  });

  it('do not take those who share the resource for left behind', async () => {
    const one = await ann.box.lock('a').acquire({ mode: 'shared' });
    await ann.box.children.enter([one], child('one'), terms);
    const two = await bob.box.lock('a').acquire({ mode: 'shared' });
    expect(marksOf(await bob.box.children.enter([two], child('two'), terms))).toEqual([]);
    await one.release();
    expect(marksOf(await bob.box.children.enter([two], child('three'), terms))).toEqual([['lock/a', 'one']]);
  });

  it('know a reader who became the writer as the same one', async () => {
    const hold = await ann.box.lock('a').acquire({ mode: 'shared', holder: 'ann' });
    await ann.box.children.enter([hold], child('one'), terms);
    await hold.upgrade();
    const inner = await ann.box.lock('a').acquire({ holder: 'ann' });
    expect(marksOf(await ann.box.children.enter([inner], child('inner'), terms))).toEqual([]);
  });

  it('are refused to one whose hold was taken before its child was let go, and nothing is left of them', async () => {
    const hold = await ann.box.lock('a').acquire();
    ann.link.holdNews();
    const taken = await bob.box.lock('a').acquire({ strategy: 'force', reason: 'test', holder: 'bob' });
    // It has not heard of it, but the record knows.
    expect(hold.isValid).toBe(true);
    expect(await ann.box.children.enter([hold], child('one'), terms)).toEqual({ kind: 'lost', resource: 'lock/a' });
    expect(marksOf(await bob.box.children.enter([taken], child('two'), terms))).toEqual([]);
  });

  it('say of a child under a re-entry that it belongs to the outer hold', async () => {
    const outer = await ann.box.lock('a').acquire({ holder: 'ann' });
    const inner: Hold = await bob.box.lock('a').acquire({ holder: 'ann' });
    expect(marksOf(await bob.box.children.enter([inner], child('inner'), terms))).toEqual([]);
    await outer.release();
    const next = await bob.box.lock('a').acquire();
    expect(marksOf(await bob.box.children.enter([next], child('next'), terms))).toEqual([['lock/a', 'inner']]);
  });
});
