// Against the real GitHub, by whoever has a token and a repository made for it with an open issue #1:
//
//     SIGNALBOX_GITHUB_LIVE=owner/repo npm test -- live

import { describe, expect, it } from 'vitest';
import { LockManager, OctokitClient } from 'signalbox/github';

const githubRepo = process.env['SIGNALBOX_GITHUB_LIVE'];

describe.runIf(githubRepo !== undefined)('the real GitHub', () => {
  const client = (): OctokitClient => new OctokitClient({ githubRepo: githubRepo as string });
  const ref = `refs/signalbox/live/${process.pid}-${Date.now()}`;

  const commit = async (
    message: string,
    ...parents: readonly string[]
  ): Promise<{ sha: string; dateMs: number; serverMs: number }> => {
    const made = await client().createCommit(`${message} ${ref}`, parents);
    if (made.kind !== 'ok') throw new Error(made.message);
    return { ...made.value, serverMs: made.date?.ms ?? 0 };
  };

  it('dates commits by its own clock, and lets one of eight move a ref of our namespace', async () => {
    const root = await commit('root');
    expect(Math.abs(root.dateMs - root.serverMs)).toBeLessThan(5_000);
    expect(await client().createRef(ref, root.sha)).toMatchObject({ kind: 'ok' });
    const next = await Promise.all(Array.from({ length: 8 }, (_, place) => commit(`next ${place}`, root.sha)));
    const moved = await Promise.all(next.map(({ sha }) => client().updateRef(ref, sha)));
    expect(moved.filter(({ kind }) => kind === 'ok')).toHaveLength(1);
    const tip = await client().getRef(ref);
    const from = tip.kind === 'ok' ? tip.value.sha : null;
    const to = (await commit('last', from ?? '')).sha;
    expect(await client().updateRefs([{ ref, from: root.sha, to }])).toMatchObject({ kind: 'refused' });
    expect(await client().updateRefs([{ ref, from, to }])).toMatchObject({ kind: 'ok' });
    expect(await client().deleteRef(ref)).toMatchObject({ kind: 'ok' });
  });

  it('lists refs again without cost while nothing changes', async () => {
    const one = client();
    await one.listRefs('refs/signalbox/locks/');
    const { remaining = 0 } = one;
    await one.listRefs('refs/signalbox/locks/');
    expect(one.remaining).toBe(remaining);
  });

  it('locks issue #1, and gives way to nobody else', async () => {
    await using locks = new LockManager({ githubRepo: githubRepo as string });
    const result = await locks.acquireLock(1, { workerId: 'live:1', nodeId: 'live' });
    expect(result).toMatchObject({ success: true });
    const other = new LockManager({ githubRepo: githubRepo as string });
    expect(
      await other.acquireLock(1, { workerId: 'live:2', nodeId: 'live', conflictStrategy: 'fail-fast' }),
    ).toMatchObject({ success: false });
  });

  it('tells whether commits count as content: a hundred of them in a minute', async () => {
    const kinds: string[] = [];
    for (let count = 0; count < 100; count++)
      kinds.push((await client().createCommit(`content ${count} ${ref}`, [])).kind);
    console.log(`commits that were limited: ${kinds.filter((kind) => kind === 'limited').length} of ${kinds.length}`);
    expect(kinds.every((kind) => kind === 'ok' || kind === 'limited')).toBe(true);
  });
});
