/** The membership of this process, as its user has it: the assets that it registers, and leaving. */
import type { AssetChange, Json } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { leave } from './detached.ts';
import type { OwnMembership } from './own-memberships.ts';
import { membershipId } from './records.ts';
import { changeAssets, changeOf, type RegisterOutcome } from './registering.ts';

type Ground = Readonly<Record<'resource' | 'id' | 'holder' | 'lease', string>> & { readonly token: Revision };

/** How assets are registered. */
export interface AssetOptions {
  /** No other member may register these assets. If another one has, this registration is refused. */
  readonly exclusive?: boolean;
}

/** Users must not see it: see `groundsOf`. */
let sessionOf: (membership: Membership) => string;

/** The membership of this process. */
export class Membership implements AsyncDisposable {
  /** Its id. */
  readonly id: string;
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  /** Tells this membership from an earlier and a later one with the same id. */
  readonly incarnation: Revision;
  readonly #runtime: Runtime;
  readonly #own: OwnMembership;

  static {
    sessionOf = (membership) => membership.#own.session.id;
  }

  /** @internal */
  constructor(runtime: Runtime, own: OwnMembership, metadata: Json | undefined) {
    this.#runtime = runtime;
    this.#own = own;
    this.id = own.id;
    this.metadata = metadata;
    this.incarnation = own.incarnation;
  }

  /** Whether this process is still a member: not after it left, nor once its session was not renewed in time. */
  get isValid(): boolean {
    return this.#own.isValid;
  }

  /**
   * Aborts when the membership ends without `leave`: this process could not renew its session in time. Other members see that
   * it left; to be a member again it has to join again.
   */
  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Registers exactly these assets: the others that this member had are removed in the same step. */
  async setAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('set', assets, options);
  }

  /** Registers these assets as well. */
  async addAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('add', assets, options);
  }

  /** Registers these assets no longer. */
  async removeAssets(assets: readonly string[]): Promise<RegisterOutcome> {
    return this.#change('remove', assets, {});
  }

  async #change(kind: AssetChange['kind'], assets: readonly string[], options: AssetOptions): Promise<RegisterOutcome> {
    this.#runtime.refuseIfClosed();
    const change = changeOf(kind, assets, options);
    return this.isValid ? changeAssets(this.#runtime, this.id, this.incarnation, change) : { kind: 'lost' };
  }

  /** Leaving twice, or after the session ended, changes nothing, nor does it touch a later member with this id. */
  async leave(): Promise<void> {
    this.#own.end();
    await leave(this.#runtime, this.id, this.incarnation);
  }

  /** Leaves at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}

/** What a child process of this member works under: its id, and the assets that no other member may have. */
export function groundsOf(membership: Membership, exclusive: readonly string[]): readonly Ground[] {
  const { id, incarnation } = membership;
  return [`member/${id}`, ...exclusive.map((asset) => `asset/${asset}`)].map((resource) => ({
    resource,
    id: membershipId(id, incarnation),
    token: incarnation,
    holder: id,
    lease: sessionOf(membership),
  }));
}
