/** The last steps before a hold is handed out: its time limit is set, or the outer hold of another process is followed. */
import { Failure } from '../../failure.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { MARGIN, sentNow } from '../session/session.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';
import type { KeptHold } from './hold.ts';

export function handedOut<H extends KeptHold>(runtime: Runtime, hold: H): H | Promise<H> {
  if (hold.isReentry) return hold.isKnown ? hold : hold.handedOut();
  const { maxHoldMs } = hold;
  return maxHoldMs === undefined ? hold : limited(runtime, hold, maxHoldMs);
}

/** Limits a hold before it is handed out: the store measures the time, by a lease that nobody renews. */
async function limited<H extends KeptHold>(runtime: Runtime, hold: H, maxHoldMs: number): Promise<H> {
  try {
    await limit(runtime, hold, maxHoldMs);
    // The hold may have ended since it was granted: then it must not be handed out.
    hold.check();
    return hold;
  } catch (error) {
    await hold.release().catch(() => undefined);
    // The time limit passed before the hold could be handed out.
    if (Failure.is(error, 'not-found')) throw new NotAcquired(hold.resource, { kind: 'lost' });
    throw error;
  }
}

async function limit(runtime: Runtime, hold: KeptHold, maxHoldMs: number): Promise<void> {
  const { holder, id } = hold;
  const sent = sentNow(runtime.clock);
  const session = await runtime.ready();
  const lease = await runtime.anchorLease(session, maxHoldMs);
  runtime.presence.forgetLease(lease.name);
  const command = { kind: 'extend', holder, id, limit: lease.name } as AnyCommand;
  const outcome = await outcomeOf(runtime.writerFor(hold.resource), command, runtime.giveUpAt());
  if (outcome.kind !== 'refreshed') {
    hold.lose({ why: 'reclaimed' });
    hold.check();
  }
  hold.endsWith(lease.leaseId, sent, lease.ttlMs * (1 - MARGIN));
}
