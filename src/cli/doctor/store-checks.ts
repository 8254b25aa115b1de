/** What can be told of a store and of what is in it. */
import type { Health } from '../../store/index.ts';
import type { Probe } from '../../runtime/upkeep/probe.ts';
import type { Malformed } from '../../runtime/stored.ts';
import type { Survey, SurveyedHold } from '../../runtime/observe/survey/index.ts';
import { spoken } from '../../core/index.ts';
import { stateOf } from '../who-table.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

const SLOW_MS = 250;

export function writable({ readMs, writeMs }: Probe): Finding {
  const message = `a write took ${writeMs.toFixed(1)} ms, a read ${readMs.toFixed(1)} ms`;
  const advice = 'look at what else keeps the disk, or the store, busy';
  return writeMs + readMs > SLOW_MS ? warn('write', message, advice) : ok('write', message);
}

/** How soon one who waits hears that it is its turn. */
export function wakes({ wakeMs }: Probe): Finding {
  const advice = 'whoever waits is let in late; see the inotify line, and whether the file system tells of changes';
  if (wakeMs === undefined) return fail('wake', 'a change was not heard of within 2 s', advice);
  const message = `a change was heard of after ${wakeMs.toFixed(1)} ms`;
  return wakeMs > SLOW_MS ? warn('wake', message, advice) : ok('wake', message);
}

/** So many revisions are kept by maintenance, and it lets twice as many come together. */
const MUCH_HISTORY = 50_000;

/** `isEtcd`: it is for those who run it to say how much history it keeps. */
export function history({ revision, compacted }: Health, isEtcd = false): Finding {
  const kept = revision - compacted;
  const message = `revision ${revision}, history of the last ${kept}`;
  if (kept <= MUCH_HISTORY) return ok('history', message);
  const compacts =
    'let etcd forget history by itself: --auto-compaction-mode=revision --auto-compaction-retention=10000';
  return warn('history', message, isEtcd ? compacts : 'nobody seems to do the maintenance: signalbox maintain');
}

export function staleHolds(survey: Survey): Finding {
  const stale = holdsOf(survey).filter(([, hold]) => hold.isStale);
  if (stale.length === 0) return ok('stale-holds', 'no hold is stale');
  const kinds = stale.map(([resource]) => (resource.startsWith('lock/') ? 'lock' : 'sem'));
  const broken = [...new Set(kinds)].map((kind) => `signalbox ${kind} break NAME`).join(', ');
  const advice = `signalbox maintain frees them, but not where a person has to decide: ${broken}`;
  return warn('stale-holds', `${stale.length} stale: ${told(stale)}`, advice);
}

/** Nobody can use what such a key stands for until it is gone. */
export function keys(malformed: readonly Malformed[]): Finding {
  if (malformed.length === 0) return ok('keys', 'every key can be read');
  const advice = 'find out what wrote them, then delete them (etcdctl del, or a copy of the store from before)';
  return fail('keys', malformed.map(({ why }) => why).join('. '), advice);
}

export function leases(survey: Survey): Finding {
  const holds = holdsOf(survey);
  const ill = holds.filter(([, { health }]) => health === 'overdue' || health === 'process-gone');
  if (ill.length > 0) {
    return warn('leases', told(ill), 'a process hangs, or has just ended: its holds end with its lease');
  }
  const live = holds.filter(([, hold]) => !hold.isStale);
  const oldest = Math.max(0, ...live.map(([, { lease }]) => lease?.renewedMs ?? 0));
  const since = live.length === 0 ? '' : `; the longest since a renewal is ${spoken(oldest)}`;
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
