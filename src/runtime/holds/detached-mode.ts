/** Changes the mode of a detached hold: from shared to exclusive, and back. */
import { DETACHED_TTL_MS } from '../../core/index.ts';
import { NotAcquired } from '../refusal.ts';
import { sentNow } from '../session/session.ts';
import type { AnyCommand, AnyOutcome } from '../write/pending-command.ts';
import { UpgradeAcquisition, type WaitOptions } from './acquisition.ts';
import { checked, isKnownLost, isOfSession, renewWhileWaiting } from './detached.ts';
import type { AnyResource } from './resource.ts';
import { sessionWithin } from './session-in-time.ts';
import type { HoldClaim, ModeOutcome } from './terms.ts';

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
      new UpgradeAcquisition(runtime, of.anyWriter, command, session.id, waiting, deliver, resolve, reject).ask();
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
