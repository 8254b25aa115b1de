/** Records and tickets of a survey, put together by resource. */
import type { Lock, LockRecord, LockRequest, Semaphore, SemaphoreRecord, SemaphoreRequest } from '../../core/index.ts';
import type { KeyValue } from '../../store/index.ts';
import { decode, resourceOfRecord, resourceOfTicket, type TicketDocument } from '../layout.ts';
import { lockMachine, semaphoreMachine } from '../machines.ts';
import { recordOf } from '../view.ts';

export type AnyRequest = LockRequest & SemaphoreRequest;

export interface Found {
  /** `lock/main-branch`. */
  readonly resource: string;
  readonly name: string;
  readonly record: LockRecord | SemaphoreRecord;
  /** In order of arrival. */
  readonly tickets: readonly TicketDocument<AnyRequest>[];
}

/** By name. `wanted`: this one in any case, as one that nobody has used if it is not there. */
export function foundIn(
  records: readonly KeyValue[],
  tickets: readonly KeyValue[],
  wanted: string | undefined,
): readonly Found[] {
  const waiting = new Map<string, TicketDocument<AnyRequest>[]>();
  for (const pair of tickets) {
    const resource = resourceOfTicket(pair.key);
    const queue = waiting.get(resource) ?? [];
    queue.push(decode<TicketDocument<AnyRequest>>(pair));
    waiting.set(resource, queue);
  }
  const stored = new Map(records.map((pair) => [resourceOfRecord(pair.key), pair]));
  const all = new Set([...stored.keys(), ...waiting.keys(), ...(wanted === undefined ? [] : [wanted])]);
  return [...all].sort(byCodeUnits).flatMap((resource) => {
    const record = readRecord(resource, stored.get(resource));
    const name = resource.slice(resource.indexOf('/') + 1);
    return record === undefined ? [] : [{ resource, name, record, tickets: waiting.get(resource) ?? [] }];
  });
}

/** The same order everywhere, whatever the language of the machine. */
export function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Undefined for a kind that this version does not know. */
function readRecord(resource: string, pair: KeyValue | undefined): LockRecord | SemaphoreRecord | undefined {
  if (resource.startsWith('lock/')) {
    return pair === undefined ? lockMachine.unused.record : recordOf<Lock>(lockMachine, pair);
  }
  if (!resource.startsWith('semaphore/')) return undefined;
  return pair === undefined ? semaphoreMachine.unused.record : recordOf<Semaphore>(semaphoreMachine, pair);
}
