/**
 * Acquires several locks and slots together, or none. If all are free, one transaction takes them. Otherwise they are acquired
 * one after another in the order of their names, which is the same for all processes, and handed out only when all are there;
 * if one cannot be had, the others are released.
 */
import { type HeldBy, NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { writeOnce } from '../write/write-once.ts';
import { HoldSet } from './hold-set.ts';
import type { Hold } from './hold.ts';
import { sessionWithin } from './wait-limits.ts';
import { AskingTogether, type Refusals, type TogetherAttempt, type TogetherOptions } from './together-write.ts';
import { acquireWanted, type Piece, piecesOf, type Want } from './wants.ts';

export async function tryTogether(
  runtime: Runtime,
  wants: readonly Want[],
  options: TogetherOptions = {},
): Promise<TogetherAttempt> {
  const pieces = piecesOf(wants, options);
  const session = await runtime.ready();
  const holder = options.holder ?? runtime.nextId(session);
  const attempted = await attempt(runtime, session, pieces, options, holder);
  if (attempted.kind === 'refused') measureRefusals(runtime, attempted.refusals);
  return attempted;
}

export async function acquireAllTogether(
  runtime: Runtime,
  wants: readonly Want[],
  options: TogetherOptions = {},
): Promise<HoldSet> {
  const since = runtime.clock.monotonic();
  const pieces = piecesOf(wants, options);
  const all = pieces.map(({ resource }) => resource).join(', ');
  const { session } = await sessionWithin(runtime, all, options, false);
  // One holder for all of them, so that deadlock detection sees that it holds one resource and waits for another.
  const holder = options.holder ?? runtime.nextId(session);
  const attempted = await attempt(runtime, session, pieces, options, holder);
  if (options.signal?.aborted === true) {
    if (attempted.kind === 'acquired') await attempted.holds.release();
    throw new NotAcquired(all, { kind: 'aborted', reason: options.signal.reason as unknown });
  }
  if (attempted.kind === 'acquired') return attempted.holds;
  const hopeless = attempted.refusals.find(({ refusal }) => refusal.kind !== 'busy' && refusal.kind !== 'full');
  const [first] = attempted.refusals;
  if (hopeless ?? (options.waitMs === 0 ? first : undefined)) {
    measureRefusals(runtime, attempted.refusals);
    const { resource, refusal } = (hopeless ?? first) as { resource: string; refusal: Refusal };
    throw new NotAcquired(resource, refusal);
  }
  const holds: Hold[] = [];
  try {
    for (const { want } of pieces) {
      const { waitMs } = options;
      const left = waitMs === undefined ? undefined : waitMs - (runtime.clock.monotonic() - since);
      if (left !== undefined && left <= 0) throw timedOut(all, waitMs ?? 0, attempted.refusals);
      holds.push(
        await acquireWanted(runtime, want, { ...options, ...(left !== undefined && { waitMs: left }), holder }),
      );
    }
    for (const hold of holds) hold.check();
    return new HoldSet(holds);
  } catch (error) {
    await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
    throw error;
  }
}

/** Takes all resources at once, or answers what is in the way. */
async function attempt(
  runtime: Runtime,
  session: Session,
  pieces: readonly Piece[],
  options: TogetherOptions,
  holder: string,
): Promise<TogetherAttempt> {
  const asking = new AskingTogether(runtime, session, pieces, { ...options, holder });
  // `writeOnce` settles an attempt that may have been applied: its holds would otherwise stay without an owner until the session ends.
  return writeOnce(runtime, asking);
}

/** Counts refusals. Not used for a call that goes on to wait: each of its waits is counted by itself. */
function measureRefusals(runtime: Runtime, refusals: Refusals): void {
  for (const { resource, refusal } of refusals) {
    const counted = runtime.measures.of(resource);
    counted.failed();
    if (refusal.kind === 'busy' || refusal.kind === 'full') counted.conflict();
  }
}

/** Names the holders that were in the way at first: no request waits for all of them at once. */
function timedOut(all: string, waitedMs: number, refusals: Refusals): NotAcquired {
  const holders = refusals.flatMap(({ refusal }): readonly HeldBy[] => ('holders' in refusal ? refusal.holders : []));
  return new NotAcquired(all, { kind: 'timed-out', waitedMs, holders });
}
