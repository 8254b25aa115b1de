/** Changes a detached hold: from shared to exclusive and back, or into a hold of this process. */
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type AnyCommand, outcomeOf, type AnyOutcome } from '../write/pending-command.ts';
import type { Hold } from './hold.ts';
import type { DetachedHold, HoldClaim, ModeOutcome } from './terms.ts';
import { keptHold, shownHold, type Want } from './wants.ts';
import { readRange } from '../../store/index.ts';
import { anchorKey, processOf } from '../layout.ts';
import { DETACHED_TTL_MS } from '../../core/index.ts';
import { sentNow } from '../session/session.ts';
import { UpgradeAcquisition } from './acquisition.ts';
import { type WaitOptions, sessionWithin } from './wait-limits.ts';
import { checked, isKnownLost, isOfSession, renewWhileWaiting } from './detached.ts';
import type { AnyResource } from './resource.ts';

/**
 * Makes a detached hold a hold of this process. It rests on the session from then on, which renews it, and this process hears
 * of its loss:
 *
 *     a ticket's grant, on a lease of its own ──attach──▶ a hold of this session
 */
export async function attach(runtime: Runtime, want: Want, held: DetachedHold): Promise<Hold> {
  const { resource, holder, id } = held;
  const session = await runtime.ready();
  const writer = runtime.writerFor(resource);
  const found = await outcomeOf(writer, { kind: 'heartbeat', holder, id } as AnyCommand, runtime.giveUpAt());
  if (found.hold === undefined) throw new NotAcquired(resource, { kind: 'lost' });
  const { lease } = found.hold;
  // Another process has attached it already. Two processes with one ticket would both believe that they hold it.
  if (processOf(lease) === lease) throw new NotAcquired(resource, { kind: 'lost' });
  const { pairs } = await readRange(runtime.store, { key: anchorKey(lease) }, runtime.stopped);
  // Kept here before it moves: from the move on, this process hears of a loss.
  const kept = keptHold(runtime, want, { kind: 'acquired', hold: { ...found.hold, lease: session.id } }, session.id);
  const move = { kind: 'extend', holder, id, lease: session.id, from: lease } as AnyCommand;
  const outcome = await outcomeOf(writer, move, runtime.giveUpAt()).catch((error: unknown) => {
    kept.lose({ why: 'disconnected' });
    throw error;
  });
  if (outcome.kind !== 'refreshed') {
    kept.lose({ why: 'reclaimed' });
    throw new NotAcquired(resource, { kind: 'lost' });
  }
  const former = pairs[0]?.lease ?? undefined;
  if (former !== undefined) await runtime.store.revokeLease(former).catch(() => undefined);
  await kept.handOut();
  kept.check();
  return shownHold(kept);
}

/** Waits to become the writer, under the session of this process, and keeps the hold alive meanwhile. */
export async function upgrade(of: AnyResource, claim: HoldClaim, options: WaitOptions): Promise<ModeOutcome> {
  const { runtime, resource } = of;
  const { session, options: left } = await sessionWithin(runtime, resource, options);
  const sent = sentNow(runtime.clock);
  const found = await of.submit({ kind: 'heartbeat', ...checked(of, claim) });
  if (found.kind === 'lost') return { kind: 'lost' };
  if (found.hold === undefined) return { kind: 'not-owner' };
  if (isOfSession(found.hold.lease)) return { kind: 'attached' };
  const { holder, id, lease, ttlMs = DETACHED_TTL_MS } = found.hold;
  const leaseId = await of.leaseIdOf(lease);
  if (leaseId === undefined) return { kind: 'lost' };
  const renewing = renewWhileWaiting(of, { leaseId, ttlMs }, sent);
  const request = runtime.nextId(session);
  const wait = options.waitMs !== 0;
  try {
    const outcome = await new Promise<AnyOutcome>((resolve, reject) => {
      const command = { kind: 'upgrade', holder, id, request, lease: session.id, wait } as AnyCommand;
      const deliver = (answer: AnyOutcome): AnyOutcome => answer;
      const waiting = wait ? left : undefined;
      new UpgradeAcquisition(runtime, of.writer, command, session.id, waiting, deliver, resolve, reject).ask();
    });
    // The answer may have taken so long that the lease of the hold has ended by now.
    if (outcome.hold !== undefined && !renewing.isAlive()) return { kind: 'lost' };
    return modeOutcome(of, outcome, 'upgraded');
  } finally {
    renewing.cancel();
  }
}

export async function downgrade(of: AnyResource, claim: HoldClaim): Promise<ModeOutcome> {
  const found = await of.submit({ kind: 'heartbeat', ...checked(of, claim) });
  if (found.hold !== undefined && isOfSession(found.hold.lease)) return { kind: 'attached' };
  return modeOutcome(of, await of.submit({ kind: 'downgrade', ...checked(of, claim) }), 'downgraded');
}

/** Throws the refusal of an upgrade, as every wait does that ends without what was asked for. */
function modeOutcome(of: AnyResource, outcome: AnyOutcome, kind: 'upgraded' | 'downgraded'): ModeOutcome {
  const { hold } = outcome;
  if (outcome.kind === 'lost' || (hold !== undefined && isKnownLost(of, hold))) return { kind: 'lost' };
  if (hold !== undefined) return { kind, token: hold.token };
  if (outcome.kind === 'not-owner' || outcome.kind === 'already-free') return { kind: 'not-owner' };
  throw new NotAcquired(of.resource, outcome as never);
}
