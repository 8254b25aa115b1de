/**
 * Enters changes that no command made: a member's lease ended, or another program wrote or deleted the keys of a task. The
 * maintainer enters each of them once, because the entry compares what it saw.
 */
import type { Task } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { ifPossible } from '../../host/index.ts';
import { type Compare, type KeyValue, pairIn, prefixed, type Operation, type Transaction } from '../../store/index.ts';
import { HEADS, headKey, chainPath, resourceOfChain, stateKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { taskKeys, taskResource } from '../tasks/keys.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { sendWitnessed } from '../write/write-once.ts';
import { chainEnd, headIn } from '../write/witness.ts';
import { pairsIn } from './chains.ts';

/** `tasks` are all tasks that this process knows. Returns the number of entries that it made. */
export async function enterObserved(runtime: Runtime, tasks: Iterable<Task>): Promise<number> {
  if (!runtime.witness.isOn) return 0;
  return (await enterMembers(runtime)) + (await enterTasks(runtime, tasks));
}

async function enterMembers(runtime: Runtime): Promise<number> {
  return enterGone(runtime, 'member', (id) => ({
    key: stateKey('member', id),
    deed: { actor: id, outcome: 'lease-ended', events: ['member:left'] },
  }));
}

/** A resource that existed after the last entry of its chain and is gone now. `sign` is the key that it has while it exists. */
async function enterGone(
  runtime: Runtime,
  kind: 'member' | 'task',
  sign: (id: string) => { readonly key: string; readonly deed: Pick<Deed, 'actor' | 'outcome' | 'events'> } | undefined,
): Promise<number> {
  let entered = 0;
  for await (const pair of pairsIn(runtime, prefixed(`${HEADS}${kind}/`))) {
    // Verification names what another program wrote there.
    const head = ifPossible(() => headIn(pair, true)) as { readonly isLeased?: boolean } | undefined;
    if (head?.isLeased !== true) continue;
    const resource = resourceOfChain(pair.key, HEADS);
    const gone = sign(resource.slice(kind.length + 1));
    if (gone === undefined) continue;
    const isGone: Transaction = {
      compare: [{ key: gone.key, target: 'version', is: '=', than: 0 }, unlessEntered(pair.key, pair)],
      success: [],
      failure: [],
    };
    runtime.witness.ends.saw(chainPath(resource), chainEnd(undefined, pair), pair.modRevision);
    entered += await observe(runtime, isGone, { resource, ...gone.deed, ...OBSERVED });
  }
  return entered;
}

const OBSERVED = { command: 'observed', component: 'maintenance' } as const;

async function enterTasks(runtime: Runtime, tasks: Iterable<Task>): Promise<number> {
  let entered = 0;
  const known = new Set<string>();
  for (const task of tasks) {
    const { id, data, owner, status, bookkeeping } = task;
    if (data !== undefined) known.add(id);
    const newest = Math.max(data?.mod ?? 0, owner?.mod ?? 0, status?.mod ?? 0);
    const own = bookkeeping?.entry.head === undefined ? 0 : bookkeeping.mod;
    // Every write of signalbox puts the bookkeeping, so no other key of the task is newer.
    if (data === undefined || newest <= own) continue;
    entered += await enterTask(runtime, task, newest, id).catch(unlessCorrupt);
  }
  const deleted = { actor: '', outcome: 'deleted-by-others' };
  const gone = await enterGone(runtime, 'task', (id) =>
    known.has(id) ? undefined : { key: taskKeys(id).data, deed: deleted },
  );
  return entered + gone;
}

/** Verification names what another program did to the chain of a task; the other tasks are entered. */
function unlessCorrupt(error: unknown): number {
  if (Failure.is(error, 'corrupt')) return 0;
  throw error;
}

async function enterTask(runtime: Runtime, { owner, status }: Task, newest: number, id: string): Promise<number> {
  const resource = taskResource(id);
  const key = headKey(chainPath(resource));
  const reads: Operation[] = [{ do: 'read', key }];
  const asked: Transaction = { compare: [], success: reads, failure: [] };
  const { results, revision } = await runtime.store.transaction(asked, runtime.stopped);
  const head = pairIn(results, key);
  // This process or an earlier maintainer has already entered it.
  if (head !== undefined && head.modRevision >= newest) return 0;
  runtime.witness.ends.saw(chainPath(resource), chainEnd(undefined, head), revision);
  const keys = taskKeys(id);
  const asSeen: Transaction = {
    compare: [
      ...Object.values(keys).map((one): Compare => ({ key: one, target: 'mod', is: '<', than: newest + 1 })),
      unlessEntered(key, head),
    ],
    success: [],
    failure: [],
  };
  return observe(runtime, asSeen, {
    ...{ resource, actor: owner?.holder ?? '', outcome: 'changed-by-others', ...OBSERVED },
    detail: { status: status?.word ?? 'pending', owner: owner?.holder ?? '', revision: newest },
    isLeased: true,
  });
}

/** Another maintainer may have seen the same change. Its entry is then the end of the chain, and a second one would repeat it. */
function unlessEntered(key: string, end: KeyValue | undefined): Compare {
  return { key, target: 'mod', is: '=', than: end?.modRevision ?? 0 };
}

async function observe(runtime: Runtime, transaction: Transaction, deed: Deed): Promise<number> {
  const { succeeded } = await sendWitnessed(runtime, transaction, [deed]);
  return succeeded ? 1 : 0;
}
