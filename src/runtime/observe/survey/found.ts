/** Groups the records and tickets of a survey by resource. */
import type {
  Lock,
  LockRecord,
  LockRequest,
  Semaphore,
  SemaphoreRecord,
  SemaphoreRequest,
} from '../../../core/index.ts';
import type { KeyValue } from '../../../store/index.ts';
import { corrupt, resourceOfRecord, resourceOfTicket, type TicketDocument, ticketIn } from '../../layout.ts';
import { lockMachine, semaphoreMachine } from '../../../core/machines.ts';
import { type Malformed, readEach } from '../../stored.ts';
import { recordOf } from '../../write/snapshot.ts';

export type AnyRequest = LockRequest & SemaphoreRequest;

export interface Found {
  /** `lock/main-branch`. */
  readonly resource: string;
  readonly name: string;
  readonly record: LockRecord | SemaphoreRecord;
  /** In order of arrival. */
  readonly tickets: readonly TicketDocument<AnyRequest>[];
}

/**
 * Sorted by name. `wanted`: always included; as an unused resource if it does not exist. A resource whose record is malformed
 * is left out: without its record, its state is unknown.
 */
export function foundIn(
  records: readonly KeyValue[],
  tickets: readonly KeyValue[],
  wanted: string | undefined,
  malformed: (found: Malformed) => void,
): readonly Found[] {
  const waiting = new Map<string, TicketDocument<AnyRequest>[]>();
  const read = (pair: KeyValue) => [resourceOfTicket(pair.key), ticketIn<AnyRequest>(pair)] as const;
  for (const [resource, ticket] of readEach(tickets, read, malformed)) {
    const queue = waiting.get(resource) ?? [];
    queue.push(ticket);
    waiting.set(resource, queue);
  }
  const unreadable = new Set<string>();
  const stored = new Map(
    readEach(
      records,
      (pair) => {
        const resource = resourceOfRecord(pair.key);
        try {
          return [resource, readRecord(resource, pair)] as const;
        } catch (error) {
          unreadable.add(resource);
          throw error;
        }
      },
      malformed,
    ),
  );
  const all = new Set([...stored.keys(), ...waiting.keys(), ...(wanted === undefined ? [] : [wanted])]);
  const readable = [...all].filter((resource) => !unreadable.has(resource));
  return readable.sort(byCodeUnits).flatMap((resource) => {
    const record = stored.has(resource) ? stored.get(resource) : readRecord(resource, undefined);
    const name = resource.slice(resource.indexOf('/') + 1);
    return record === undefined ? [] : [{ resource, name, record, tickets: waiting.get(resource) ?? [] }];
  });
}

/** The same order on every machine, whatever its language. */
export function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Undefined for a kind of resource that this version does not know. */
function readRecord(resource: string, pair: KeyValue | undefined): LockRecord | SemaphoreRecord | undefined {
  if (resource.startsWith('lock/')) {
    return pair === undefined ? lockMachine.unused.record : recordOf<Lock>(lockMachine, pair);
  }
  if (!resource.startsWith('semaphore/')) {
    if (pair !== undefined) throw corrupt(pair.key, 'it is neither a lock nor a semaphore');
    return undefined;
  }
  return pair === undefined ? semaphoreMachine.unused.record : recordOf<Semaphore>(semaphoreMachine, pair);
}
