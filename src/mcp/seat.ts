/**
 * Keeps the holds of agents alive. Over stdio one process serves one client until it ends, and the session of the process keeps
 * its holds (`attached-seat.ts`). Over HTTP requests share no state: holds have their own leases, and any server of the store
 * goes on with them (`detached-seat.ts`).
 */
import { given } from '../core/given.ts';
import type { LockMode } from '../core/index.ts';
import type { Lock } from '../runtime/holds/lock.ts';
import type { Semaphore } from '../runtime/holds/semaphore.ts';
import type { ClaimReleaseOutcome, HoldClaim } from '../runtime/holds/terms.ts';
import type { SurveyedHold, SurveyedWaiter } from '../runtime/observe/survey/index.ts';
import type { HeldBy } from '../runtime/refusal.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { QueuePlace } from './place.ts';

export type Kind = 'lock' | 'semaphore';

export interface Named {
  readonly kind: Kind;
  readonly name: string;
}

/** What an agent asks for. */
export interface Want extends Named {
  readonly holder: string;
  /** Whether to wait in the queue. */
  readonly waits: boolean;
  readonly mode?: LockMode | undefined;
  readonly slots?: number | undefined;
  readonly capacity?: number | undefined;
  readonly reason?: string | undefined;
  readonly priority?: number | undefined;
  readonly maxHoldMs: number;
}

export interface Granted extends HoldClaim {
  readonly kind: 'granted';
  readonly resource: string;
  /** Whether the holder already had it. */
  readonly isHeldBefore: boolean;
  readonly mode?: LockMode;
  readonly slots?: readonly number[];
  /** It ends when its holder has made no call for this long; absent if a process renews it. */
  readonly ttlMs?: number;
  /** How long it may be held from now on. */
  readonly maxHoldMs?: number;
}

export interface Queued {
  readonly kind: 'waiting';
  readonly ticket: string;
  readonly position: number | undefined;
  readonly holders: readonly HeldBy[];
}

export type Asked = Granted | Queued | { readonly kind: 'gone' };

export type Renewed =
  | { readonly kind: 'renewed'; readonly ttlMs?: number; readonly maxHoldMs?: number }
  | { readonly kind: 'lost'; readonly why?: string }
  | { readonly kind: 'not-owner' };

export interface ClaimWanted {
  readonly holder: string;
  readonly task?: string | undefined;
  readonly capabilities?: readonly string[] | undefined;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface ClaimedTask {
  readonly task: string;
  readonly holder: string;
  readonly token: number;
  readonly attempt: number;
  readonly data: unknown;
  readonly ttlMs?: number;
}

/** Throws `NotAcquired` if a request is refused. */
export interface Seat {
  /** Whether a call of this holder has to renew its holds. */
  needsTouch(holder: string): boolean;
  /** Grants at once, or leaves the request in the queue. */
  ask(want: Want): Promise<Asked>;
  /**
   * Goes on with a request for at most `waitMs`, or until `stopping` aborts. Keeps its place for another window; over stdio only
   * while the process lives.
   */
  collect(place: QueuePlace, waitMs: number, signal: AbortSignal, stopping?: AbortSignal): Promise<Asked>;
  /** Leaves the queue, and releases the hold if the request was granted. Answers whether there was such a request. */
  withdraw(place: QueuePlace): Promise<boolean>;
  /** The same for a wait that its client gives up; keeps a hold that was collected. */
  giveUp(place: QueuePlace): Promise<void>;
  renew(of: Named, claim: HoldClaim, maxHoldMs: number | undefined): Promise<Renewed>;
  release(of: Named, claim: { readonly holder: string; readonly token?: number }): Promise<ClaimReleaseOutcome>;
  claim(wanted: ClaimWanted): Promise<ClaimedTask>;
  /**
   * Called when a holder makes a call: renews its holds for their full time. Answers these holds, without grants that have yet to
   * be collected.
   */
  touch(holder: string): Promise<readonly Held[]>;
  /** Called when a client polls a task of this holder, every few seconds: renews the holder's holds at little cost. */
  polled(holder: string): Promise<void>;
}

/** A hold or a claim of a holder. */
export interface Held {
  readonly resource: string;
  readonly token: number;
}

export function resourceOf(box: Signalbox, { kind, name }: Named, capacity?: number): Lock | Semaphore {
  if (kind === 'lock') return box.lock(name);
  return box.semaphore(name, given({ capacity }));
}

/** Who holds a lock or slots of a semaphore, and who waits for it. */
export async function lookedAt(
  box: Signalbox,
  { kind, name }: Named,
): Promise<{ readonly holds: readonly SurveyedHold[]; readonly waiting: readonly SurveyedWaiter[] }> {
  const { locks, semaphores } = await box.survey({ resource: { kind, name } });
  return [...locks, ...semaphores][0] ?? { holds: [], waiting: [] };
}

export type HeldNow = Held & { readonly isAttached: boolean; readonly of: Named | { readonly task: string } };

/** Finds the holds and claims of one holder in all processes. */
export async function heldBy(box: Signalbox, holder: string): Promise<readonly HeldNow[]> {
  const [{ locks, semaphores }, tasks] = await Promise.all([
    box.survey({ leases: false }),
    box.tasks.list({ status: 'running' }),
  ]);
  const named = [
    ...locks.map((one) => ({ ...one, kind: 'lock' as const })),
    ...semaphores.map((one) => ({ ...one, kind: 'semaphore' as const })),
  ];
  return [
    ...named.flatMap(({ kind, name, resource, holds }) =>
      holds
        .filter((hold) => hold.holder === holder && !hold.isStale)
        .map(({ token, isAttached }) => ({ resource, token, isAttached, of: { kind, name } })),
    ),
    ...tasks.flatMap(({ id, owner, token }) =>
      owner === holder && token !== undefined
        ? [{ resource: `task/${id}`, token, isAttached: false, of: { task: id } }]
        : [],
    ),
  ];
}

/** Renews the holds that have their own lease; their process renews the others. */
export async function renewDetached(box: Signalbox, holder: string, held: readonly HeldNow[]): Promise<void> {
  const detached = held.filter(({ isAttached }) => !isAttached);
  await Promise.all(
    detached.map(({ of, token }) =>
      'task' in of ? box.tasks.renew(of.task, { holder, token }) : resourceOf(box, of).renew({ holder, token }),
    ),
  );
}

export function told({ resource, token }: Held): Held {
  return { resource, token };
}
