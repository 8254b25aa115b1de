/** Turns decisions into transactions. Each compares what its decision rests on; its failure branch reads what a new decision needs. */
import { BACKOFF_OWNER, type Json, type Task, type TaskStatus, type TaskWrite } from '../../core/index.ts';
import { type Compare, type LeaseId, type Operation, type Transaction, Value } from '../../store/index.ts';
import { encode } from '../layout.ts';
import { taskKeys } from './keys.ts';
import { readsOf } from './reading.ts';

/** The owner of a task that failed because its workers were lost, if none of them left a name. */
const NO_ONE = 'signalbox';

/** The lease that keeps a claim alive, and that must be alive when the claim is made. */
export interface ClaimGround {
  readonly leaseId: LeaseId;
  /** The anchor of the session, in this epoch: a request of an earlier epoch can no longer land. */
  readonly anchor?: { readonly key: string; readonly epoch: number };
}

/** The failure branch reads the task, and the anchor if there is one. */
export function claimTransaction(task: Task, write: TaskWrite, holder: string, ground: ClaimGround): Transaction {
  const keys = taskKeys(task.id);
  const dependencies = (task.data?.terms.dependsOn ?? []).map((id) => taskKeys(id).status);
  return {
    compare: [
      { key: keys.owner, target: 'version', is: '=', than: 0 },
      ...alive(ground),
      asRead(keys.data, task.data),
      asRead(keys.status, task.status),
      asRead(keys.signalbox, task.bookkeeping),
      ...dependencies.map((key): Compare => ({ key, target: 'value', is: '=', than: 'complete' })),
    ],
    success: claimPuts(task.id, write, holder, ground),
    failure: claimReads(task.id, ground),
  };
}

/**
 * Claims a task without reading it first. Lands only on a task that signalbox published, that has no terms, and that
 * nothing has touched since: only such a task has bookkeeping of version 1 and no status (see `publishTransaction`).
 */
export function blindClaimTransaction(id: string, write: TaskWrite, holder: string, ground: ClaimGround): Transaction {
  const keys = taskKeys(id);
  const once = (key: string): Compare => ({ key, target: 'version', is: '=', than: 1 });
  const never = (key: string): Compare => ({ key, target: 'version', is: '=', than: 0 });
  return {
    compare: [never(keys.owner), ...alive(ground), once(keys.data), never(keys.status), once(keys.signalbox)],
    // Reads before it writes: the end of the claim puts the old bookkeeping back.
    success: [...readsOf(id), ...claimPuts(id, write, holder, ground)],
    failure: claimReads(id, ground),
  };
}

function alive({ anchor }: ClaimGround): readonly Compare[] {
  return anchor === undefined ? [] : [{ key: anchor.key, target: 'version', is: '=', than: anchor.epoch }];
}

function asRead(key: string, part: { readonly mod: number } | undefined): Compare {
  return { key, target: 'mod', is: '=', than: part?.mod ?? 0 };
}

function claimPuts(
  id: string,
  { status, bookkeeping }: TaskWrite,
  holder: string,
  { leaseId }: ClaimGround,
): Operation[] {
  const keys = taskKeys(id);
  return [
    { do: 'put', key: keys.owner, value: Value.text(holder), lease: leaseId },
    { do: 'put', key: keys.status, value: Value.text(status) },
    { do: 'put', key: keys.signalbox, value: encode(bookkeeping) },
  ];
}

function claimReads(id: string, { anchor }: ClaimGround): Operation[] {
  return [...readsOf(id), ...(anchor === undefined ? [] : [{ do: 'read', key: anchor.key } as const])];
}

/** Ends a claim by its token, and only while its owner key is on the lease that the claim was made on. */
export function endTransaction(
  task: Task,
  write: TaskWrite,
  also: readonly Operation[] = [],
  backoff?: LeaseId,
): Transaction {
  const keys = taskKeys(task.id);
  const { token, lease } = task.owner as NonNullable<Task['owner']>;
  return {
    compare: [
      { key: keys.owner, target: 'create', is: '=', than: token },
      // The owner key of a finished task has the same token, but no lease.
      { key: keys.owner, target: 'lease', is: '=', than: lease },
      ...(lease === null ? [asRead(keys.owner, task.owner), asRead(keys.status, task.status)] : []),
    ],
    success: [
      write.owner === 'delete' ? { do: 'delete', key: keys.owner } : ownerPut(task, write, backoff),
      { do: 'put', key: keys.status, value: Value.text(write.status) },
      { do: 'put', key: keys.signalbox, value: encode(write.bookkeeping) },
      ...also,
    ],
    failure: readsOf(task.id),
  };
}

/** Nobody, for as long as the lease of the pause lasts; or for good, the worker that the task had last. */
function ownerPut({ id, owner, bookkeeping }: Task, write: TaskWrite, backoff: LeaseId | undefined): Operation {
  const { owner: key } = taskKeys(id);
  if (write.owner === 'back-off' && backoff !== undefined) {
    return { do: 'put', key, value: Value.text(BACKOFF_OWNER), lease: backoff };
  }
  // An empty owner key would let other programs claim a finished task.
  const holder = owner?.holder || bookkeeping?.entry.claim?.holder || NO_ONE;
  return { do: 'put', key, value: Value.text(holder) };
}

/** Writes what was decided about a task that no worker has: a repair, or a task that is requeued. */
export function idleTransaction(task: Task, write: TaskWrite): Transaction {
  const keys = taskKeys(task.id);
  return {
    compare: untouched(task),
    success: [
      write.owner === 'keep-unleased' ? ownerPut(task, write, undefined) : { do: 'delete', key: keys.owner },
      { do: 'put', key: keys.status, value: Value.text(write.status) },
      { do: 'put', key: keys.signalbox, value: encode(write.bookkeeping) },
    ],
    failure: readsOf(task.id),
  };
}

export function forgetTransaction(task: Task): Transaction {
  const success = Object.values(taskKeys(task.id)).map((key): Operation => ({ do: 'delete', key }));
  return { compare: untouched(task), success, failure: readsOf(task.id) };
}

function untouched(task: Task): readonly Compare[] {
  const keys = taskKeys(task.id);
  return [
    asRead(keys.data, task.data),
    asRead(keys.owner, task.owner),
    asRead(keys.status, task.status),
    asRead(keys.signalbox, task.bookkeeping),
  ];
}

/** Deletes an empty owner key. A claim must create that key, because its token is the key's create revision. */
export function clearOwnerTransaction(task: Task): Transaction {
  const { owner } = taskKeys(task.id);
  return { compare: [asRead(owner, task.owner)], success: [{ do: 'delete', key: owner }], failure: readsOf(task.id) };
}

/**
 * `isPlain`: the task has no terms. It then gets no status key, so that a worker that knows its id may claim it without
 * reading it first.
 */
export function publishTransaction(id: string, data: Json, bookkeeping: object, isPlain: boolean): Transaction {
  const keys = taskKeys(id);
  const pending: TaskStatus = 'pending';
  return {
    compare: [{ key: keys.data, target: 'version', is: '=', than: 0 }],
    success: [
      { do: 'put', key: keys.data, value: Value.text(JSON.stringify(data)) },
      { do: 'put', key: keys.signalbox, value: encode(bookkeeping) },
      // Removes what is left of a task of this id whose data was deleted.
      { do: 'delete', key: keys.owner },
      isPlain ? { do: 'delete', key: keys.status } : { do: 'put', key: keys.status, value: Value.text(pending) },
    ],
    failure: readsOf(id),
  };
}
