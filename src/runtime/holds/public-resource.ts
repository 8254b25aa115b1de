/** What locks and semaphores have in common for users: detached holds by claim, force, settings. */
import type { Settings, Token } from '../../core/index.ts';
import type { AnyCommand, AnyOutcome } from '../write/pending-command.ts';
import type { Coordinated } from '../write/machines.ts';
import { milliseconds, refuseWrongValues } from '../options.ts';
import { extend, release, renew } from './detached.ts';
import type { KeptHold } from './hold.ts';
import type { AnyResource, Resource } from './resource.ts';
import type { Breaking, ClaimReleaseOutcome, HoldClaim, RenewOutcome } from './terms.ts';

type Any = AnyResource & Pick<Resource<Coordinated, AnyCommand, AnyOutcome, KeptHold>, 'name' | 'break' | 'configure'>;

/** A lock or a semaphore by its name. */
export abstract class NamedResource {
  readonly #of: Any;

  /** @internal */
  constructor(of: Any) {
    this.#of = of;
  }

  /** Its name, such as `main-branch`. */
  get name(): string {
    return this.#of.name;
  }

  /** Its kind and name, such as `lock/main-branch`. */
  get resource(): string {
    return this.#of.resource;
  }

  /** Renews a detached hold for its full time. A stale hold stays lost. */
  renew(claim: HoldClaim): Promise<RenewOutcome> {
    return renew(this.#of, claim);
  }

  /**
   * Changes how long a detached hold lasts without a renewal, as far as the settings allow it. A hold on a session lasts as
   * long as the session, and stays on it. `maxHoldMs`: how long it may last in all, counted from now.
   */
  extend(claim: HoldClaim, ttlMs: number, options: { readonly maxHoldMs?: number } = {}): Promise<RenewOutcome> {
    refuseWrongValues(options, { maxHoldMs: milliseconds });
    return extend(this.#of, claim, ttlMs, options);
  }

  /**
   * Releases a detached hold; a token of an earlier grant changes nothing. Without a token, it releases the only hold that the
   * holder has, and answers `ambiguous` if it has several.
   */
  release(claim: { readonly holder: string; readonly token?: Token }): Promise<ClaimReleaseOutcome> {
    return release(this.#of, claim);
  }

  /** Ends every hold, for administrators. The holders get the reason. With a `token`, a hold that was granted after it stays. */
  break(by: Breaking): Promise<{ readonly broken: number }> {
    return this.#of.break(by);
  }

  /**
   * Sets rules that bind every holder from its next grant on: `maxHoldMs`, `ttlMs` of detached holds, `onStale`. What is left
   * out stays as it is, and null removes a limit. A hold that exists keeps the terms under which it was granted.
   */
  configure(settings: Settings): Promise<void> {
    return this.#of.configure(settings);
  }
}
