/**
 * Detached members have a lease of their own, so they outlive the process that made them: their program, which may be written in
 * any language, renews them through a server, and ends them by id and incarnation.
 */
import { type AssetChange, DETACHED_TTL_MS, type Json, renewWithinMs } from '../../core/index.ts';
import { type KeyValue, type LeaseId, readRange, type Revision } from '../../store/index.ts';
import { refreshed } from '../holds/detached.ts';
import type { RenewOutcome } from '../holds/terms.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { hasPassed, isOfOneMachine, MARGIN, sentNow } from '../session/session.ts';
import { persistently, sendWitnessed } from '../write/write-once.ts';
import { aboutOf, enter, type JoinTerms, type NotJoined } from './joining.ts';
import { memberKey, recordIn } from './records.ts';
import { changeAssets, type RegisterOutcome } from './registering.ts';

/** How to join for a program that is not this process. */
export interface DetachedJoinOptions extends JoinTerms {
  /** The member has left if it is not renewed for this long: 60 s, if not given. */
  readonly ttlMs?: number;
}

/** A member that outlives the process that made it. */
export interface DetachedMember {
  /** Its id. */
  readonly id: string;
  /** Tells this membership from an earlier and a later one with the same id. */
  readonly incarnation: Revision;
  /** The member has left after this time without a renewal. */
  readonly ttlMs: number;
  /** Renew it within this time, and again within this time after each renewal. */
  readonly renewWithinMs: number;
}

/** What `joinDetached` answers. */
export type DetachedJoinOutcome = { readonly kind: 'joined'; readonly member: DetachedMember } | NotJoined;

/** What came of leaving. `attached`: the member belongs to a process, and only that process can leave. */
export type LeaveOutcome = { readonly kind: 'left' | 'lost' | 'attached' };

export async function joinDetached(
  runtime: Runtime,
  id: string,
  metadata: Json | undefined,
  { ttlMs: asked = DETACHED_TTL_MS, ...terms }: DetachedJoinOptions,
): Promise<DetachedJoinOutcome> {
  const { store, clock, stopped } = runtime;
  const about = { ...aboutOf(runtime, id, metadata, terms), detached: true } as const;
  await runtime.ready();
  const sent = sentNow(clock);
  const { id: leaseId, ttlMs } = await store.grantLease(asked, stopped);
  const drop = (): Promise<unknown> => store.revokeLease(leaseId).catch(() => undefined);
  try {
    const joined = { kind: 'joined', ttlMs } as const;
    const groundOf = async () => ({ session: await runtime.ready(), leaseId });
    const outcome = await enter(runtime, about, groundOf, (_, incarnation) => ({ ...joined, incarnation }));
    if (outcome.kind !== 'joined') {
      await drop();
      return outcome;
    }
    // The answers may have taken so long that the lease has ended by now.
    if (hasPassed(clock, sent, ttlMs * (1 - MARGIN), isOfOneMachine(store))) {
      throw new NotAcquired(`member/${id}`, { kind: 'lost' });
    }
    const { incarnation } = outcome;
    return { kind: 'joined', member: { id, incarnation, ttlMs, renewWithinMs: renewWithinMs(ttlMs) } };
  } catch (error) {
    // If it joined all the same, nobody knows of it: it must not keep its id.
    await drop();
    throw error;
  }
}

/** Only its own process renews a session: renewed by others, it would outlive a process that is stuck. */
export async function renewMember(runtime: Runtime, id: string, incarnation: Revision): Promise<RenewOutcome> {
  const { store, stopped } = runtime;
  const found = await namedMember(runtime, id, incarnation);
  if (found === undefined) return { kind: 'lost' };
  const { lease, isDetached } = found;
  const kept = await persistently(runtime, runtime.giveUpAt(), () =>
    isDetached ? store.keepLeaseAlive(lease, stopped) : store.leaseState(lease, stopped),
  );
  if (kept === null) return { kind: 'lost' };
  return isDetached ? refreshed(kept.ttlMs) : { kind: 'attached', ttlMs: kept.ttlMs };
}

export async function leaveDetached(runtime: Runtime, id: string, incarnation: Revision): Promise<LeaveOutcome> {
  const found = await namedMember(runtime, id, incarnation);
  if (found === undefined || !found.isDetached) return { kind: found === undefined ? 'lost' : 'attached' };
  await leave(runtime, id, incarnation);
  // Nothing else rests on this lease.
  await runtime.store.revokeLease(found.lease).catch(() => undefined);
  return { kind: 'left' };
}

export async function registerDetached(
  runtime: Runtime,
  id: string,
  incarnation: Revision,
  change: AssetChange,
): Promise<RegisterOutcome | { readonly kind: 'attached' }> {
  const found = await namedMember(runtime, id, incarnation);
  if (found === undefined || !found.isDetached) return { kind: found === undefined ? 'lost' : 'attached' };
  return changeAssets(runtime, id, incarnation, change);
}

/** Deletes the key of this very membership, so that repeating the write is harmless. */
export async function leave(runtime: Runtime, id: string, incarnation: Revision): Promise<void> {
  const key = memberKey(id);
  const compare = [{ key, target: 'create', is: '=', than: incarnation }] as const;
  await persistently(runtime, runtime.giveUpAt(), () =>
    sendWitnessed(runtime, { compare, success: [{ do: 'delete', key }], failure: [] }, [
      { resource: `member/${id}`, actor: id, command: 'leave', outcome: 'left', events: ['member:left'] },
    ]),
  );
}

async function namedMember(
  runtime: Runtime,
  id: string,
  incarnation: Revision,
): Promise<{ readonly lease: LeaseId; readonly isDetached: boolean } | undefined> {
  const { store, stopped } = runtime;
  const read = async (): Promise<KeyValue | undefined> =>
    (await readRange(store, { key: memberKey(id) }, stopped)).pairs[0];
  const pair = await persistently(runtime, runtime.giveUpAt(), read);
  if (pair?.createRevision !== incarnation || pair.lease === null) return undefined;
  return { lease: pair.lease, isDetached: recordIn(pair).detached === true };
}
