/** The last steps before a hold is handed out: its time limit is set, or the outer hold of another process is followed. */
import { Failure } from '../../failure.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { MARGIN, sentNow } from '../session/session.ts';
import { type AnyCommand, BackgroundCommand, outcomeOf } from '../write/pending-command.ts';
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
    // If its time was up before the record had the limit, `release` did nothing, and no limit ends the hold.
    if (hold.lost !== undefined)
      runtime.writerFor(hold.resource).submit(new BackgroundCommand({ kind: 'cancel', id: hold.id }));
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
  // Before the store hears of it: from then on it may give the resource to the next one, and re-entries already rest on the hold.
  hold.endsWith(lease.leaseId, sent, lease.ttlMs * (1 - MARGIN));
  const command = { kind: 'extend', holder, id, limit: lease.name } as AnyCommand;
  const outcome = await outcomeOf(runtime.writerFor(hold.resource), command, runtime.giveUpAt());
  if (outcome.kind !== 'refreshed') {
    hold.lose({ why: 'reclaimed' });
    hold.check();
  }
}
