/** The members in the store: one key each, on the lease of the session that joined, with all that the member registered. */
import {
  type Asset,
  type Event,
  type Member,
  type RecordedAsset,
  type ToldEvent,
  isCount,
  isTime,
  isRecord,
} from '../../core/index.ts';
import { shown } from '../../failure.ts';
import type { KeyValue, Revision, Value } from '../../store/index.ts';
import {
  corrupt,
  encode,
  type RecordDocument,
  resourceOfState,
  stateKey,
  STATES,
  checked,
  type Fields,
} from '../layout.ts';
import { ownCopy } from '../own-copy.ts';

export const MEMBERS = `${STATES}member/`;

/** Put by every write that registers an exclusive asset. A write that registers a shared one compares it: see `registering.ts`. */
export const EXCLUSIVE_ASSETS = 'x.assets';

export interface MemberRecord {
  readonly v: 1;
  readonly id: string;
  readonly metadata: Member['metadata'] | null;
  readonly joinedAt: number;
  readonly session: string;
  /** The id of the attempt to join, to recognise one whose answer got lost. */
  readonly attempt: string;
  readonly weight?: number;
  /** It is on a lease of its own, which its program renews; `session` is of the process that wrote it. */
  readonly detached?: true;
  /** Those without `since` were registered by the write that made this version of the record. */
  readonly assets?: readonly RecordedAsset[];
}

export const memberKey = (id: string): string => stateKey('member', id);

export function memberDocument(record: MemberRecord, events: readonly Event[], by: string): Value {
  const document: RecordDocument<MemberRecord> = { record, events, by };
  return encode(document);
}

export function recordIn(pair: KeyValue): MemberRecord {
  const { record } = checked<RecordDocument<MemberRecord>>(pair, documentProblem);
  if (record.id !== idOf(pair.key)) throw corrupt(pair.key, `its id is ${shown(record.id)}`);
  return record;
}

export function memberIn(pair: KeyValue): Member {
  const { id, metadata, joinedAt, weight = 1 } = recordIn(pair);
  const assets = assetsIn(pair);
  return { id, metadata: ownCopy(metadata ?? undefined), incarnation: pair.createRevision, weight, joinedAt, assets };
}

export function assetsIn(pair: KeyValue): readonly Asset[] {
  return (recordIn(pair).assets ?? []).map(({ id, isExclusive, since = pair.modRevision }) => ({
    id,
    isExclusive,
    since,
  }));
}

/** Tells a membership from all others, for all time. */
export function membershipId(id: string, incarnation: Revision): string {
  return `member/${id}@${incarnation}`;
}

export function idOf(key: string): string {
  return resourceOfState(key).slice('member/'.length);
}

/** The deletion of the key is the event: a process that dies writes none. */
export function memberLeft(key: string, at: number): ToldEvent | undefined {
  if (!key.startsWith(MEMBERS)) return undefined;
  return { type: 'member:left', at, holder: idOf(key), resource: resourceOfState(key) };
}

function documentProblem({ record }: Fields): string | undefined {
  if (!isRecord(record)) return `its record is ${shown(record)}`;
  const { joinedAt, weight = 1, assets = [] } = record;
  if (!isTime(joinedAt)) return `its time is ${shown(joinedAt)}`;
  if (!isWeight(weight)) return `its weight is ${shown(weight)}`;
  return Array.isArray(assets) && assets.every(isAsset) ? undefined : `its assets are ${shown(assets)}`;
}

export function isWeight(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

function isAsset(asset: unknown): boolean {
  if (!isRecord(asset)) return false;
  const { id, isExclusive, since = 0 } = asset;
  return typeof id === 'string' && typeof isExclusive === 'boolean' && isCount(since);
}
