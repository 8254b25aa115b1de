/**
 * Members: which processes are alive, what they own, and who coordinates. The key of a member is on the session lease of the
 * process that joined, so it goes with that process, and needs no heartbeats of its own.
 */
import {
  type AssetTaken,
  decideAssets,
  type Event,
  type Json,
  type Member,
  nameProblem,
  requestProblem,
  type Topology,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyValue, prefixed, readRange, type ReadResult, type Revision } from '../../store/index.ts';
import { anchorKey } from '../layout.ts';
import { keepingAlive, LISTEN, type ListenOptions } from '../keep-alive.ts';
import { anything, flag, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import { frozenCopy } from '../own-copy.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { type ListOptions, readEach } from '../stored.ts';
import type { Subscription } from '../subscription.ts';
import { said } from '../write/witnessed.ts';
import { type NextStep, writeOnce } from '../write/write-once.ts';
import type { MemberFeed } from './feed.ts';
import { FollowedMembers } from './followed-members.ts';
import type { Lead } from './lead.ts';
import { type AssetOptions, Membership } from './membership.ts';
import type { OwnMemberships } from './own-memberships.ts';
import { isWeight, memberDocument, memberIn, memberKey, type MemberRecord, MEMBERS, recordIn } from './records.ts';
import {
  compareOthers,
  markExclusive,
  moveAssets,
  type MoveOutcome,
  readMembers,
  type MembersRead,
  refuseUnlessAssets,
} from './registering.ts';
import { type BroadcastOptions, TopologyBroadcast } from './topology-broadcast.ts';
import { followTopology, lastTopology } from './topology-key.ts';

/** How to join. */
export interface JoinOptions extends AssetOptions, ListenOptions {
  /** The assets that the member owns from the moment it joins. */
  readonly assets?: readonly string[];
  /** Its share of the keys that `ownerOf` places; 1 unless given. */
  readonly weight?: number;
}

/** What `join` answers. */
export type JoinOutcome =
  | { readonly kind: 'joined'; readonly membership: Membership }
  /** A member of this id is alive. */
  | { readonly kind: 'taken'; readonly member: Member }
  /** Another member has this asset; nothing was written. */
  | AssetTaken;

/** What one pass of a join decides on. */
interface JoinView {
  readonly session: Session;
  readonly pair: KeyValue | undefined;
  /** Read only if there are assets to register. */
  readonly all?: MembersRead;
}

type About = Pick<MemberRecord, 'v' | 'id' | 'metadata' | 'attempt' | 'weight'> & {
  readonly assets: readonly string[];
  readonly isExclusive: boolean;
};

const JOIN = {
  assets: anything,
  exclusive: flag,
  weight: { words: 'a number above zero', fits: isWeight },
  ...LISTEN,
};

function joinDetail(
  { metadata, weight }: Pick<MemberRecord, 'metadata' | 'weight'>,
  adds: readonly { readonly id: string }[],
): { readonly [name: string]: Json } {
  const detail: { [name: string]: Json } = weight === undefined ? {} : { weight };
  const assets = adds.map(({ id }) => id);
  said(detail, {
    ...(metadata !== null && metadata !== undefined && { metadata }),
    ...(assets.length > 0 && { data: assets }),
  });
  return detail;
}

/** The processes that have joined. */
export class Members {
  readonly #runtime: Runtime;
  readonly #lead: Lead;
  readonly #own: OwnMemberships;
  readonly #feed: MemberFeed;

  /** @internal */
  constructor(runtime: Runtime, feed: MemberFeed, own: OwnMemberships, lead: Lead) {
    this.#runtime = runtime;
    this.#feed = feed;
    this.#own = own;
    this.#lead = lead;
  }

  /**
   * Joins for as long as this process is alive, or until it leaves. Of any number that want an id at once, one gets it. The
   * process stays alive while it is a member.
   */
  async join(id: string, metadata?: Json, options: JoinOptions = {}): Promise<JoinOutcome> {
    const runtime = this.#runtime;
    runtime.refuseIfClosed();
    refuseUnlessNamed(id);
    const problem = requestProblem({ metadata });
    if (problem !== undefined) throw new Failure('invalid', `member/${id}: ${problem}`);
    refuseWrongValues(options, JOIN);
    const { assets = [], exclusive: isExclusive = false, weight } = options;
    refuseUnlessAssets(assets);
    const about: About = {
      v: 1,
      id,
      metadata: frozenCopy(metadata ?? null),
      attempt: runtime.options.newId(),
      ...(weight !== undefined && { weight }),
      assets: [...assets],
      isExclusive,
    };
    return writeOnce(runtime, {
      // Without assets, the first pass reads nothing: the write compares that no member has this id.
      read: async (isFirst) => {
        const session = await runtime.ready();
        if (assets.length > 0) {
          const all = await readMembers(runtime);
          return { session, pair: all.pairs.get(id), all };
        }
        if (isFirst) return { session, pair: undefined };
        const { pairs } = await this.#read({ key: memberKey(id) });
        return { session, pair: pairs[0] };
      },
      decide: (seen) => this.#decideJoin(about, options, seen),
      found: ({ session, pair }) => {
        const there = pair === undefined ? undefined : recordIn(pair);
        if (pair === undefined || there?.attempt !== about.attempt || there.session !== session.id) return undefined;
        return this.#joined(session, about, pair.createRevision, options);
      },
      fence: (done, failed) => runtime.fence(done, failed),
      until: runtime.giveUpAt(),
    });
  }

  #decideJoin(
    { assets, isExclusive, ...about }: About,
    options: JoinOptions,
    { session, pair, all }: JoinView,
  ): NextStep<JoinView, JoinOutcome> {
    if (pair !== undefined) return { kind: 'answer', answer: { kind: 'taken', member: memberIn(pair) } };
    const decision = decideAssets([], { kind: 'add', assets, isExclusive }, all?.members ?? []);
    if (decision.kind === 'asset-taken') return { kind: 'answer', answer: decision };
    const adds = decision.kind === 'write' ? decision.adds : [];
    const runtime = this.#runtime;
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
        success: [
          { do: 'put', key, value: memberDocument(record, events, session.id), lease: session.leaseId },
          ...markExclusive(adds),
        ],
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
            return joinDetail(record, adds);
          },
          isLeased: true,
        },
      ],
      landed: ({ revision }) => this.#joined(session, about, revision, options),
      overtaken: ({ results, revision }) => {
        const [found, own] = results as readonly [ReadResult, ReadResult];
        // Our session has ended, or a fence has raised its epoch.
        runtime.sawLease(session.id, own.pairs[0]?.version, revision);
        return found.pairs.length === 0 ? undefined : { session, pair: found.pairs[0] };
      },
    };
  }

  #joined(
    session: Session,
    { id, metadata }: Pick<MemberRecord, 'id' | 'metadata'>,
    since: Revision,
    options: ListenOptions,
  ): JoinOutcome {
    const own = this.#own.add(id, since, session, keepingAlive(this.#runtime, options));
    return { kind: 'joined', membership: new Membership(this.#runtime, own, metadata ?? undefined) };
  }

  /** All members, by id. `onMalformed` gets the keys that are passed over because they cannot be read. */
  async list({ onMalformed }: ListOptions = {}): Promise<readonly Member[]> {
    const { pairs } = await this.#read(prefixed(MEMBERS));
    const members = readEach(pairs, memberIn, onMalformed);
    return [...members].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** Whether there is such a member. */
  async isAlive(id: string): Promise<boolean> {
    refuseUnlessNamed(id);
    return (await this.#read({ key: memberKey(id), countOnly: true })).count > 0;
  }

  /**
   * Follows the members: the view, its changes, the coordinator and the registry, all of them free to look up. Resolves once no
   * change can be missed. The process stays alive until `stop`.
   */
  async follow(options: ListenOptions = {}): Promise<FollowedMembers> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, LISTEN);
    const isOwn = (id: string, incarnation: number): boolean =>
      this.#own.has(id, (joined) => this.#feed.isSame(joined, incarnation));
    return FollowedMembers.begin(this.#runtime, this.#feed, isOwn, options);
  }

  /** Moves assets from one member to another in one step: nobody sees them with both, or with neither. */
  async moveAssets(
    assets: readonly string[],
    { from, to }: { readonly from: string; readonly to: string },
  ): Promise<MoveOutcome> {
    this.#runtime.refuseIfClosed();
    refuseUnlessAssets(assets);
    refuseUnlessNamed(from);
    refuseUnlessNamed(to);
    return moveAssets(this.#runtime, [...assets], from, to);
  }

  /** The topology that was broadcast last; null if none ever was. */
  async topology(): Promise<Topology | null> {
    this.#runtime.refuseIfClosed();
    return lastTopology(this.#runtime);
  }

  /** Calls `handler` with the topology that was broadcast last, then with every later one. */
  async onTopology(
    handler: (topology: Topology) => void | Promise<void>,
    options: ListenOptions = {},
  ): Promise<Subscription> {
    this.#runtime.refuseIfClosed();
    refuseUnlessFunction('the handler', handler);
    refuseWrongValues(options, LISTEN);
    return followTopology(this.#runtime, handler, options);
  }

  /** Takes part in the broadcast of the topology: of all that do, the holder of `lead('topology')` sends it. */
  broadcastTopology(options: BroadcastOptions = {}): TopologyBroadcast {
    this.#runtime.refuseIfClosed();
    return new TopologyBroadcast(this.#runtime, this.#feed, this.#lead, options);
  }

  async #read(range: { readonly key: string; readonly end?: string; readonly countOnly?: true }): Promise<ReadResult> {
    this.#runtime.refuseIfClosed();
    return readRange(this.#runtime.store, range, this.#runtime.stopped);
  }
}

function refuseUnlessNamed(id: unknown): void {
  const problem = nameProblem(id, 'member');
  if (problem !== undefined) throw new Failure('invalid', problem);
}
