/** The membership of this process, as its user has it: the assets that it registers, and leaving. */
import type { AssetChange, Json, Member } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Compare, Revision } from '../../store/index.ts';
import { flag, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { persistently, send } from '../write/write-once.ts';
import { memberKey } from './records.ts';
import { changeAssets, refuseUnlessAssets, type RegisterOutcome } from './registering.ts';

export interface AssetOptions {
  /** No other member may register these assets. If another one has, this registration is refused. */
  readonly exclusive?: boolean;
}

export class Membership implements AsyncDisposable {
  readonly id: string;
  readonly metadata: Json | undefined;
  /** Tells this membership from an earlier and a later one with the same id. */
  readonly incarnation: Revision;
  readonly #runtime: Runtime;
  readonly #session: Session;
  readonly #onEnd: (membership: Membership) => void;
  readonly #lost = new AbortController();
  #hasLeft = false;

  constructor(
    runtime: Runtime,
    session: Session,
    { id, metadata }: Pick<Member, 'id' | 'metadata'>,
    incarnation: Revision,
    onEnd: (membership: Membership) => void,
  ) {
    this.#runtime = runtime;
    this.#session = session;
    this.#onEnd = onEnd;
    this.id = id;
    this.metadata = metadata;
    this.incarnation = incarnation;
  }

  /** Whether this process is still a member: not after it left, nor once its session was not renewed in time. */
  get isValid(): boolean {
    return !this.#hasLeft && this.#session.isValid();
  }

  /**
   * Aborts when the membership ends without `leave`: this process could not renew its session in time. Other members see that
   * it left; to be a member again it has to join again.
   */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** For the members: a session has ended, perhaps the one of this membership. */
  sessionEnded(session: Session): void {
    if (session !== this.#session || this.#hasLeft) return;
    this.#onEnd(this);
    // The signalbox was closed, which leaves too.
    if (session.ended === 'closed') {
      this.#hasLeft = true;
      return;
    }
    this.#lost.abort(new Failure('hold-lost', `member/${this.id}: this process did not renew its session in time`));
  }

  /** Registers exactly these assets: the others that this member had are removed in the same step. */
  async setAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('set', assets, options);
  }

  /** Registers these assets as well. */
  async addAssets(assets: readonly string[], options: AssetOptions = {}): Promise<RegisterOutcome> {
    return this.#change('add', assets, options);
  }

  async removeAssets(assets: readonly string[]): Promise<RegisterOutcome> {
    return this.#change('remove', assets, {});
  }

  async #change(kind: AssetChange['kind'], assets: readonly string[], options: AssetOptions): Promise<RegisterOutcome> {
    this.#runtime.refuseIfClosed();
    refuseUnlessAssets(assets);
    refuseWrongValues(options, { exclusive: flag });
    if (!this.isValid) return { kind: 'lost' };
    const { exclusive: isExclusive = false } = options;
    return changeAssets(this.#runtime, this.id, this.incarnation, { kind, assets: [...assets], isExclusive });
  }

  /** Leaving twice, or after the session ended, changes nothing, nor does it touch a later member with this id. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    this.#onEnd(this);
    const runtime = this.#runtime;
    const key = memberKey(this.id);
    const compare: Compare[] = [{ key, target: 'create', is: '=', than: this.incarnation }];
    // Repeating the write is harmless: it compares this very membership.
    await persistently(runtime, runtime.giveUpAt(), () =>
      send(runtime, { compare, success: [{ do: 'delete', key }], failure: [] }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}
