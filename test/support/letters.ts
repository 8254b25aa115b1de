/** Letters as another process would put them, or somebody who is none. */
import { Value, type Store } from 'signalbox/store';

/** The session of a process that was started by this name. */
export async function sessionOf(store: Store, name: string): Promise<string> {
  const read = { do: 'read' as const, key: `a/${name}`, end: `a/${name}~` };
  const { results } = await store.transaction({ compare: [], success: [read], failure: [] });
  const key = results[0]?.do === 'read' ? results[0].pairs[0]?.key : undefined;
  if (key === undefined) throw new TypeError(`${name} has no session`);
  return key.slice('a/'.length);
}

export async function putLetter(store: Store, session: string, text: string): Promise<void> {
  const put = { do: 'put' as const, key: `m/${session}`, value: Value.text(text), lease: 'keep' as const };
  await store.transaction({ compare: [], success: [put], failure: [] });
}

export interface ErrandFields {
  readonly resource: string;
  readonly from: string;
  readonly epoch?: number;
  readonly commands: readonly unknown[];
}

/** Leaves commands to the process of this name, as those do who lose races. */
export async function putErrand(store: Store, keeper: string, delegated: ErrandFields): Promise<void> {
  const session = await sessionOf(store, keeper);
  const { from, epoch = 1 } = delegated;
  const leaseId = (await anchorOf(store, from))?.lease ?? '';
  const delegations = [{ id: `${from}!by-hand`, epoch, leaseId, ...delegated }];
  await putLetter(store, session, JSON.stringify({ answers: [], losses: [], delegations }));
}

/** The anchor of a session: its lease, and its epoch. */
export async function anchorOf(
  store: Store,
  session: string,
): Promise<{ readonly lease: string | undefined; readonly epoch: number } | undefined> {
  const read = { do: 'read' as const, key: `a/${session}` };
  const { results } = await store.transaction({ compare: [], success: [read], failure: [] });
  const pair = results[0]?.do === 'read' ? results[0].pairs[0] : undefined;
  return pair && { lease: pair.lease ?? undefined, epoch: pair.version };
}

/** As after an answer that got lost. */
export async function raiseEpoch(store: Store, session: string): Promise<void> {
  const put = { do: 'put' as const, key: `a/${session}`, value: Value.text('{}'), lease: 'keep' as const };
  await store.transaction({ compare: [], success: [put], failure: [] });
}
