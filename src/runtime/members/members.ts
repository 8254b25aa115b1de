/**
 * Members: which processes are alive, what they own, and who coordinates. The key of a member is on the session lease of the
 * process that joined, so it goes with that process, and needs no heartbeats of its own.
 */
import { type AssetChange, type Json, type Member, requestProblem, type Topology } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { prefixed, readRange, type ReadResult, type Revision } from '../../store/index.ts';
import type { RenewOutcome } from '../holds/terms.ts';
import { keepingAlive, LISTEN, type ListenOptions, type Subscription } from '../subscription.ts';
import { anything, flag, refuseUnlessFunction, refuseWrongValues, wholeNumber } from '../options.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type ListOptions, readEach } from '../stored.ts';
import {
  type DetachedJoinOptions,
  type DetachedJoinOutcome,
  joinDetached,
  leaveDetached,
  type LeaveOutcome,
  registerDetached,
  renewMember,
} from './detached.ts';
import type { MemberFeed } from './feed.ts';
import { FollowedMembers } from './followed-members.ts';
import {
  aboutOf,
  enter,
  type Ground,
  type JoinOptions,
  type JoinOutcome,
  refuseUnlessMetadata,
  refuseUnlessNamed,
  TERMS,
} from './joining.ts';
import type { Lead } from './lead.ts';
import { type AssetOptions, Membership } from './membership.ts';
import type { OwnMemberships } from './own-memberships.ts';
import { memberIn, memberKey, MEMBERS } from './records.ts';
import {
  changeOf,
  moveAssets,
  type MoveOptions,
  type MoveOutcome,
  refuseUnlessAssets,
  type RegisterOutcome,
} from './registering.ts';
import { type BroadcastOptions, TopologyBroadcast } from './topology-broadcast.ts';
import { followTopology, lastTopology } from './topology-key.ts';

const MOVE = {
  ...{ from: anything, to: anything },
  ...{ fromIncarnation: wholeNumber, toIncarnation: wholeNumber, detachedOnly: flag },
};

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
   * process stays alive while it is a member. Throws `NotAcquired` with `session-lost` if the session of this process ends first.
   */
  async join(id: string, metadata?: Json, options: JoinOptions = {}): Promise<JoinOutcome> {
    const runtime = this.#runtime;
    this.#check(id, metadata, options, { ...TERMS, ...LISTEN });
    const about = aboutOf(runtime, id, metadata, options);
    const groundOf = async (): Promise<Ground> => {
      const session = await runtime.ready();
      return { session, leaseId: session.leaseId };
    };
    return enter(runtime, about, groundOf, ({ session }, since): JoinOutcome => {
      runtime.refuseIfClosed();
      // The answer may come after the session has ended, and nobody would tell this membership.
      if (!session.isValid()) throw new NotAcquired(`member/${id}`, { kind: 'session-lost' });
      const own = this.#own.add(id, since, session, keepingAlive(runtime, options));
      return { kind: 'joined', membership: new Membership(runtime, own, about.metadata ?? undefined) };
    });
  }

  // Detached members: each has a lease of its own; any process that knows its id and incarnation can renew and end it.

  /** Joins for a program that is not this process, such as one that uses a server. It has left once nobody renews it. */
  async joinDetached(id: string, metadata?: Json, options: DetachedJoinOptions = {}): Promise<DetachedJoinOutcome> {
    this.#check(id, metadata, options, { ...TERMS, ttlMs: anything });
    const problem = requestProblem({ ttlMs: options.ttlMs });
    if (problem !== undefined) throw new Failure('invalid', `member/${id}: ${problem}`);
    return joinDetached(this.#runtime, id, metadata, options);
  }

  /** Renews a detached member for its full time. A member that rests on a session is renewed only by its own process. */
  async renew(id: string, incarnation: Revision): Promise<RenewOutcome> {
    this.#named(id, incarnation);
    return renewMember(this.#runtime, id, incarnation);
  }

  /** Ends a detached member. Does not touch a later member with this id. */
  async leave(id: string, incarnation: Revision): Promise<LeaveOutcome> {
    this.#named(id, incarnation);
    return leaveDetached(this.#runtime, id, incarnation);
  }

  /** Changes what a detached member owns: `set` registers exactly these assets, `add` these as well, `remove` these no longer. */
  async changeAssets(
    id: string,
    incarnation: Revision,
    kind: AssetChange['kind'],
    assets: readonly string[],
    options: AssetOptions = {},
  ): Promise<RegisterOutcome | { readonly kind: 'attached' }> {
    this.#named(id, incarnation);
    return registerDetached(this.#runtime, id, incarnation, changeOf(kind, assets, options));
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
  async moveAssets(assets: readonly string[], options: MoveOptions): Promise<MoveOutcome> {
    this.#runtime.refuseIfClosed();
    refuseUnlessAssets(assets);
    refuseWrongValues(options, MOVE);
    refuseUnlessNamed(options.from);
    refuseUnlessNamed(options.to);
    return moveAssets(this.#runtime, [...assets], { ...options });
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

  #check(
    id: string,
    metadata: Json | undefined,
    options: object,
    known: Parameters<typeof refuseWrongValues>[1],
  ): void {
    this.#runtime.refuseIfClosed();
    refuseUnlessNamed(id);
    refuseUnlessMetadata(id, metadata);
    refuseWrongValues(options, known);
  }

  #named(id: string, incarnation: Revision): void {
    this.#runtime.refuseIfClosed();
    refuseUnlessNamed(id);
    refuseWrongValues({ incarnation }, { incarnation: wholeNumber });
  }

  async #read(range: { readonly key: string; readonly end?: string; readonly countOnly?: true }): Promise<ReadResult> {
    this.#runtime.refuseIfClosed();
    return readRange(this.#runtime.store, range, this.#runtime.stopped);
  }
}
