/**
 * Writes what members own. The assets are in the member's record, so a write that changes them compares that record. What it
 * decided about the assets of *other* members has to hold as well:
 *
 *     registers an exclusive asset   no member's record has changed since the members were read, and puts `x.assets`
 *     registers a shared asset       `x.assets` has not been put since then
 *     removes assets                 nothing
 *
 * So shared registrations never disturb each other, and only exclusive ones are decided again when another member changes.
 */
import {
  type AssetChange,
  type AssetTaken,
  decideAssets,
  decideMove,
  type Json,
  type Member,
  nameProblem,
  type RecordedAsset,
} from '../../core/index.ts';
import { Failure, refuseInvalid, shown } from '../../failure.ts';
import { type Compare, type KeyValue, type Operation, prefixed, readRange, type Revision } from '../../store/index.ts';
import { encode } from '../layout.ts';
import { flag, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';
import { said } from '../write/witnessed.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { type NextStep, writeOnce } from '../write/write-once.ts';
import type { AssetOptions } from './membership.ts';
import { EXCLUSIVE_ASSETS, memberDocument, memberIn, memberKey, MEMBERS, recordIn } from './records.ts';

/** What came of a registration. */
export type RegisterOutcome =
  | { readonly kind: 'registered'; readonly assets: readonly string[] }
  | AssetTaken
  /** This membership has ended; nothing was registered. */
  | { readonly kind: 'lost' };

/** What came of a move. */
export type MoveOutcome =
  | { readonly kind: 'moved'; readonly assets: readonly string[] }
  /** There is no such member, or it is another one than was meant: see `fromIncarnation`. */
  | { readonly kind: 'no-member'; readonly member: string }
  | { readonly kind: 'not-owner'; readonly asset: string; readonly owners: readonly string[] }
  /** Only with `detachedOnly`: this member joined from its own process. */
  | { readonly kind: 'attached'; readonly member: string };

/** From which member to which. */
export interface MoveOptions {
  /** The member that has the assets. */
  readonly from: string;
  /** The member that gets them. */
  readonly to: string;
  /** The membership of `from` that is meant: nothing is taken from a later member with the same id. */
  readonly fromIncarnation?: number;
  /** The membership of `to` that is meant. */
  readonly toIncarnation?: number;
  /** Changes nothing, and answers `attached`, if one of the two joined from its own process. */
  readonly detachedOnly?: boolean;
}

/** All members, as they were at one revision. */
export interface MembersRead {
  readonly pairs: ReadonlyMap<string, KeyValue>;
  readonly members: readonly Member[];
  readonly revision: Revision;
}

/** etcd refuses a request of more than 1.5 MiB; a move writes two records. */
const LARGEST_RECORD_BYTES = 512 * 1024;

export async function readMembers(runtime: Runtime): Promise<MembersRead> {
  const { pairs, revision } = await readRange(runtime.store, prefixed(MEMBERS), runtime.stopped);
  const known = readEach(pairs, (pair) => [memberIn(pair), pair] as const);
  return {
    pairs: new Map(known.map(([{ id }, pair]) => [id, pair])),
    members: known.map(([member]) => member),
    revision,
  };
}

/** What must still hold of all other members when these assets are registered. */
export function compareOthers(adds: readonly RecordedAsset[], revision: Revision): readonly Compare[] {
  if (adds.length === 0) return [];
  if (!adds.some(({ isExclusive }) => isExclusive)) {
    return [{ key: EXCLUSIVE_ASSETS, target: 'mod', is: '<', than: revision + 1 }];
  }
  return [{ ...prefixed(MEMBERS), target: 'mod', is: '<', than: revision + 1 }];
}

export function markExclusive(adds: readonly RecordedAsset[]): readonly Operation[] {
  if (!adds.some(({ isExclusive }) => isExclusive)) return [];
  return [{ do: 'put', key: EXCLUSIVE_ASSETS, value: encode({}) }];
}

export function changeAssets(
  runtime: Runtime,
  id: string,
  incarnation: Revision,
  change: AssetChange,
): Promise<RegisterOutcome> {
  return writeOnce<MembersRead, RegisterOutcome>(runtime, {
    read: () => readMembers(runtime),
    decide: ({ pairs, members, revision }): NextStep<MembersRead, RegisterOutcome> => {
      const own = members.find((member) => member.id === id && member.incarnation === incarnation);
      const pair = pairs.get(id);
      if (own === undefined || pair === undefined) return { kind: 'answer', answer: { kind: 'lost' } };
      const others = members.filter((member) => member !== own);
      const decision = decideAssets(own.assets, change, others);
      if (decision.kind === 'asset-taken') return { kind: 'answer', answer: decision };
      if (decision.kind === 'unchanged') return { kind: 'answer', answer: registered(own.assets) };
      if (decision.adds.length > 0) refuseTooMany(decision.assets);
      return {
        kind: 'write',
        transaction: {
          compare: [unchanged(pair), ...compareOthers(decision.adds, revision)],
          success: [rewritten(pair, decision.assets), ...markExclusive(decision.adds)],
          failure: [],
        },
        deeds: [assetDeed(id, change.kind === 'add' ? 'register' : 'unregister', change.assets)],
        landed: () => registered(decision.assets),
      };
    },
    until: runtime.giveUpAt(),
  });
}

export function moveAssets(
  runtime: Runtime,
  assets: readonly string[],
  { from, to, fromIncarnation, toIncarnation, detachedOnly = false }: MoveOptions,
): Promise<MoveOutcome> {
  const incarnations = { from: fromIncarnation, to: toIncarnation };
  return writeOnce<MembersRead, MoveOutcome>(runtime, {
    read: () => readMembers(runtime),
    decide: ({ pairs, members }): NextStep<MembersRead, MoveOutcome> => {
      const decision = decideMove(assets, from, to, members, incarnations);
      if (decision.kind === 'unchanged') return { kind: 'answer', answer: { kind: 'moved', assets } };
      if (decision.kind !== 'write') return { kind: 'answer', answer: decision };
      const attached = [from, to].find((id) => recordIn(pairs.get(id) as KeyValue).detached !== true);
      if (detachedOnly && attached !== undefined) {
        return { kind: 'answer', answer: { kind: 'attached', member: attached } };
      }
      refuseTooMany(decision.to);
      const [source, target] = [pairs.get(from), pairs.get(to)] as [KeyValue, KeyValue];
      return {
        kind: 'write',
        transaction: {
          compare: [unchanged(source), unchanged(target)],
          success: [rewritten(source, decision.from), rewritten(target, decision.to)],
          failure: [],
        },
        deeds: [assetDeed(from, 'move-away', assets, { to }), assetDeed(to, 'move-here', assets, { from })],
        landed: () => ({ kind: 'moved', assets }),
      };
    },
    until: runtime.giveUpAt(),
  });
}

/** Many assets are entered as their hash. */
function assetDeed(
  member: string,
  command: string,
  assets: readonly string[],
  more: { [name: string]: Json } = {},
): Deed {
  const outcome = command === 'register' ? 'registered' : command === 'unregister' ? 'unregistered' : 'moved';
  return {
    ...{ resource: `member/${member}`, actor: member, command, outcome, isLeased: true },
    get detail() {
      const detail: { [name: string]: Json } = { ...more };
      said(detail, { data: assets });
      return detail;
    },
  };
}

/** The record is as it was read, so its member is still there. */
function unchanged({ key, modRevision }: KeyValue): Compare {
  return { key, target: 'mod', is: '=', than: modRevision };
}

/** The same record with other assets, on the same lease. Carries no events: the write before it already published its own. */
function rewritten(pair: KeyValue, assets: readonly RecordedAsset[]): Operation {
  const record = recordIn(pair);
  return {
    do: 'put',
    key: memberKey(record.id),
    value: memberDocument({ ...record, assets }, [], record.session),
    lease: 'keep',
  };
}

function registered(assets: readonly RecordedAsset[]): RegisterOutcome {
  return { kind: 'registered', assets: assets.map(({ id }) => id) };
}

/** The change that a caller asks for; throws `invalid` if it makes no sense. */
export function changeOf(kind: AssetChange['kind'], assets: readonly string[], options: AssetOptions): AssetChange {
  refuseUnlessAssets(assets);
  refuseWrongValues(options, { exclusive: flag });
  return { kind, assets: [...assets], isExclusive: options.exclusive ?? false };
}

/** Refuses what is no list of names, and more than a record can hold. */
export function refuseUnlessAssets(assets: unknown): void {
  if (!Array.isArray(assets)) throw new Failure('invalid', `the assets are ${shown(assets)}, not a list of names`);
  for (const asset of assets) {
    refuseInvalid(nameProblem(asset, 'asset'));
  }
  refuseTooMany((assets as string[]).map((id) => ({ id })));
}

/** `assets`: all that the record would have after the write. */
function refuseTooMany(assets: readonly { readonly id: string }[]): void {
  const bytes = Buffer.byteLength(JSON.stringify(assets.map(({ id }) => id))) + assets.length * ASSET_OVERHEAD;
  if (bytes <= LARGEST_RECORD_BYTES) return;
  throw new Failure(
    'invalid',
    `${assets.length} assets take ${bytes} bytes; a member can register ${LARGEST_RECORD_BYTES} bytes of them. ` +
      'Let ownerOf place them, or register groups of them',
  );
}

/** The bytes of one asset in the record, without its id. */
const ASSET_OVERHEAD = 50;
