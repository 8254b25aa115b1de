// Two agents that share a merge lock; one dies while it holds it, another while it waits. With the processes that coding
// agents start, and over HTTP with two servers of one store.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { Scratch, type Started } from '../support/cli.ts';
import { type Agent, httpAgent, mcpServerOn, processAgent, urlAgent } from './agents.ts';

let scratch: Scratch;
let box: Signalbox;
const agents: Agent[] = [];
const servers: Started[] = [];

beforeEach(async () => {
  scratch = new Scratch();
  box = await open(scratch.store);
});
afterEach(async () => {
  await Promise.allSettled(agents.splice(0).map((agent) => agent.close()));
  for (const { child } of servers) child.kill('SIGKILL');
  await Promise.all(servers.splice(0).map(({ ended }) => ended));
  await box.close();
  scratch.remove();
});

const MERGE = { name: 'merge', waitSeconds: 600 };

async function waiters(): Promise<readonly string[]> {
  const { locks } = await box.survey({ resource: { kind: 'lock', name: 'merge' } });
  return locks.flatMap(({ waiting }) => waiting.map(({ holder }) => holder));
}

describe('agents that share a merge lock', () => {
  it('go on when one of them is killed with it, and when one is killed in line', async () => {
    const [holding, waiting, next] = await Promise.all([
      processAgent('2026-07-28', scratch),
      processAgent('2025-11-25', scratch),
      processAgent('2026-07-28', scratch),
    ]);
    agents.push(holding.agent, waiting.agent, next.agent);
    expect(await holding.agent.call('acquire', { ...MERGE, holder: 'claude' })).toMatchObject({ status: 'granted' });
    void waiting.agent.call('acquire', { ...MERGE, holder: 'codex' });
    await expect.poll(waiters).toEqual(['codex']);
    const asking = next.agent.call('acquire', { ...MERGE, holder: 'cursor' });
    await expect.poll(waiters).toEqual(['codex', 'cursor']);
    process.kill(waiting.pid(), 'SIGKILL');
    await expect.poll(waiters).toEqual(['cursor']);
    process.kill(holding.pid(), 'SIGKILL');
    expect(await asking).toMatchObject({ status: 'granted', holder: 'cursor' });
    const { events } = await next.agent.call('events', { pattern: 'lock:*' });
    expect(JSON.stringify(events)).toContain('lock:reclaimed');
    // The agent ends as agents do: its client closes stdin.
    await next.agent.close();
    await expect.poll(() => box.lock('merge').isFree()).toBe(true);
  });

  it('go on over HTTP at any server of the store, and when one of them dies with the lock or in line', async () => {
    // Real servers; the times of dead agents are shortened below, where that is possible.
    const serve = async (): Promise<string> => {
      const started = scratch.start('serve', '--port', '0', '--json');
      servers.push(started);
      let text = '';
      started.child.stdout?.on('data', (data: string) => (text += data));
      await started.printed('"url"');
      return (JSON.parse(text) as { url: string }).url;
    };
    const [one, two] = await Promise.all([serve(), serve()]);
    const token = (await scratch.run('token', 'local')).stdout.trim();
    const claude = await urlAgent('2026-07-28', `${one}/mcp`, token);
    const codex = await urlAgent('2025-11-25', `${two}/mcp`, token);
    agents.push(claude, codex);
    const held = await claude.call('acquire', { ...MERGE, holder: 'claude' });
    expect(held).toMatchObject({ status: 'granted', ttlMs: 600_000, maxHoldMs: 1_800_000 });
    const gone = new AbortController();
    const dying = claude.call('acquire', { ...MERGE, holder: 'dying' }, { signal: gone.signal }).catch(() => 'dead');
    await expect.poll(waiters).toEqual(['dying']);
    const asking = codex.call('acquire', { ...MERGE, holder: 'codex' });
    await expect.poll(waiters).toEqual(['dying', 'codex']);
    gone.abort();
    expect(await dying).toBe('dead');
    await expect.poll(waiters).toEqual(['codex']);
    // A server dies too; the lock is released at the other one.
    expect(await codex.call('release', { name: 'merge', holder: 'claude', token: held['token'] })).toMatchObject({
      status: 'released',
    });
    expect(await asking).toMatchObject({ status: 'granted', holder: 'codex' });
    const here = await urlAgent('2026-07-28', `${one}/mcp`, token);
    agents.push(here);
    const waiting = here.call('acquire', { ...MERGE, holder: 'claude' });
    await expect.poll(waiters).toEqual(['claude']);
    servers[0]?.child.kill('SIGKILL');
    await expect(waiting).rejects.toThrow();
    // Its place is kept: asked again at the other server, it stands in line once, and is served there.
    const again = codex.call('acquire', { ...MERGE, holder: 'claude' });
    await codex.call('release', { name: 'merge', holder: 'codex', token: (await asking)['token'] });
    expect(await again).toMatchObject({ status: 'granted', holder: 'claude' });
    expect(await waiters()).toEqual([]);
  });

  it('get the lock over HTTP once a dead agent has been silent for its time', async () => {
    const other = await open(scratch.store);
    try {
      const limits = { ttlMs: 1_000, windowMs: 1_000 };
      const [first, second] = [mcpServerOn({ box, limits }), mcpServerOn({ box: other, limits })];
      const [dead, alive] = [await httpAgent('2026-07-28', first), await httpAgent('2025-11-25', second)];
      expect(await dead.call('acquire', { ...MERGE, holder: 'dead' })).toMatchObject({ status: 'granted' });
      expect(await alive.call('acquire', { ...MERGE, holder: 'alive' })).toMatchObject({ status: 'granted' });
      expect(await dead.call('renew', { holder: 'dead' })).toMatchObject({ status: 'lost', isError: true });
    } finally {
      await other.close();
    }
  });
});
