/**
 * Surveys the whole store at one revision: who holds what, and who waits for whom. Writes nothing and makes no session, so
 * that a look leaves no trace.
 *
 *     r/ records ─┐
 *     q/ tickets ─┼─ one transaction ──▶ resources with holds and queues ──▶ + health of each lease ──▶ Survey
 *     a/ anchors ─┤
 *     c/ notes   ─┘
 */
import type { ResourceKind } from '../../../core/machines.ts';
import {
  availableSlots,
  type Drain,
  type Hold,
  isStale,
  type Json,
  type Limits,
  type LockHold,
  type LockMode,
  type LockRecord,
  type OnStale,
  type SemaphoreHold,
  type SemaphoreRecord,
  slotNumbers,
  type Token,
  wasCollected,
} from '../../../core/index.ts';
import { Failure } from '../../../failure.ts';
import { Operations, prefixed, type Revision } from '../../../store/index.ts';
import { ANCHORS, CHILDREN, processOf, RECORDS, resourceKeys, TICKETS } from '../../layout.ts';
import { aName, anObject, flag, oneOf, refuseWrongValues } from '../../options.ts';
import { ownCopy } from '../../own-copy.ts';
import type { Runtime } from '../../runtime.ts';
import type { Malformed } from '../../stored.ts';
import { Anchored, sessionOf, type SurveyedSession } from './anchored.ts';
import { freshnessOf, type Freshness, type HoldHealth, healthOf } from './health.ts';
import { type Found, foundIn } from './found.ts';
import { orphansOf } from './orphans.ts';
import { queueOf, type SurveyedWaiter } from './queue.ts';

/** A hold, as a survey shows it. */
export interface SurveyedHold {
  /** The id of the hold, unique for all time. */
  readonly id: string;
  /** Who holds it. */
  readonly holder: string;
  /** The token of its grant. */
  readonly token: Token;
  /** By the clock of the process that acquired it. */
  readonly acquiredAt: number;
  /** The reason that its holder gave. */
  readonly reason: string | undefined;
  /** The metadata that its holder gave. */
  readonly metadata: Json | undefined;
  /** How long it may last in all, if that is limited. */
  readonly maxHoldMs: number | undefined;
  /** Whether the hold rests on the session of a process. A detached hold has a lease of its own, which its holder renews. */
  readonly isAttached: boolean;
  /**
   * Whether its holder knows of it: until a grant is collected, it has the lease of its ticket, and nothing measures its longest
   * time. Unknown if leases were not asked for.
   */
  readonly isCollected?: boolean | undefined;
  /** The process that keeps it, if the hold is attached and the process lives. */
  readonly session: SurveyedSession | undefined;
  /** The process that took it; a detached hold outlives that process. */
  readonly takenBy: SurveyedSession | undefined;
  /** The process with which a detached hold ends, if it was tied to one. */
  readonly endsWithPid: number | undefined;
  /** Processes of its command that still run although the process that started it is gone; on this machine only. */
  readonly orphans: readonly number[];
  /** Whether its holder is alive, as far as can be told. */
  readonly health: HoldHealth;
  /** The hold will not become valid again, and the next in line may have the resource. */
  readonly isStale: boolean;
  /** The health of its lease; unknown if the lease has ended, or if leases were not asked for. */
  readonly lease: Freshness | undefined;
  /** An event has announced that the hold is stale. */
  readonly isWarned: boolean;
}

/** A hold of a lock, as a survey shows it. */
export type SurveyedLockHold = SurveyedHold & { readonly mode: LockMode };
/** A hold of slots, as a survey shows it. */
export type SurveyedSemaphoreHold = SurveyedHold & { readonly weight: number; readonly slots: readonly number[] };

interface Surveyed<H extends SurveyedHold> {
  readonly name: string;
  /** `lock/main-branch`. */
  readonly resource: string;
  /** The last token that was granted. */
  readonly token: Token;
  /** Whether the next in line gets a stale hold, or a person decides. */
  readonly onStale: OnStale;
  /** What every holder is bound by. */
  readonly limits: Limits;
  /** In the order of their grants. */
  readonly holds: readonly H[];
  /** In the order of service, as of now. */
  readonly waiting: readonly SurveyedWaiter[];
}

/** A lock, as a survey shows it. */
export type SurveyedLock = Surveyed<SurveyedLockHold>;

/** A semaphore, as a survey shows it. */
export interface SurveyedSemaphore extends Surveyed<SurveyedSemaphoreHold> {
  /** How many slots there are; 0 if nobody has used it yet. */
  readonly capacity: number;
  /** How many of them are held. */
  readonly usedSlots: number;
  /** How many of them are free. */
  readonly availableSlots: number;
  /** Who stopped every grant, when and why; undefined if nobody did. */
  readonly drained: Drain | undefined;
}

/** Everything that is held and waited for, at one revision. */
export interface Survey {
  /** The revision of the store. */
  readonly revision: Revision;
  /** The time of the read, by the clock of this process. */
  readonly at: number;
  /** By name. */
  readonly locks: readonly SurveyedLock[];
  /** By name. */
  readonly semaphores: readonly SurveyedSemaphore[];
  /** The processes that are there. */
  readonly sessions: readonly SurveyedSession[];
  /** The session that does maintenance, if there is one. */
  readonly maintainer: string | undefined;
  /** Keys that were skipped because they cannot be read. Such a resource is in none of the lists above. */
  readonly malformed: readonly Malformed[];
}

/** What to survey. */
export interface SurveyOptions {
  /** Limits the survey to one resource: `{ kind: 'lock', name: 'main-branch' }`. */
  readonly resource?: { readonly kind: ResourceKind; readonly name: string };
  /** Asks the store for the state of each lease, one request each. Without it, the survey only says which leases have ended. */
  readonly leases?: boolean;
}

export async function surveyOf(runtime: Runtime, options: SurveyOptions = {}): Promise<Survey> {
  runtime.refuseIfClosed();
  refuseWrongValues(options, { resource: anObject, leases: flag });
  const { resource, leases = true } = options;
  if (resource !== undefined) refuseWrongValues(resource, { kind: oneOf(['lock', 'semaphore']), name: aName });
  const keys = resource === undefined ? undefined : resourceKeys(resource.kind, resource.name);
  // One transaction instead of pages, so that everything is of one revision.
  const looks = new Operations();
  const queues = keys === undefined ? prefixed(TICKETS) : { key: keys.queue, end: keys.queueEnd };
  const records = looks.read(keys === undefined ? prefixed(RECORDS) : { key: keys.record });
  const tickets = looks.read({ ...queues, order: 'create' });
  const anchors = looks.read(prefixed(ANCHORS));
  const notes = looks.read(prefixed(keys?.children ?? CHILDREN));
  const { results, revision } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const at = runtime.clock.now();
  const malformed: Malformed[] = [];
  const passOver = (one: Malformed): void => void malformed.push(one);
  const anchored = new Anchored(anchors.in(results).pairs, passOver);
  // A caller that asks for one resource must not see it as free because it cannot be read.
  const refuse = ({ why }: Malformed): never => {
    throw new Failure('corrupt', why);
  };
  const found = foundIn(
    records.in(results).pairs,
    tickets.in(results).pairs,
    keys?.resource,
    keys === undefined ? passOver : refuse,
  );
  const held = found.flatMap(({ record }): readonly Hold[] => record.holds);
  const fresh = leases ? await freshnessOf(runtime, anchored, held) : undefined;

  const hold = (grant: Hold): SurveyedHold => {
    const isAttached = processOf(grant.lease) === grant.lease;
    const lease = fresh?.get(grant.lease);
    const session = isAttached ? anchored.session(grant.lease) : undefined;
    // The lease may have ended between the two reads; the later one counts.
    const hasEnded = (name: string): boolean =>
      !anchored.isThere(name) || (name === grant.lease && fresh !== undefined && lease === undefined);
    const tie = isAttached ? undefined : anchored.tie(grant.lease);
    const process = isAttached ? anchored.process(grant.lease) : tie;
    const health = healthOf(grant, hasEnded, process, isAttached, lease);
    return {
      id: grant.id,
      holder: grant.holder,
      token: grant.token,
      acquiredAt: grant.acquiredAt,
      reason: grant.reason,
      metadata: ownCopy(grant.metadata),
      maxHoldMs: grant.maxHoldMs,
      isAttached,
      isCollected: lease === undefined ? undefined : isAttached || wasCollected(grant, lease.ttlMs),
      session,
      takenBy:
        anchored.session(grant.lease) ?? (grant.from === undefined ? undefined : sessionOf(grant.lease, grant.from)),
      endsWithPid: tie?.pid,
      orphans: health === 'process-gone' || health === 'silent' ? orphansOf(grant.id, notes.in(results).pairs) : [],
      health,
      isStale: isStale(grant, { now: at, revision, gone: hasEnded }),
      lease,
      isWarned: grant.warned === true,
    };
  };
  return {
    revision,
    at,
    locks: found.filter(isOf<LockRecord>('lock')).map((lock) => ({
      ...common(lock, anchored),
      holds: lock.record.holds.map((grant: LockHold) => ({ ...hold(grant), mode: grant.mode })),
    })),
    semaphores: found.filter(isOf<SemaphoreRecord>('semaphore')).map((semaphore) => {
      const { capacity, holds, drained } = semaphore.record;
      const usedSlots = holds.reduce((sum, { weight }) => sum + weight, 0);
      return {
        ...common(semaphore, anchored),
        capacity,
        usedSlots,
        availableSlots: availableSlots({ record: semaphore.record, waiting: [] }),
        drained,
        holds: holds.map((grant: SemaphoreHold) => ({
          ...hold(grant),
          weight: grant.weight,
          slots: slotNumbers(grant.slots),
        })),
      };
    }),
    sessions: anchored.sessions(),
    maintainer: anchored.maintainer(),
    malformed,
  };
}

function isOf<Record extends Found['record']>(kind: Record['kind']) {
  return (found: Found): found is Found & { readonly record: Record } => found.record.kind === kind;
}

function common(found: Found, anchored: Anchored): Omit<SurveyedLock, 'holds'> {
  const { name, resource, record } = found;
  const { token, onStale, limits = {} } = record;
  return { name, resource, token, onStale, limits, waiting: queueOf(found, anchored) };
}
