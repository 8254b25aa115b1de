/** Checks a store and its contents. */
import type { Health } from '../../store/index.ts';
import type { Probe } from '../../runtime/upkeep/probe.ts';
import type { Malformed } from '../../runtime/stored.ts';
import type { WitnessSize } from '../../runtime/witness/size.ts';
import type { Survey, SurveyedHold } from '../../runtime/observe/survey/index.ts';
import { spoken } from '../../core/index.ts';
import { stateOf } from '../who-table.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

const SLOW_MS = 250;

export function writable({ readMs, writeMs }: Probe): Finding {
  const message = `a write took ${writeMs.toFixed(1)} ms, a read ${readMs.toFixed(1)} ms`;
  const advice = 'find out what else keeps the disk or the store busy';
  return writeMs + readMs > SLOW_MS ? warn('write', message, advice) : ok('write', message);
}

/** How soon a change wakes a waiter. */
export function wakes({ wakeMs }: Probe): Finding {
  const advice =
    'waiters get their turn late; see the line about inotify, and check that the file system reports changes';
  if (wakeMs === undefined) return fail('wake', 'a change was not noticed within 2 s', advice);
  const message = `a change was noticed after ${wakeMs.toFixed(1)} ms`;
  return wakeMs > SLOW_MS ? warn('wake', message, advice) : ok('wake', message);
}

/** Maintenance keeps this many revisions, and lets twice as many accumulate. */
const MUCH_HISTORY = 50_000;

/** From here on a person should look at it: maintenance trims a record that is full. */
const FULL_AT = 0.8;

/** Of a store whose witness is on. */
export function witness({ entries, bytes, filled, failing }: WitnessSize): Finding {
  const message = `the record has ${entries} entries, about ${bytes} bytes: ${Math.round(filled * 100)} % full`;
  if (failing !== undefined) {
    const repair = failing.startsWith('trim:')
      ? 'see what is damaged: signalbox witness verify; or allow more: signalbox witness configure'
      : 'repair what --witness-anchor or --witness-archive of signalbox serve names; it is tried again within an hour';
    return warn('witness', `${message}; maintenance cannot keep it safe: ${failing}`, repair);
  }
  if (filled < FULL_AT) return ok('witness', message);
  const advice =
    'keep what is about to be trimmed: signalbox witness trim --to FILE; or allow more: signalbox witness configure';
  return warn('witness', message, advice);
}

/** `isEtcd`: the operators of an etcd decide how much history it keeps. */
export function history({ revision, compacted }: Health, isEtcd = false): Finding {
  const kept = revision - compacted;
  const message = `revision ${revision}, history of the last ${kept}`;
  if (kept <= MUCH_HISTORY) return ok('history', message);
  const compacts =
    'let etcd compact its history by itself: --auto-compaction-mode=revision --auto-compaction-retention=10000';
  return warn('history', message, isEtcd ? compacts : 'no process seems to do the maintenance; run signalbox maintain');
}

export function staleHolds(survey: Survey): Finding {
  const stale = holdsOf(survey).filter(([, hold]) => hold.isStale);
  if (stale.length === 0) return ok('stale-holds', 'no hold is stale');
  const kinds = stale.map(([resource]) => (resource.startsWith('lock/') ? 'lock' : 'sem'));
  const broken = [...new Set(kinds)].map((kind) => `signalbox ${kind} break NAME`).join(', ');
  const advice = `signalbox maintain frees them, except where a person must decide: ${broken}`;
  return warn('stale-holds', `${stale.length} stale: ${told(stale)}`, advice);
}

/** Finds keys that cannot be read. Their locks and semaphores are unusable until the keys are deleted. */
export function keys(malformed: readonly Malformed[]): Finding {
  if (malformed.length === 0) return ok('keys', 'every key can be read');
  const advice =
    'find out which program wrote them, then delete them (etcdctl del, or restore an older copy of the store)';
  return fail('keys', malformed.map(({ why }) => why).join('. '), advice);
}

export function leases(survey: Survey): Finding {
  const holds = holdsOf(survey);
  const ill = holds.filter(([, { health }]) => health === 'overdue' || health === 'process-gone');
  if (ill.length > 0) {
    return warn('leases', told(ill), 'a process hangs, or has just ended; its holds end with its lease');
  }
  const live = holds.filter(([, hold]) => !hold.isStale);
  const oldest = Math.max(0, ...live.map(([, { lease }]) => lease?.renewedMs ?? 0));
  const since = live.length === 0 ? '' : `; the oldest renewal was ${spoken(oldest)} ago`;
  return ok('leases', `${live.length} held, ${survey.sessions.length} processes connected${since}`);
}

function holdsOf({ locks, semaphores }: Survey): readonly (readonly [string, SurveyedHold])[] {
  return [...locks, ...semaphores].flatMap(({ resource, holds }) =>
    holds.map((hold): readonly [string, SurveyedHold] => [resource, hold]),
  );
}

function told(holds: readonly (readonly [string, SurveyedHold])[]): string {
  const some = holds.slice(0, 5).map(([resource, hold]) => `${resource} of ${hold.holder} (${stateOf(hold)})`);
  return some.join(', ') + (holds.length > some.length ? ` and ${holds.length - some.length} more` : '');
}
