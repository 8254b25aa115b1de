/**
 * One process of a `TestCluster`: joins, follows the members, and reports every view to the test. Started as
 * `node cluster-member.js STORE ID ASSETS TTL`, with a channel to its parent.
 */
import { systemClock } from '../clock.ts';
import { NotAcquired, open, type Term, type View, type Member, type Membership } from '../index.ts';
import type { ClusterOrder, ClusterReport } from './test-cluster.ts';

const [url = '', id = '', assets = '', ttlMs = '15000'] = process.argv.slice(2);
const report = (said: ClusterReport): void => void process.send?.(said);
const box = await open(url, { sessionTtlMs: Number(ttlMs), maintains: false });
const members = await box.members.follow();
let membership: Membership | undefined;
let isWanted = false;

function seen(view: View<Member>): Pick<ClusterReport & { kind: 'view' }, 'version' | 'ids' | 'coordinator'> {
  return { version: view.version, ids: view.members.map((member) => member.id), coordinator: members.coordinator() };
}

members.onChange(({ view, joined, left, isResync }) => {
  report({
    kind: 'view',
    ...seen(view),
    coordinator: view.members[0]?.id ?? null,
    joined: joined.map((member) => member.id),
    left: left.map((member) => member.id),
    assets: view.members.flatMap((member) => member.assets.map((asset) => `${member.id}:${asset.id}`)),
    isResync,
  });
});

/** Joins, and joins again as a new incarnation when it loses its session, until the test tells it to leave. */
async function join(): Promise<void> {
  const owned = assets === '' ? [] : assets.split(',');
  isWanted = true;
  for (let isFirst = true; isWanted; isFirst = false) {
    const outcome = await box.members.join(id, { pid: process.pid }, { assets: owned }).catch(ifSessionLost);
    if (outcome === undefined) continue;
    if (outcome.kind === 'joined') {
      membership = outcome.membership;
      report({ kind: 'done', do: 'join', outcome: 'joined' });
      if (!isWanted) return membership.leave();
      await aborted(membership.signal);
      report({ kind: 'lost' });
      continue;
    }
    if (isFirst) return report({ kind: 'done', do: 'join', outcome: outcome.kind });
    // Its old key still exists: this process noticed the end of its session before the store did.
    for await (const { left } of members.changes()) if (left.some((member) => member.id === id)) break;
  }
}

function ifSessionLost(error: unknown): undefined {
  if (!(error instanceof NotAcquired) || error.refusal.kind !== 'session-lost') throw error;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
}

async function lead(name: string): Promise<void> {
  await box.lead(name, async ({ epoch, signal }: Term) => {
    report({ kind: 'leads', name, epoch, at: systemClock.monotonic() });
    await aborted(signal);
    report({ kind: 'stops', name, epoch, at: systemClock.monotonic() });
  });
}

process.on('message', (order: ClusterOrder) => {
  const failed = (error: unknown): void => report({ kind: 'failed', do: order.do, why: String(error) });
  if (order.do === 'join') join().catch(failed);
  else if (order.do === 'lead') lead(order.name).catch(failed);
  else {
    isWanted = false;
    const leaving = membership?.leave() ?? Promise.resolve();
    leaving.then(() => report({ kind: 'done', do: 'leave', outcome: 'left' }), failed);
  }
});
process.on('disconnect', () => void box.close().then(() => process.exit(0)));
report({ kind: 'ready', ...seen(members.view()) });
