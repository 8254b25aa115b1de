/**
 * Forgets finished tasks: each some time after it ended, and the oldest ones if there are too many.
 *
 * The store measures the time, so no clocks of two machines are compared, and tasks that other programs finished, which
 * leave no time at all, count as well. Maintenance makes a mark now and then:
 *
 *     t/mark/7      on a lease of `keepMs`; whatever ended at revision 7 or before was over when the mark was made
 *     t/retention   the settings, the marks that were made, and `horizon`: the last mark whose time is over.
 *                   Tasks that ended up to that revision are forgotten
 *
 * The reboot of a machine ends every lease of its embedded store, also of marks whose time has just begun. So a mark that is
 * gone counts only if its time can have passed by the clock of the process that looks. That clock can only delay the end of a
 * mark.
 */
import { isFinished, type Task, isCount, isTime, isRecord } from '../../core/index.ts';
import { type Operation, prefixed, readRange, type Revision } from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { encode } from '../layout.ts';
import { type Accepted, wholeNumber } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { forgetTask } from './unclaimed.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { persistently, sendWitnessed } from '../write/write-once.ts';
import type { TaskCache } from './task-cache.ts';

/** How long finished tasks are kept. */
export interface Retention {
  /** Finished tasks are kept for this long, at most for a year. */
  readonly keepMs: number;
  /** At most this many finished tasks are kept. */
  readonly keepMost: number;
}

interface Mark {
  readonly revision: Revision;
  /** When its time is over, by the clock of the process that made it. */
  readonly until: number;
}

interface Kept extends Retention {
  readonly horizon: Revision;
  readonly marks: readonly Mark[];
}

interface Look {
  readonly kept: Kept;
  readonly mod: Revision;
  readonly revision: Revision;
  /** The marks that are there, and their leases. */
  readonly live: ReadonlyMap<Revision, string | null>;
}

const PREFIX = 't/';
const KEY = `${PREFIX}retention`;
const MARKS = `${PREFIX}mark/`;

export const DEFAULT_RETENTION: Retention = { keepMs: 7 * 86_400_000, keepMost: 10_000 };
/** Every engine can make a lease of a year; etcd refuses one of a few centuries. */
const LONGEST_KEEP_MS = 366 * 86_400_000;
export const keepTime: Accepted = {
  words: `a whole number of milliseconds from 1 to ${LONGEST_KEEP_MS}, which is a year`,
  fits: (value) => wholeNumber.fits(value) && (value as number) <= LONGEST_KEEP_MS,
};
/** How many marks are made while one lasts: a task may be kept for an eighth longer than it has to be. */
const MARKS_AT_ONCE = 8;
/** How many tasks one round of maintenance forgets at most. */
const MOST_AT_ONCE = 1_000;

export async function retentionOf(runtime: Runtime): Promise<Retention> {
  const { keepMs, keepMost } = (await look(runtime)).kept;
  return { keepMs, keepMost };
}

/** The settings as they are saved; empty if they are the defaults. */
export async function changedRetention(runtime: Runtime): Promise<{ readonly retention?: Retention }> {
  const retention = await retentionOf(runtime);
  return isDefault(retention) ? {} : { retention };
}

/** A load keeps a setting that was made in this store. */
export async function configureUnlessChanged(runtime: Runtime, loaded: Retention): Promise<void> {
  if (isDefault(await retentionOf(runtime))) await configureRetention(runtime, loaded);
}

/** For all processes that use this store. Tasks that have ended already keep the earlier settings. */
export function configureRetention(runtime: Runtime, change: Partial<Retention>): Promise<Retention> {
  // Harmless to repeat: the second time it changes nothing.
  return persistently(runtime, runtime.giveUpAt(), async () => {
    for (;;) {
      const { kept, mod } = await look(runtime);
      const { keepMs = kept.keepMs, keepMost = kept.keepMost } = change;
      const settings = { keepMs, keepMost };
      if (keepMs === kept.keepMs && keepMost === kept.keepMost) return settings;
      const deed = {
        resource: 'settings/tasks',
        actor: runtime.sender.id,
        command: 'configure',
        outcome: 'configured',
      };
      if (await write(runtime, { ...kept, ...settings }, mod, undefined, [{ ...deed, detail: settings }]))
        return settings;
    }
  });
}

/** Forgets what is due, and answers how many tasks that were. */
export async function sweepFinished(runtime: Runtime, cache: TaskCache): Promise<number> {
  await cache.start();
  const finished = [...cache.values()].filter(isFinished);
  if (finished.length === 0) return 0;
  const { horizon, keepMost } = await advance(runtime, await look(runtime));
  finished.sort((a, b) => endOf(a) - endOf(b));
  const tooMany = finished.length - keepMost;
  const due = finished
    .filter((task, place) => place < tooMany || endOf(task) <= horizon)
    // A task that depends on it could never begin.
    .filter((task) => cache.dependentsOf(task.id).length === 0);
  let forgotten = 0;
  for (const task of due.slice(0, MOST_AT_ONCE)) {
    const { kind } = await forgetTask(runtime, task.id, () => undefined, task);
    if (kind === 'forgotten') forgotten += 1;
  }
  return forgotten;
}

/** Takes note of marks whose time is over, and makes a new one when the last has lasted for its share. */
async function advance(runtime: Runtime, { kept, mod, revision, live }: Look): Promise<Kept> {
  const { store, stopped, clock } = runtime;
  const now = clock.now();
  const over = kept.marks.filter((mark) => !live.has(mark.revision) && mark.until <= now);
  const horizon = Math.max(kept.horizon, ...over.map((mark) => mark.revision));
  const next: Kept = { ...kept, horizon, marks: kept.marks.filter((mark) => mark.revision > horizon) };
  const isDue = await isMarkDue(runtime, next, live, now);
  if (!isDue && over.length === 0) return kept;
  const lease = isDue ? await store.grantLease(kept.keepMs, stopped) : undefined;
  const marked = isDue ? { ...next, marks: [...next.marks, { revision, until: now + kept.keepMs }] } : next;
  const isWritten = await write(runtime, marked, mod, lease && { mark: revision, leaseId: lease.id });
  if (!isWritten && lease !== undefined) await store.revokeLease(lease.id, stopped).catch(() => undefined);
  return isWritten ? marked : kept;
}

async function isMarkDue(
  { store, stopped }: Runtime,
  { marks, keepMs }: Kept,
  live: Look['live'],
  now: number,
): Promise<boolean> {
  const last = marks.at(-1);
  if (last === undefined) return true;
  const lease = live.get(last.revision) ?? null;
  const state = lease === null ? null : await store.leaseState(lease, stopped);
  // Once a mark has lost its lease, only a clock can measure its time. A clock by which it would last longer than `keepMs`
  // was wrong.
  const remainingMs = state?.remainingMs ?? last.until - now;
  return remainingMs < keepMs * (1 - 1 / MARKS_AT_ONCE) || (state === null && remainingMs > keepMs);
}

async function look({ store, stopped }: Runtime): Promise<Look> {
  const { pairs, revision } = await readRange(store, prefixed(PREFIX), stopped);
  const settings = pairs.find(({ key }) => key === KEY);
  const marks = pairs.filter(({ key }) => key.startsWith(MARKS));
  return {
    kept: keptIn(settings?.value),
    mod: settings?.modRevision ?? 0,
    revision,
    live: new Map(marks.map(({ key, lease }) => [Number(key.slice(MARKS.length)), lease])),
  };
}

async function write(
  runtime: Runtime,
  kept: Kept,
  mod: Revision,
  made?: { readonly mark: Revision; readonly leaseId: string },
  deeds: readonly Deed[] = [],
): Promise<boolean> {
  const success: Operation[] = [{ do: 'put', key: KEY, value: encode(kept) }];
  if (made !== undefined) {
    success.push({ do: 'put', key: `${MARKS}${made.mark}`, value: encode({}), lease: made.leaseId });
  }
  return (await sendWitnessed(runtime, ifUnchanged(KEY, mod, success), deeds)).succeeded;
}

function isDefault({ keepMs, keepMost }: Retention): boolean {
  return keepMs === DEFAULT_RETENTION.keepMs && keepMost === DEFAULT_RETENTION.keepMost;
}

/** The revision at which it ended. */
function endOf({ status, data }: Task): Revision {
  return status?.mod ?? data?.mod ?? 0;
}

/** What is malformed counts as absent: then nothing is forgotten too early. */
function keptIn(value: { readonly json: unknown } | undefined): Kept {
  const none: Kept = { ...DEFAULT_RETENTION, horizon: 0, marks: [] };
  let json: unknown;
  try {
    json = value?.json;
  } catch {
    return none;
  }
  if (!isRecord(json)) return none;
  const { keepMs, keepMost, horizon, marks } = json;
  return {
    keepMs: keepTime.fits(keepMs) ? (keepMs as number) : none.keepMs,
    keepMost: isCount(keepMost) ? keepMost : none.keepMost,
    horizon: isCount(horizon) ? horizon : 0,
    marks: Array.isArray(marks) ? marks.filter(isMark) : [],
  };
}

function isMark(mark: unknown): mark is Mark {
  return isRecord(mark) && isCount(mark['revision']) && isTime(mark['until']);
}
