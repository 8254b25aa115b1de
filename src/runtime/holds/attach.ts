/**
 * Makes a detached hold a hold of this process. It rests on the session from then on, which renews it, and this process hears
 * of its loss:
 *
 *     a ticket's grant, on a lease of its own ──attach──▶ a hold of this session
 */
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';
import type { Hold } from './public-hold.ts';
import type { DetachedHold } from './terms.ts';
import type { Parts } from './together-write.ts';
import type { Want } from './wants.ts';
import { readRange } from '../../store/index.ts';
import { anchorKey, processOf } from '../layout.ts';

export async function attach(runtime: Runtime, parts: Parts, want: Want, held: DetachedHold): Promise<Hold> {
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
  const kept = parts.kept(want, { kind: 'acquired', hold: { ...found.hold, lease: session.id } }, session.id);
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
  return parts.shown(kept);
}
