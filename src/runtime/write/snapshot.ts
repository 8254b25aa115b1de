/** The snapshot of one resource in one process: its record and the front of its queue, and the reads that make one. */
import { NONE, isCount, recordProblem, isRecord } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import {
  type KeyValue,
  type OperationResult,
  Operations,
  type Place,
  type ReadRange,
  type ReadResult,
  type Revision,
  type TransactionResult,
} from '../../store/index.ts';
import {
  anchorKey,
  CHAIN_TO_BEGIN,
  type ChainEnd,
  corrupt,
  decode,
  headKey,
  lengthened,
  NO_CHAIN,
  RECORDS,
  type RecordDocument,
  refuseFault,
  type Report,
  type ResourceKeys,
  ticketClass,
  checked,
  type Fields,
  ticketIn,
} from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import type { Coordinated, Machine } from '../../core/machines.ts';
import { chainEnd } from './witness.ts';

/** Tickets read from the front of a queue: enough to grant from for a while, few enough for one answer. */
const FRONT = 256;

/** How many marks a record keeps: enough for as many answers as may be lost at once. */
export const MOST_MARKS = 8;

/** The writer that owns a snapshot changes it in place: every operation passes here, and a copy would cost it time. */
export interface Snapshot<State extends Coordinated> {
  /** The record, and the front of the queue in order of arrival. */
  state: State;
  /** The record's mod revision; 0 if there is none. */
  mod: Revision;
  /** The process that wrote the record; undefined if unknown. */
  by: string | undefined;
  /**
   * The ids of the last commands that leave nothing else in the record (`resize`, `configure`, `break`). If such a command gets
   * no answer, its mark shows whether it landed.
   */
  marks: readonly string[];
  /** The end of its chain in the witness; a guess, where the witness is off or it was not read. */
  chain: ChainEnd;
  /** The revision at which the record was as it is here. */
  revision: Revision;
  /** The revision at which the queue was read; tickets that arrived later may be missing. */
  queueRevision: Revision;
  /** At `queueRevision` the queue had no other tickets. */
  complete: boolean;
  /** At `queueRevision` the queue had more tickets than are known here. */
  othersWait: boolean;
  /** The create revision of each known ticket, by request; undefined while there are none, since most resources have none. */
  arrivals: Map<string, Revision> | undefined;
}

/** Of a lock or of a semaphore. */
export type AnySnapshot = Snapshot<Coordinated>;

/** A first guess: an unused resource with an empty queue. The commit compares it, so a wrong guess only costs a race. */
export function unknownSnapshot<State extends Coordinated>(unused: State, revision: Revision): Snapshot<State> {
  return {
    state: unused,
    mod: 0,
    by: undefined,
    marks: NONE,
    chain: NO_CHAIN,
    revision,
    queueRevision: 0,
    complete: false,
    othersWait: false,
    arrivals: undefined,
  };
}

/** The snapshot that another process reported with its write at `revision`; undefined if that process has another version. */
export function reportedSnapshot<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  report: Report,
  revision: Revision,
): Snapshot<State> | undefined {
  const record = report.record as State['record'];
  if (!isKnown(record.v, machine.version)) return undefined;
  const waiting = report.waiting.map(([request]) => lengthened(request));
  return {
    state: { ...machine.unused, record, waiting },
    mod: revision,
    by: report.by,
    marks: report.marks ?? NONE,
    chain: report.head === undefined ? NO_CHAIN : { ...report.head, keyMod: undefined },
    revision,
    queueRevision: report.queueRevision,
    complete: false,
    othersWait: report.more === true,
    arrivals: arrivalsOf(waiting, (place) => report.waiting[place]?.[1] ?? 0),
  };
}

/** The places of a snapshot's reads in one transaction. */
export interface SnapshotReads {
  readonly record: Place<ReadResult>;
  readonly queue: QueueReads;
  /** Where the witness has the end of a chain without a record; undefined where it is off. */
  readonly head: Place<ReadResult> | undefined;
}

export interface QueueReads {
  /** The tickets, in order of arrival. */
  readonly tickets: Place<ReadResult>;
  /** The first ticket in order of keys, which is one of the highest class. */
  readonly first: Place<ReadResult>;
}

/** Adds the reads of a snapshot; `whole` reads the queue to its end. */
export function readSnapshot(
  operations: Operations,
  keys: ResourceKeys,
  isWitnessed: boolean,
  whole = false,
): SnapshotReads {
  const head = isWitnessed ? operations.read({ key: headKey(keys.record.slice(RECORDS.length)) }) : undefined;
  return {
    head,
    record: operations.read({ key: keys.record }),
    queue: readQueue(operations, keys, whole ? undefined : FRONT),
  };
}

export function readQueue(
  operations: Operations,
  { queue, queueEnd }: ResourceKeys,
  limit: number | undefined,
): QueueReads {
  const tickets: ReadRange = { key: queue, end: queueEnd, order: 'create', limit };
  return { tickets: operations.read(tickets), first: operations.read({ key: queue, end: queueEnd, limit: 1 }) };
}

/** The most leases that one transaction looks up. */
export const MOST_LEASES = 64;

/** The leases on which holds rest: they may be alive or not. */
export function leasesOf({ record }: Coordinated): readonly string[] {
  const leases: string[] = [];
  for (const { lease, limit } of record.holds) {
    leases.push(lease);
    if (limit !== undefined) leases.push(limit);
  }
  return leases;
}

/** The anchors of leases that a transaction reads, by lease. */
export type LeaseReads = ReadonlyMap<string, Place<ReadResult>>;

export function readLeases(operations: Operations, leases: readonly string[]): LeaseReads {
  const reads = new Map<string, Place<ReadResult>>();
  for (const lease of leases) if (!reads.has(lease)) reads.set(lease, operations.read({ key: anchorKey(lease) }));
  return reads;
}

export function sawLeases(
  runtime: Pick<Runtime, 'sawLease'>,
  reads: LeaseReads,
  { results, revision }: Pick<TransactionResult, 'results' | 'revision'>,
): void {
  for (const [lease, read] of reads) runtime.sawLease(lease, read.in(results).pairs[0]?.version, revision);
}

/** Leases of holds of which this process knows nothing. */
export function unknownLeases(
  { anchors }: Pick<Runtime, 'anchors'>,
  states: readonly Coordinated[],
): readonly string[] {
  return states.flatMap(leasesOf).filter((lease) => !anchors.isKnown(lease));
}

/** Looks up the leases of holds of which nothing is known: a hold may only refuse a request if its lease is alive. */
export function lookUpLeases(
  runtime: Pick<Runtime, 'anchors' | 'commit' | 'sawLease'>,
  states: readonly Coordinated[],
  done: () => void,
  failed: (error: unknown) => void,
): void {
  // Each of them once: if more have ended than a process remembers, the first are unknown again after the last was looked up.
  const unknown = [...new Set(unknownLeases(runtime, states))];
  const next = (): void => {
    if (unknown.length === 0) return done();
    const operations = new Operations();
    const anchors = readLeases(operations, unknown.splice(0, MOST_LEASES));
    const read = (result: TransactionResult): void => {
      sawLeases(runtime, anchors, result);
      next();
    };
    runtime.commit(operations.always(), read, failed);
  };
  next();
}

/**
 * Undefined if the queue is longer than what was read and has several priorities: a ticket of a higher priority may lie
 * beyond what was read, so the whole queue has to be read.
 */
export function snapshotFrom<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  reads: SnapshotReads,
  results: readonly OperationResult[],
  revision: Revision,
): Snapshot<State> | undefined {
  const queue = queueFrom(reads.queue, results);
  if (queue === undefined) return undefined;
  const pair = reads.record.in(results).pairs[0];
  const head = reads.head?.in(results).pairs[0];
  const state = pair === undefined ? machine.unused : { ...machine.unused, record: recordOf(machine, pair) };
  return {
    state: queue.waiting.length === 0 ? state : { ...state, waiting: queue.waiting },
    mod: pair?.modRevision ?? 0,
    by: pair === undefined ? undefined : writerOf(pair),
    marks: pair === undefined ? NONE : marksOf(pair),
    // The record names the end of its chain, also to a reader that does not know yet whether the witness is on.
    chain: head === undefined && !namesEntry(pair) ? noChain(pair) : chainEnd(pair, head),
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
  readonly arrivals: Snapshot<Coordinated>['arrivals'];
}

/** Undefined as for `snapshotFrom`. */
export function queueFrom(reads: QueueReads, results: readonly OperationResult[]): Queue | undefined {
  const { pairs: tickets, more } = reads.tickets.in(results);
  const waiting = tickets.map((pair) => ticketIn<Coordinated['waiting'][number]>(pair).request);
  if (more && !allOfOneClass(waiting, reads.first.in(results).pairs[0])) return undefined;
  return { waiting, complete: !more, arrivals: arrivalsOf(waiting, (place) => tickets[place]?.createRevision ?? 0) };
}

function arrivalsOf(
  waiting: Coordinated['waiting'],
  arrivalAt: (place: number) => Revision,
): Map<string, Revision> | undefined {
  return waiting.length === 0 ? undefined : new Map(waiting.map(({ id }, place) => [id, arrivalAt(place)]));
}

export function recordOf<State extends Coordinated>(
  machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>,
  pair: KeyValue,
): State['record'] {
  if (pair.value.passed === machine) return decode<RecordDocument<State['record']>>(pair).record;
  const { record } = checked<RecordDocument<State['record']>>(pair, documentProblem);
  if (isKnown(record.v, machine.version)) {
    const problem = recordProblem(record as unknown as Fields, machine.unused.record.kind);
    if (problem !== undefined) throw corrupt(pair.key, problem);
    refuseFault(pair.key.slice(RECORDS.length), record);
    pair.value.passed = machine;
    return record;
  }
  throw new Failure(
    'corrupt',
    `${shown(pair.key)} has version ${shown(record.v)}, and this signalbox reads versions up to ${machine.version}: update signalbox`,
  );
}

function isKnown(version: unknown, newest: number): boolean {
  return isCount(version) && Number(version) >= 1 && Number(version) <= newest;
}

function documentProblem({ record }: Fields): string | undefined {
  return isRecord(record) ? undefined : `its record is ${shown(record)}`;
}

/** Undefined also for a record that cannot be read: the reader that decides on it throws `corrupt`. */
export function writerOf(pair: KeyValue): string | undefined {
  try {
    const document = decode<unknown>(pair);
    const by = isRecord(document) ? document['by'] : undefined;
    return typeof by === 'string' ? by : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a record names the last entry of its chain. Without a witness, none does. */
export function namesEntry(pair: KeyValue | undefined): boolean {
  return pair !== undefined && decode<RecordDocument<unknown>>(pair).head !== undefined;
}

function noChain(pair: KeyValue | undefined): ChainEnd {
  return pair === undefined ? NO_CHAIN : CHAIN_TO_BEGIN;
}

/** Every write keeps the marks that it found, so that a mark is still there after other processes have written. */
export function marksAfter(before: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? before : [...before, ...more].slice(-MOST_MARKS);
}

export function marksOf(pair: KeyValue): readonly string[] {
  const { marks } = decode<{ readonly marks?: unknown }>(pair);
  return Array.isArray(marks) ? marks.filter((mark) => typeof mark === 'string') : NONE;
}

function allOfOneClass(waiting: Coordinated['waiting'], first: KeyValue | undefined): boolean {
  const highest = first?.key.split('/').at(-2);
  return waiting.every((request) => ticketClass(request) === highest);
}
