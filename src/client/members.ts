/** Members over HTTP: join, own assets, follow the others. */
import {
  type AssetChange,
  changeBetween,
  coordinatorOf,
  type Json,
  type Member,
  NO_VIEW,
  type Topology,
  updated,
  type View,
  type ViewChange,
  viewOf,
} from '../core/index.ts';
import { type MemberJson, memberFrom } from '../json/member.ts';
import type { JoinTerms, NotJoined } from '../runtime/members/joining.ts';
import type { AssetOptions } from '../runtime/members/membership.ts';
import type { MoveOptions, MoveOutcome, RegisterOutcome } from '../runtime/members/registering.ts';
import type { HoldLost } from '../runtime/refusal.ts';
import type { ListOptions, Malformed } from '../runtime/stored.ts';
import { type Instant, instant } from './clock.ts';
import { streamed } from './events.ts';
import { Kept, type Renewal } from './kept.ts';
import { refusedWith } from './problem.ts';
import { type Ask, connectionClosed, renewal, type Requests, segment } from './requests.ts';
import type { Connected } from './resource.ts';

/** How to join over HTTP. */
export interface RemoteJoinOptions extends JoinTerms {
  /** Others see that the member left if this program does not renew it for this long: 30 s, if not given. */
  readonly ttlMs?: number;
}

/** From which member to which. */
export interface RemoteMoveOptions extends Omit<MoveOptions, 'detachedOnly'> {
  /** Also if one of the two joined from its own process, for administrators. If not, the answer is `attached`. */
  readonly attached?: boolean;
}

/** What `join` answers. `taken`: a member of this id is alive. */
export type RemoteJoinOutcome =
  | { readonly kind: 'joined'; readonly membership: RemoteMembership }
  | Exclude<NotJoined, { readonly kind: 'taken' }>
  | { readonly kind: 'taken' };

interface TakenAsset {
  readonly asset: string;
  readonly owner: string;
}

interface NotMoved {
  readonly member: string;
  readonly asset: string;
  readonly owners: readonly string[];
}

interface Joined {
  readonly incarnation: number;
  readonly ttlMs: number;
}

/** The members of a store, at a server. */
export class RemoteMembers {
  readonly #connected: Connected;
  readonly #joined = new Set<RemoteMembership>();

  /** @internal */
  constructor(connected: Connected) {
    this.#connected = connected;
  }

  /** Joins for as long as this program renews it, which it does by itself, or until it leaves. */
  async join(id: string, metadata?: Json, options: RemoteJoinOptions = {}): Promise<RemoteJoinOutcome> {
    const { requests, ttlMs } = this.#connected;
    const since = instant(requests.clock);
    const body = { ...options, ttlMs: options.ttlMs ?? ttlMs, id, metadata };
    try {
      const joined = await requests.ask<Joined>({ method: 'POST', path: '/v1/members', body, isKeyed: true });
      const left = (): void => void this.#joined.delete(membership);
      const membership = new RemoteMembership(requests, id, metadata, { ...joined, since }, left);
      this.#joined.add(membership);
      return { kind: 'joined', membership };
    } catch (error) {
      const { code, asset, owner } = refusedWith<TakenAsset>(error, 'exists', 'asset-taken');
      return code === 'exists' ? { kind: 'taken' } : { kind: 'asset-taken', asset, owner };
    }
  }

  /** All members, by id. `onMalformed` gets the keys that were passed over because they cannot be read. */
  async list({ onMalformed }: ListOptions = {}): Promise<readonly Member[]> {
    const { requests } = this.#connected;
    const found = await requests.get<{ members: MemberJson[]; malformed?: Malformed[] }>('/v1/members');
    const { members, malformed = [] } = found;
    for (const one of malformed) onMalformed?.(one);
    return members.map(memberFrom);
  }

  /** Whether there is such a member. */
  async isAlive(id: string): Promise<boolean> {
    const { requests } = this.#connected;
    return (await requests.get<{ members: unknown[] }>('/v1/members', { id })).members.length > 0;
  }

  /** Follows the members. Resolves once no change can be missed; rejects if no server answers, or the connection is closed. */
  follow(): Promise<RemoteFollowedMembers> {
    return RemoteFollowedMembers.begin(this.#connected.requests);
  }

  /** Moves assets from one member to another in one step: nobody sees them with both, or with neither. */
  async moveAssets(assets: readonly string[], options: RemoteMoveOptions): Promise<MoveOutcome> {
    const body = { assets, ...options };
    try {
      await this.#connected.requests.ask({ method: 'POST', path: '/v1/members/move', body, isKeyed: true });
      return { kind: 'moved', assets };
    } catch (error) {
      const problem = refusedWith<NotMoved>(error, 'no-such-thing', 'not-owner', 'attached');
      const { code, member, asset, owners } = problem;
      if (code === 'not-owner') return { kind: 'not-owner', asset, owners };
      return { kind: code === 'attached' ? 'attached' : 'no-member', member };
    }
  }

  /** The topology that was broadcast last; null if none ever was. */
  async topology(): Promise<Topology | null> {
    return (await this.#connected.requests.get<{ topology: Topology | null }>('/v1/topology')).topology;
  }

  /** @internal Leaves with all that this program joined as. */
  async leaveAll(): Promise<void> {
    await Promise.all([...this.#joined].map((one) => one.leave().catch(() => undefined)));
  }
}

/** The membership of this program, which renews it until it leaves. */
export class RemoteMembership implements AsyncDisposable {
  /** Its id. */
  readonly id: string;
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  /** Tells this membership from an earlier and a later one with the same id. */
  readonly incarnation: number;
  readonly #requests: Requests;
  readonly #kept: Kept;
  readonly #left: () => void;

  /** @internal */
  constructor(
    requests: Requests,
    id: string,
    metadata: Json | undefined,
    { incarnation, ttlMs, since }: Joined & { readonly since: Instant },
    left: () => void,
  ) {
    this.id = id;
    this.metadata = metadata;
    this.incarnation = incarnation;
    this.#requests = requests;
    this.#left = left;
    const renew = (retryMs: number): Promise<Renewal> => this.#renewed(retryMs);
    this.#kept = new Kept(requests, { resource: `member/${id}`, ttlMs, since, renew });
  }

  /** Whether this program is still a member, by the clock at the moment of the call. */
  get isValid(): boolean {
    return this.#kept.isValid;
  }

  /** Aborts when the membership ends without `leave`: this program could not renew it in time. To be a member again, join again. */
  get signal(): AbortSignal {
    return this.#kept.signal;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.#kept.lost;
  }

  /** Registers exactly these assets: the others that this member had are removed in the same step. */
  setAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('set', assets, options);
  }

  /** Registers these assets as well. */
  addAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('add', assets, options);
  }

  /** Registers these assets no longer. */
  removeAssets(assets: readonly string[]): Promise<RegisterOutcome> {
    return this.#change('remove', assets, {});
  }

  /** Leaving twice, or after the membership ended, changes nothing, nor does it touch a later member with this id. */
  async leave(): Promise<void> {
    this.#kept.end();
    this.#left();
    await this.#post('leave', {}, { isKeyed: true }).catch((error: unknown) => refusedWith(error, 'gone'));
  }

  /** Leaves at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  async #change(change: AssetChange['kind'], assets: readonly string[], options: object): Promise<RegisterOutcome> {
    if (!this.isValid) return { kind: 'lost' };
    try {
      const body = { change, assets, ...options };
      const { assets: now } = await this.#post<{ assets: readonly string[] }>('assets', body, { isKeyed: true });
      return { kind: 'registered', assets: now };
    } catch (error) {
      const { code, asset, owner } = refusedWith<TakenAsset>(error, 'gone', 'asset-taken');
      return code === 'gone' ? { kind: 'lost' } : { kind: 'asset-taken', asset, owner };
    }
  }

  async #renewed(retryMs: number): Promise<Renewal> {
    try {
      return await this.#post<{ ttlMs: number }>('renew', {}, renewal(retryMs));
    } catch (error) {
      refusedWith(error, 'gone');
      return { why: 'expired' };
    }
  }

  #post<T>(what: string, more: object, how: Pick<Ask, 'isKeyed' | 'retryMs' | 'answerMs'>): Promise<T> {
    const path = `/v1/members/${segment(this.id)}/${what}`;
    const body = { incarnation: this.incarnation, ...more };
    return this.#requests.ask<T>({ method: 'POST', path, body, ...how });
  }
}

interface ViewJson {
  readonly version: number;
  /** All of them; only in the first view of a stream, and where views were skipped. */
  readonly members?: readonly MemberJson[];
  readonly joined: readonly MemberJson[];
  readonly changed: readonly MemberJson[];
  readonly left: readonly string[];
  readonly isResync: boolean;
}

/** A reader that falls far behind gets one change in place of all that it has not read. */
const MOST_UNREAD = 1_000;

/**
 * The members, as this program follows them. A connection that is lost comes back by itself, with a change that says
 * `isResync`. If a server refuses to go on, such as with a token that was revoked, every method throws its refusal.
 */
export class RemoteFollowedMembers implements AsyncDisposable {
  readonly #over = new AbortController();
  readonly #listeners = new Set<(change: ViewChange<Member>) => void>();
  #view: View<Member> = NO_VIEW;
  /** Why a server does not go on: from then on the view is out of date. */
  #refusal: Error | undefined;

  private constructor() {}

  /** @internal */
  static async begin(requests: Requests): Promise<RemoteFollowedMembers> {
    const followed = new RemoteFollowedMembers();
    const { signal } = followed.#over;
    requests.closed.signal.addEventListener('abort', () => followed.stop(), { signal });
    await new Promise<void>((resolve, reject) => {
      const read = async (): Promise<void> => {
        for await (const { event, data } of streamed(requests, '/v1/members/watch', () => ({}), signal)) {
          if (event !== 'view') continue;
          followed.#told(JSON.parse(data) as ViewJson);
          resolve();
        }
      };
      read()
        .then(() => reject(connectionClosed()))
        .catch((error: Error) => reject((followed.#refusal = error)))
        .finally(() => followed.stop());
    });
    return followed;
  }

  /** The live members in id order, and the version of this view. */
  view(): View<Member> {
    if (this.#refusal !== undefined) throw this.#refusal;
    return this.#view;
  }

  /** The first member in id order; null without members. Another program may see another one for a moment. */
  coordinator(): string | null {
    return coordinatorOf(this.view());
  }

  /** The changes from this call on, in order; ends with `stop`, or when `signal` aborts. Throws if a server refuses to go on. */
  changes({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<ViewChange<Member>, void> {
    let unread: ViewChange<Member>[] = [];
    let read = this.#view;
    let wake = (): void => undefined;
    const listener = (change: ViewChange<Member>): void => {
      unread = unread.length < MOST_UNREAD ? [...unread, change] : [changeBetween(read, change.view, true)];
      wake();
    };
    const listeners = this.#listeners.add(listener);
    const over = AbortSignal.any([this.#over.signal, ...(signal === undefined ? [] : [signal])]);
    over.addEventListener('abort', () => wake());
    const refusal = (): Error | undefined => this.#refusal;
    return (async function* changes() {
      try {
        while (!over.aborted || (refusal() !== undefined && signal?.aborted !== true)) {
          const next = unread.shift();
          if (next === undefined) {
            const refused = refusal();
            if (refused !== undefined) throw refused;
            await new Promise<void>((resolve) => (wake = resolve));
            continue;
          }
          read = next.view;
          yield next;
        }
      } finally {
        listeners.delete(listener);
      }
    })();
  }

  /** Ends all iterators. */
  stop(): void {
    this.#over.abort();
    this.#listeners.clear();
  }

  /** Stops at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  /** A stream that begins again begins with the present view, and says nothing of what was missed. */
  #told({ version, members, joined, changed, left }: ViewJson): void {
    const there = [...joined, ...changed].map(memberFrom).map((member) => [member.id, member] as const);
    const gone = left.map((id) => [id, undefined] as const);
    const view =
      members === undefined
        ? updated(this.#view, version, [...there, ...gone])
        : viewOf(version, members.map(memberFrom));
    const change = changeBetween(this.#view, view, members !== undefined);
    this.#view = view;
    for (const listener of this.#listeners) listener(change);
  }
}
