/** The engine on a cluster that loses its leader, or that has too few members left. */
import { type Operation, prefixed, type Store, Value } from 'signalbox/store';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { follow } from '../../src/store/follow.ts';
import { openEtcd } from '../../src/store/etcd/open.ts';
import { EtcdCluster } from '../support/etcd/cluster.ts';
import type { Member } from '../support/etcd/member.ts';
import { isMissing } from '../support/programs.ts';

const put = (key: string, text = 'x'): Operation => ({ do: 'put', key, value: Value.text(text) });
const apply = (store: Store, ...success: readonly Operation[]): ReturnType<Store['transaction']> =>
  store.transaction({ compare: [], success, failure: [] });
const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error);

describe.skipIf(isMissing('etcd'))('a cluster of three', () => {
  let cluster: EtcdCluster;
  const cleanUp: (() => unknown)[] = [];

  beforeAll(async () => {
    cluster = await EtcdCluster.start();
  });
  afterAll(() => cluster.stop());
  afterEach(async () => {
    for (const each of cleanUp.splice(0).reverse()) await each();
  });

  function opened(...members: readonly Member[]): Store {
    const endpoints = members.map(({ port }) => ({ host: '127.0.0.1', port }));
    const store = openEtcd({ endpoints, requestTimeoutMs: 3000, random: () => 0 });
    cleanUp.push(() => store.close());
    return store;
  }

  it('loses its leader, and who follows it sees every write that was confirmed, once and in order', async () => {
    const leader = await cluster.leader();
    const others = cluster.members.filter((member) => member !== leader);
    // Both begin at the one that is to die.
    const [writer, reader] = [opened(leader, ...others), opened(leader, ...others)];
    const seen: string[] = [];
    let waiting: { text: string; resolve: () => void } | undefined;
    const abort = new AbortController();
    cleanUp.push(() => abort.abort());
    const follower = {
      changes({ changes }: { changes: readonly { kind: string; pair?: { value: Value } }[] }): void {
        for (const { pair } of changes) seen.push(pair?.value.text ?? '-');
        if (waiting !== undefined && seen.includes(waiting.text)) waiting.resolve();
      },
      resync: async () => (await reader.health()).revision,
    };
    await follow(reader, systemClock, prefixed('r/'), follower as never, abort.signal);
    const { id } = await writer.grantLease(30_000);
    const confirmed: string[] = [];
    const unknown: string[] = [];
    const killed = leader.kill();
    for (let i = 0; i < 40; i++) {
      const text = `n${i}`;
      const code = await apply(writer, put('r/a', text)).then(() => 'done', codeOf);
      expect(['done', 'outcome-unknown', 'unavailable']).toContain(code);
      if (code === 'done') confirmed.push(text);
      if (code === 'outcome-unknown') unknown.push(text);
    }
    await killed;
    await apply(writer, put('r/a', 'the end'));
    await new Promise<void>((resolve) => {
      waiting = { text: 'the end', resolve };
      if (seen.includes('the end')) resolve();
    });
    expect(seen.filter((text) => !unknown.includes(text))).toEqual([...confirmed, 'the end']);
    expect(new Set(seen).size).toBe(seen.length);
    expect(confirmed.length).toBeGreaterThan(30);
    expect(await writer.keepLeaseAlive(id)).toMatchObject({ id });
    await leader.start();
  });

  it('with one member left refuses writes as certainly not applied, and ends its watches', async () => {
    const [left, ...others] = cluster.members as [Member, ...Member[]];
    const store = opened(left);
    await apply(store, put('r/b', 'before'));
    const abort = new AbortController();
    cleanUp.push(() => abort.abort());
    const watch = await store.watch({ key: 'r/b' }, 'now', abort.signal);
    const ended = watch[Symbol.asyncIterator]()
      .next()
      .then(() => 'a change', codeOf);
    await Promise.all(others.map((member) => member.kill()));
    expect(await ended).toBe('unavailable');
    // On a busy machine the member may still have hoped for an election, and may apply such a write later.
    let unknown = 0;
    const refusal = async (): Promise<unknown> => {
      const code = await apply(store, put('r/b', 'never')).then(() => 'done', codeOf);
      if (code === 'outcome-unknown') unknown++;
      return code;
    };
    await expect.poll(refusal).toBe('unavailable');
    await Promise.all(others.map((member) => member.start()));
    await cluster.leader();
    const { results } = await apply(store, { do: 'read', key: 'r/b' });
    const [version] = results.flatMap((result) =>
      result.do === 'read' ? result.pairs.map((pair) => pair.version) : [],
    );
    expect(version).toBeGreaterThanOrEqual(1);
    expect(version).toBeLessThanOrEqual(1 + unknown);
  });
});
