/**
 * What a process remembers of requests and holds that it does not keep: detached ones, whose callers come and go, and losses that
 * arrive before their grants. Each list is bounded, because a caller may never come back.
 */
import type { Hold, Token } from '../../core/index.ts';

/** How many ids are remembered, in case a caller still asks for them. */
const MOST_IDS = 10_000;
/** How many tickets are remembered; the grant of a forgotten ticket goes back. */
const MOST_PARKED = 100_000;

export class Remembered {
  /** Detached holds that were handed out, and when, on the monotonic clock. */
  readonly #collected = new Map<string, number>();
  /** Requests whose callers come back with a ticket, and what was answered meanwhile. */
  readonly #parked = new Map<string, { readonly owner: string; readonly since: number; answer?: unknown }>();
  readonly #lost = new Set<string>();
  /** Leases of detached holds that this process has asked the store to end: without an answer, that may still happen. */
  readonly #givenUp = new Set<string>();

  /** Remembers a detached hold that was handed to its caller: it has an owner, although this process does not keep it. */
  collected(id: string, at: number): void {
    this.#collected.set(id, at);
    forgetOldest(this.#collected, MOST_IDS);
  }

  /** Undefined if another process handed it out, or if that was long ago. */
  collectedAt(id: string): number | undefined {
    return this.#collected.get(id);
  }

  /** The caller of this request comes back for its answer, so a grant is kept although nobody waits for it now. */
  park(id: string, resource: string, holder: string, since: number): void {
    this.#parked.set(id, { owner: ownerOf(resource, holder), since });
    forgetOldest(this.#parked, MOST_PARKED);
  }

  /** Keeps the answer to a parked request; false if it is not parked. */
  answered(id: string, outcome: unknown): boolean {
    const parked = this.#parked.get(id);
    if (parked === undefined) return false;
    parked.answer = outcome;
    return true;
  }

  /** Whether this holder parked this request: ids can be guessed, so the id alone is no proof. */
  isParked(id: string, resource: string, holder: string): boolean {
    return this.#parked.get(id)?.owner === ownerOf(resource, holder);
  }

  /** The answer that came while nobody waited for it. */
  parkedAnswer(id: string, resource: string, holder: string): unknown {
    return this.isParked(id, resource, holder) ? this.#parked.get(id)?.answer : undefined;
  }

  /** Answers since when the request waited, if it was parked here. */
  unpark(id: string, resource: string, holder: string): number | undefined {
    if (!this.isParked(id, resource, holder)) return undefined;
    const { since } = this.#parked.get(id) ?? {};
    this.#parked.delete(id);
    return since;
  }

  /** This process is about to end the lease, and the hold that may rest on it. */
  giveUpLease(lease: string): void {
    this.#givenUp.add(lease);
    forgetOldest(this.#givenUp, MOST_IDS);
  }

  isGivenUp(lease: string): boolean {
    return this.#givenUp.has(lease);
  }

  /** A hold that this process does not keep, or not yet, was taken away. */
  lost(id: string, token: Token): void {
    this.#lost.add(grantOf(id, token));
    forgetOldest(this.#lost, MOST_IDS);
  }

  wasLost({ id, token }: Pick<Hold, 'id' | 'token'>): boolean {
    return this.#lost.has(grantOf(id, token));
  }

  /** Whether the loss of this grant arrived before the grant: then the grant is void. */
  wasLostEarly(id: string, token: Token): boolean {
    return this.#lost.delete(grantOf(id, token));
  }
}

function grantOf(id: string, token: Token): string {
  return `${id} #${token}`;
}

function ownerOf(resource: string, holder: string): string {
  return JSON.stringify([resource, holder]);
}

function forgetOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  if (kept.size > most) kept.delete(kept.keys().next().value as string);
}
