/** The one write by which a member joins: on the session of this process, or on a lease of its own. */
import {
  type AssetTaken,
  decideAssets,
  type Event,
  type Json,
  type Member,
  nameProblem,
  requestProblem,
} from '../../core/index.ts';
import { Failure, refuseInvalid } from '../../failure.ts';
import { type KeyValue, type LeaseId, type ReadResult, readRange, type Revision } from '../../store/index.ts';
import type { ListenOptions } from '../subscription.ts';
import { anchorKey } from '../layout.ts';
import { anything, flag } from '../options.ts';
import { frozenCopy } from '../own-copy.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { said } from '../write/witnessed.ts';
import { type NextStep, writeOnce } from '../write/write-once.ts';
import type { AssetOptions, Membership } from './membership.ts';
import { isWeight, memberDocument, memberIn, memberKey, type MemberRecord, recordIn } from './records.ts';
import { compareOthers, markExclusive, readMembers, type MembersRead, refuseUnlessAssets } from './registering.ts';

/** What a member says about itself when it joins. */
export interface JoinTerms extends AssetOptions {
  /** The assets that the member owns from the moment it joins. */
  readonly assets?: readonly string[];
  /** Its share of the keys that `ownerOf` places; 1 unless given. */
  readonly weight?: number;
  /** The witness enters only a salted hash of the metadata. */
  readonly sensitive?: boolean;
}

/** How to join. */
export interface JoinOptions extends JoinTerms, ListenOptions {}

/** What `join` answers if nothing was written. */
export type NotJoined =
  /** A member of this id is alive. */
  | { readonly kind: 'taken'; readonly member: Member }
  /** Another member has this asset. */
  | AssetTaken;

/** What `join` answers. */
export type JoinOutcome = { readonly kind: 'joined'; readonly membership: Membership } | NotJoined;

/** The lease that a member ends with, and the session that writes the member. */
export interface Ground {
  /** The session of this process: once it is not as it was, nothing of an earlier attempt can land. */
  readonly session: Session;
  /** The lease of the session, or one of the member's own. */
  readonly leaseId: LeaseId;
}

export type About = Pick<MemberRecord, 'v' | 'id' | 'metadata' | 'attempt' | 'weight' | 'detached'> & {
  readonly assets: readonly string[];
  readonly isExclusive: boolean;
  readonly isSensitive: boolean;
};

/** What one pass decides on. */
interface JoinView {
  readonly ground: Ground;
  readonly pair: KeyValue | undefined;
  /** Read only if there are assets to register. */
  readonly all?: MembersRead;
}

export const TERMS = {
  assets: anything,
  exclusive: flag,
  sensitive: flag,
  weight: { words: 'a number above zero', fits: isWeight },
};

export function refuseUnlessNamed(id: unknown): void {
  refuseInvalid(nameProblem(id, 'member'));
}

export function refuseUnlessMetadata(id: string, metadata: Json | undefined): void {
  const problem = requestProblem({ metadata });
  if (problem !== undefined) throw new Failure('invalid', `member/${id}: ${problem}`);
}

/** The terms have been checked, but for the assets. */
export function aboutOf(runtime: Runtime, id: string, metadata: Json | undefined, terms: JoinTerms): About {
  const { assets = [], exclusive: isExclusive = false, sensitive: isSensitive = false, weight } = terms;
  refuseUnlessAssets(assets);
  return {
    v: 1,
    id,
    metadata: frozenCopy(metadata ?? null),
    attempt: runtime.options.newId(),
    ...(weight !== undefined && { weight }),
    assets: [...assets],
    isExclusive,
    isSensitive,
  };
}

/** `groundOf` is called again after a loss of the session. */
export function enter<Joined>(
  runtime: Runtime,
  about: About,
  groundOf: () => Promise<Ground>,
  joined: (ground: Ground, since: Revision) => Joined,
): Promise<Joined | NotJoined> {
  return writeOnce<JoinView, Joined | NotJoined>(runtime, {
    // Without assets, the first pass reads nothing: the write compares that no member has this id.
    read: async (isFirst) => {
      const ground = await groundOf();
      if (about.assets.length > 0) {
        const all = await readMembers(runtime);
        return { ground, pair: all.pairs.get(about.id), all };
      }
      if (isFirst) return { ground, pair: undefined };
      const { pairs } = await readRange(runtime.store, { key: memberKey(about.id) }, runtime.stopped);
      return { ground, pair: pairs[0] };
    },
    decide: (seen) => decideJoin(runtime, about, seen, joined),
    found: ({ ground, pair }) => {
      const isOurs = pair?.lease === ground.leaseId && recordIn(pair).attempt === about.attempt;
      return isOurs ? joined(ground, pair.createRevision) : undefined;
    },
    fence: (done, failed) => runtime.presence.fence(done, failed),
    until: runtime.giveUpAt(),
  });
}

function decideJoin<Joined>(
  runtime: Runtime,
  { assets, isExclusive, isSensitive, ...about }: About,
  { ground, pair, all }: JoinView,
  joined: (ground: Ground, since: Revision) => Joined,
): NextStep<JoinView, Joined | NotJoined> {
  if (pair !== undefined) return { kind: 'answer', answer: { kind: 'taken', member: memberIn(pair) } };
  const decision = decideAssets([], { kind: 'add', assets, isExclusive }, all?.members ?? []);
  if (decision.kind === 'asset-taken') return { kind: 'answer', answer: decision };
  const adds = decision.kind === 'write' ? decision.adds : [];
  const { session, leaseId: lease } = ground;
  const key = memberKey(about.id);
  const anchor = anchorKey(session.id);
  const joinedAt = runtime.clock.now();
  const record: MemberRecord = { ...about, joinedAt, session: session.id, ...(adds.length > 0 && { assets: adds }) };
  const events: Event[] = [{ type: 'member:joined', at: joinedAt, holder: record.id }];
  return {
    kind: 'write',
    transaction: {
      compare: [
        { key, target: 'version', is: '=', than: 0 },
        { key: anchor, target: 'version', is: '=', than: session.epoch },
        ...compareOthers(adds, all?.revision ?? 0),
      ],
      success: [{ do: 'put', key, value: memberDocument(record, events, session.id), lease }, ...markExclusive(adds)],
      failure: [
        { do: 'read', key },
        { do: 'read', key: anchor },
      ],
    },
    deeds: [
      {
        resource: `member/${record.id}`,
        actor: record.id,
        command: 'join',
        outcome: 'joined',
        events: events.map(({ type }) => type),
        get detail() {
          return joinDetail(record, adds, isSensitive);
        },
        isLeased: true,
      },
    ],
    landed: ({ revision }) => joined(ground, revision),
    overtaken: ({ results, revision }) => {
      const [found, own] = results as readonly [ReadResult, ReadResult];
      // Our session has ended, or a fence has raised its epoch.
      runtime.sawLease(session.id, own.pairs[0]?.version, revision);
      return found.pairs.length === 0 ? undefined : { ground, pair: found.pairs[0] };
    },
  };
}

function joinDetail(
  { metadata, weight }: Pick<MemberRecord, 'metadata' | 'weight'>,
  adds: readonly { readonly id: string }[],
  isSensitive: boolean,
): { readonly [name: string]: Json } {
  const detail: { [name: string]: Json } = weight === undefined ? {} : { weight };
  const assets = adds.map(({ id }) => id);
  if (metadata !== null && metadata !== undefined) said(detail, { metadata, ...(isSensitive && { sensitive: true }) });
  if (assets.length > 0) said(detail, { data: assets });
  return detail;
}
