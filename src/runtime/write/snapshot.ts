/** What one process knows of one resource, and how it learns it. */
import { NONE } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { KeyValue, Operation, OperationResult, ReadResult, Revision } from '../../store/index.ts';
import {
  corrupt,
  decode,
  lengthened,
  RECORDS,
  type RecordDocument,
  refuseFault,
  type Report,
  type ResourceKeys,
  ticketClass,
} from '../layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { checked, type Fields, isObject, recordProblem, ticketIn } from '../stored.ts';

/** So much of a queue is read at once: enough to grant from for a while, little enough to carry. */
const FRONT = 256;

/** Changed in place by the writer that owns it: it is on the way of every operation. */
export interface Snapshot<State extends Coordinated> {
  /** The record, and the front of the queue in order of arrival. */
  state: State;
  /** The record's mod revision; 0 if there is none. */
  mod: Revision;
  /** The process that wrote the record, if that is known. */
  by: string | undefined;
  /** Of the last marked commands. */
  marks: readonly string[];
  /** The record was so at this revision. */
  revision: Revision;
  /** The queue was read at this revision; those who arrived later may be missing. */
  queueRevision: Revision;
  /** At `queueRevision` nobody else was waiting. */
  complete: boolean;
  /** At `queueRevision` others were waiting, besides those that are known. */
  othersWait: boolean;
  /** The create revision of each known ticket, by request. */
  arrivals: Map<string, Revision>;
}

/** A guess to begin with: unused, and nobody waits. Whatever is decided on it is checked by the commit. */
export function unknownSnapshot<State extends Coordinated>(unused: State, revision: Revision): Snapshot<State> {
  return {
    state: unused,
    mod: 0,
    by: undefined,
    marks: NONE,
    revision,
    queueRevision: 0,
    complete: false,
    othersWait: false,
    arrivals: new Map(),
  };
}

/** As somebody else knew it when it wrote the record at `revision`. Undefined if that was another version of us. */
export function reportedSnapshot<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  report: Report,
  revision: Revision,
): Snapshot<State> | undefined {
  const record = report.record as State['record'];
  if (record.v !== machine.version) return undefined;
  const waiting = report.waiting.map(([request]) => lengthened(request));
  return {
    state: { ...machine.unused, record, waiting },
    mod: revision,
    by: report.by,
    marks: report.marks ?? NONE,
    revision,
    queueRevision: report.queueRevision,
    complete: false,
    othersWait: report.more === true,
    arrivals: new Map(report.waiting.map(([{ id }, arrival]) => [id, arrival])),
  };
}

/** The reads that `learn` wants, in its order. */
export function snapshotReads(keys: ResourceKeys, whole = false): readonly Operation[] {
  return [{ do: 'read', key: keys.record }, ...queueReads(keys, whole ? undefined : FRONT)];
}

/** The reads that `queueOf` wants. */
export function queueReads({ queue, queueEnd }: ResourceKeys, limit: number | undefined): readonly Operation[] {
  return [
    { do: 'read', key: queue, end: queueEnd, order: 'create', limit },
    { do: 'read', key: queue, end: queueEnd, limit: 1 },
  ];
}

/**
 * Undefined if the queue is longer than what was read and not all of one priority: somebody who goes first may be
 * beyond what was read, so the whole of it is wanted.
 */
export function snapshotFrom<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  results: readonly OperationResult[],
  revision: Revision,
): Snapshot<State> | undefined {
  const [record] = results as readonly ReadResult[];
  const queue = queueOf(results.slice(1));
  if (record === undefined || queue === undefined) return undefined;
  const pair = record.pairs[0];
  const state = pair === undefined ? machine.unused : { ...machine.unused, record: recordOf(machine, pair) };
  return {
    state: queue.waiting.length === 0 ? state : { ...state, waiting: queue.waiting },
    mod: pair?.modRevision ?? 0,
    by: pair === undefined ? undefined : writerOf(pair),
    marks: pair === undefined ? NONE : marksOf(pair),
    revision,
    queueRevision: revision,
    complete: queue.complete,
    othersWait: !queue.complete,
    arrivals: queue.arrivals,
  };
}

interface Queue {
  readonly waiting: Coordinated['waiting'];
  readonly complete: boolean;
  readonly arrivals: Map<string, Revision>;
}

/** The same for the queue alone. */
export function queueOf(results: readonly OperationResult[]): Queue | undefined {
  const [queue, first] = results as readonly ReadResult[];
  if (queue === undefined || first === undefined) throw new TypeError('two reads expected');
  const tickets = queue.pairs;
  const waiting = tickets.map((pair) => ticketIn<Coordinated['waiting'][number]>(pair).request);
  if (queue.more && !allOfOneClass(waiting, first.pairs[0])) return undefined;
  const arrivals = new Map(tickets.map((ticket, place) => [waiting[place]?.id ?? '', ticket.createRevision]));
  return { waiting, complete: !queue.more, arrivals };
}

export function recordOf<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  pair: KeyValue,
): State['record'] {
  if (pair.value.passed === machine) return decode<RecordDocument<State['record']>>(pair).record;
  const { record } = checked<RecordDocument<State['record']>>(pair, documentProblem);
  if (record.v === machine.version) {
    const problem = recordProblem(record as unknown as Fields, machine.unused.record.kind);
    if (problem !== undefined) throw corrupt(pair.key, problem);
    refuseFault(pair.key.slice(RECORDS.length), record);
    pair.value.passed = machine;
    return record;
  }
  throw new Failure(
    'corrupt',
    `${shown(pair.key)} has version ${shown(record.v)}, and this signalbox reads version ${machine.version}: update signalbox`,
  );
}

function documentProblem({ record }: Fields): string | undefined {
  return isObject(record) ? undefined : `its record is ${shown(record)}`;
}

/** Undefined also of a record that cannot be read: who decides on it is told so. */
export function writerOf(pair: KeyValue): string | undefined {
  try {
    const document = decode<unknown>(pair);
    const by = isObject(document) ? document['by'] : undefined;
    return typeof by === 'string' ? by : undefined;
  } catch {
    return undefined;
  }
}

export function marksOf(pair: KeyValue): readonly string[] {
  const { marks } = decode<{ readonly marks?: unknown }>(pair);
  return Array.isArray(marks) ? marks.filter((mark) => typeof mark === 'string') : NONE;
}

function allOfOneClass(waiting: Coordinated['waiting'], first: KeyValue | undefined): boolean {
  const highest = first?.key.split('/').at(-2);
  return waiting.every((request) => ticketClass(request) === highest);
}
