/**
 * Acquires what a run wants so that its place in line can outlive the run: each request is on a lease of its own. When all are
 * there, they become holds of this process. When the time is up, they stay as they are for a while, and their ids are the ticket.
 *
 *     all free ─────────────────────────────────────────────────▶ holds of this process
 *     ask for the first ── granted ── ask for the next ── granted ──▶
 *        └── time is up: exit 75, with the ids ──▶ the next run collects each of them
 *
 * They are asked for in the order of their names, as everywhere, so that two runs cannot block each other.
 */
import { systemClock } from '../../clock.ts';
import { TICKET_MS } from '../../core/index.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import { type DetachedHold, isReentry } from '../../runtime/holds/terms.ts';
import type { TicketAnswer } from '../../runtime/holds/tickets.ts';
import type { Want } from '../../runtime/holds/wants.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import { attachIn, type Signalbox } from '../../runtime/signalbox.ts';
import { given } from '../arguments.ts';
import { collectOrAsk, goneTold, PlaceKept, requestsFor, type Ticketed, ticketOf } from '../ticket.ts';
import { argumentOf, resourceOf } from '../waiting.ts';
import type { AcquireOptions } from './acquire.ts';

/** What was granted already is renewed this often while the run waits for the rest. */
const RENEW_MS = TICKET_MS / 4;

export interface TicketOptions extends AcquireOptions {
  /** The ids of the requests of an earlier run; none for a new ticket. */
  readonly tickets: readonly string[];
  tell(text: string): void;
}

interface Got {
  readonly want: Want;
  readonly held: DetachedHold;
}

/** The holder of an earlier run, by its ticket; undefined if the ticket has ended. */
export async function holderOf(
  box: Signalbox,
  wants: readonly Want[],
  tickets: readonly string[],
): Promise<string | undefined> {
  for (const want of wants) {
    const found = (await requestsFor(box, argumentOf(want))).find(({ id }) => tickets.includes(id));
    if (found !== undefined) return found.holder;
  }
  return undefined;
}

export async function acquireWithTicket(
  box: Signalbox,
  wants: readonly Want[],
  options: TicketOptions,
): Promise<readonly Hold[]> {
  const { tickets, tell: _tell, waitMs, onWaiting: _onWaiting, signal: _signal, ...asked } = options;
  const atOnce = tickets.length > 0 ? undefined : await allAtOnce(box, wants, asked);
  if (atOnce !== undefined) return atOnce;
  const until = waitMs === undefined ? undefined : systemClock.monotonic() + waitMs;
  const got: Got[] = [];
  const holds: Hold[] = [];
  const inOrder = [...wants].sort((one, other) => (resourceOf(one) < resourceOf(other) ? -1 : 1));
  try {
    for (const want of inOrder) {
      const known = (await requestsFor(box, argumentOf(want))).find(({ id }) => tickets.includes(id))?.id;
      got.push({ want, held: await heldAfter(box, want, got, { ...options, until, known }) });
    }
    while (holds.length < got.length) {
      // If this fails, another process has it, or it is lost: it is not ours to give back.
      const [{ want, held }] = got.splice(holds.length, 1) as [Got];
      const hold = await attached(box, want, held, asked);
      got.splice(holds.length, 0, { want, held });
      holds.push(hold);
    }
    return holds;
  } catch (error) {
    if (!(error instanceof PlaceKept)) await giveBack(box, got, holds);
    throw error;
  }
}

/** Undefined if something is taken, so that it has to be waited for. */
async function allAtOnce(
  box: Signalbox,
  wants: readonly Want[],
  asked: Pick<AcquireOptions, 'holder' | 'priority' | 'reason' | 'metadata' | 'within'>,
): Promise<readonly Hold[] | undefined> {
  const attempt = await box.tryAcquireAll(wants, asked);
  if (attempt.ok) return attempt.holds.holds;
  const hopeless = attempt.refusals.find(({ refusal }) => refusal.kind !== 'busy' && refusal.kind !== 'full');
  if (hopeless !== undefined) throw new NotAcquired(hopeless.resource, hopeless.refusal);
  return undefined;
}

/** Waits in slices, and renews in between what was granted before: its caller does not hold it yet. */
async function heldAfter(
  box: Signalbox,
  want: Want,
  before: readonly Got[],
  options: TicketOptions & { readonly until: number | undefined; readonly known: string | undefined },
): Promise<DetachedHold> {
  const { until, known, signal, onWaiting, tell, holder, priority, reason, metadata, within } = options;
  const own = 'lock' in want ? { mode: want.mode ?? 'exclusive' } : { weight: want.weight ?? 1 };
  const asked = { holder, ...given({ priority, reason, metadata, within }), ttlMs: TICKET_MS, ...own };
  const one = ticketed(box, want);
  let ticket = known;
  for (;;) {
    const left = until === undefined ? undefined : Math.max(0, until - systemClock.monotonic());
    const answer: TicketAnswer<DetachedHold> = await collectOrAsk(one, {
      options: asked,
      ticket,
      waitMs: before.length === 0 ? left : Math.min(left ?? RENEW_MS, RENEW_MS),
      signal: signal ?? new AbortController().signal,
      onWaiting: () => onWaiting?.({}),
      onGone: () => tell(goneTold(one.resource)),
    });
    if (answer.kind === 'acquired') return answer.hold;
    ({ ticket } = answer);
    await Promise.all(before.map(({ want: other, held }) => ticketed(box, other).renew(held)));
    if (until === undefined || systemClock.monotonic() < until) continue;
    const ids = [...before.map(({ held }) => held.id), answer.ticket];
    throw new PlaceKept(one.resource, options.waitMs ?? 0, answer, ticketOf(ids));
  }
}

async function attached(
  box: Signalbox,
  want: Want,
  held: DetachedHold,
  asked: Pick<AcquireOptions, 'holder' | 'within'>,
): Promise<Hold> {
  if (!isReentry(held)) return attachIn(box, want, held);
  // The run re-enters the hold that its holder had before, and does not release it.
  const [hold] = (await box.acquireAll([want], { ...asked, waitMs: 0 })).holds;
  if (hold === undefined) throw new NotAcquired(held.resource, { kind: 'lost' });
  return hold;
}

async function giveBack(box: Signalbox, got: readonly Got[], holds: readonly Hold[]): Promise<void> {
  await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
  const own = got.slice(holds.length).filter(({ held }) => !isReentry(held));
  await Promise.all(
    own.map(({ want, held }) =>
      ticketed(box, want)
        .release(held)
        .catch(() => undefined),
    ),
  );
}

function ticketed(
  box: Signalbox,
  want: Want,
): Ticketed<DetachedHold> & Pick<ReturnType<Signalbox['lock']>, 'renew' | 'release'> {
  if ('lock' in want) return box.lock(want.lock);
  return box.semaphore(want.semaphore, given({ capacity: want.capacity })) as never;
}
