/**
 * How large the record of a pipeline may become. A store limits the size of a write (etcd: 1.5 MiB), and a record
 * beyond that could never be written again: nothing about the pipeline could change, not even that it is cancelled.
 * So a record that would be too large loses what matters least, the oldest first, until it fits:
 *
 *     warnings  ▶  tokens and last words of phases that are over  ▶  all but the first reason of each guard  ▶  the rest
 *
 * The record says how many warnings were dropped. The events of a write have a limit of their own.
 */
import { type Event, unreachable } from '../machine.ts';
import { bytesIn } from '../utf8.ts';
import type { Blocked, PhaseRecord, PipelineRecord } from './record.ts';

/** As JSON in UTF-8. The largest run spec (512 KiB) is written only with the first record, never with one of this size. */
export const LARGEST_RECORD_BYTES = 524_288;
export const LARGEST_EVENTS_BYTES = 393_216;

/** What is left of a text that has to be short. */
const FEW_LETTERS = 60;
const FEW = 5;

/** The very same record if it fits as it is. */
export function fitted(record: PipelineRecord, most: number = LARGEST_RECORD_BYTES): PipelineRecord {
  let excess = bytesOf(record) - most;
  if (excess <= 0) return record;
  let small = record;
  for (const reduce of REDUCTIONS) {
    small = reduce(small, excess);
    excess = bytesOf(small) - most;
    if (excess <= 0) return small;
  }
  return small;
}

/** The very same events if they fit as they are. */
export function fittedEvents(events: readonly Event[], most: number = LARGEST_EVENTS_BYTES): readonly Event[] {
  if (bytesOf(events) <= most) return events;
  return events.map((event) => {
    const { reasons } = event;
    return Array.isArray(reasons) ? { ...event, reasons: fewOf(reasons as readonly string[]) } : event;
  });
}

/** Makes a record smaller by about `excess` bytes, if it can. */
type Reduction = (record: PipelineRecord, excess: number) => PipelineRecord;

const REDUCTIONS: readonly Reduction[] = [withoutOldWarnings, withoutOldPhases, withShortReasons, withShortPhases];

/** Phase by phase from the first on, and in each the oldest first. */
function withoutOldWarnings(record: PipelineRecord, excess: number): PipelineRecord {
  let left = excess;
  const phases = record.phases.map((phase): PhaseRecord => {
    const { warnings = [], ...rest } = phase;
    if (left <= 0 || warnings.length === 0) return phase;
    // The note of how many were dropped takes room as well.
    if (phase.warningsDropped === undefined) left += '"warningsDropped":1000000,'.length;
    let dropped = 0;
    while (left > 0 && dropped < warnings.length) left -= bytesOf(warnings[dropped++]);
    const kept = warnings.slice(dropped);
    const warningsDropped = (phase.warningsDropped ?? 0) + dropped;
    return { ...rest, ...(kept.length > 0 && { warnings: kept }), warningsDropped };
  });
  return { ...record, phases };
}

function withoutOldPhases(record: PipelineRecord): PipelineRecord {
  const phases = record.phases.map((phase, at): PhaseRecord => {
    if (at >= record.step.phase) return phase;
    const { tokens: _, ...rest } = phase;
    return rest.ended === undefined ? rest : { ...rest, ended: shortened(rest.ended) };
  });
  return { ...record, phases };
}

function withShortReasons(record: PipelineRecord): PipelineRecord {
  const { blocked } = record;
  return blocked === undefined ? record : { ...record, blocked: shortBlocked(blocked) };
}

function shortBlocked(blocked: Blocked): Blocked {
  switch (blocked.on) {
    case 'guard': {
      const guards = blocked.guards.map((guard) => ({ ...guard, reasons: fewOf(guard.reasons, 1) }));
      return { ...blocked, guards, wakeOn: fewOf(blocked.wakeOn), polled: fewOf(blocked.polled) };
    }
    case 'holds':
      return { ...blocked, resources: fewOf(blocked.resources) };
    case 'backoff':
    case 'person':
      return blocked;
    default:
      return unreachable(blocked);
  }
}

/** Drops the tokens of all phases, also of the current one: the locks themselves know what it holds. */
function withShortPhases(record: PipelineRecord): PipelineRecord {
  const phases = record.phases.map(({ tokens: _, ...phase }): PhaseRecord =>
    phase.ended === undefined ? phase : { ...phase, ended: shortened(phase.ended) },
  );
  return { ...record, phases };
}

/** The first few texts, each in a few letters, and how many more there are. */
function fewOf(texts: readonly string[], few = FEW): readonly string[] {
  const first = texts.slice(0, few).map(shortened);
  return texts.length > few ? [...first, `and ${texts.length - few} more`] : first;
}

function shortened(text: string): string {
  return text.length > FEW_LETTERS ? `${text.slice(0, FEW_LETTERS)}…` : text;
}

/** As JSON in UTF-8. */
export function bytesOf(value: unknown): number {
  return bytesIn(JSON.stringify(value) ?? '');
}
