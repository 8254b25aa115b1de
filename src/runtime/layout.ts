/**
 * Which keys there are, and what they hold. One layout for all engines.
 *
 *     a/<lease>                             anchor: is there for as long as the lease is. `a/P` is the session of
 *                                           process P, and its version is P's epoch; `a/P.7` a lease of its own.
 *     m/P                                   mailbox of process P, on P's lease: each put is one letter
 *     r/<kind>/<name>                       record of a resource, with the events of the write that made it
 *     r.horizon                             written before maintenance deletes records: see `commit.ts`
 *     q/<kind>/<name>/<class>/<request>     ticket: one waiting request, on its own lease
 *     s/<kind>/<id>                         state of something that is followed, in the shape of a record: a pipeline; or
 *                                           a member, on the lease of the session that joined
 *     p/<id>                                a probe: somebody tries whether the store works; gone in a moment
 *     c/<kind>/<name>/<note>                note of a child process that works under a hold of the resource; on no
 *                                           lease, since the child may outlive the one who started it
 *
 * A process that dies takes its anchor, its mailbox and its tickets along, in one revision. Records name the
 * leases that keep their holds, so whether a hold is stale is whether a key is there: no clock is asked.
 */
import {
  type Answer,
  type Wish,
  type Event,
  faultOf,
  grantFault,
  type Hold,
  type LossReason,
  nameProblem,
  type Request,
  type Token,
} from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { afterPrefix, type KeyValue, type LeaseId, prefixed, type Revision, Value } from '../store/index.ts';

export const ANCHORS = 'a/';
export const MAINTAINER = '!maintainer';
export const RECORDS = 'r/';
/** Right before the records, so that one watch can follow both, and outside of their prefix. */
export const HORIZON = 'r.horizon';
export const TICKETS = 'q/';
export const STATES = 's/';
export const PROBES = 'p/';
export const CHILDREN = 'c/';

export const anchorKey = (lease: string): string => ANCHORS + lease;
export const mailboxKey = (process: string): string => `m/${process}`;

/** Request and lease ids begin with the process that made them. */
export function processOf(id: string): string {
  const dot = id.indexOf('.');
  return dot < 0 ? id : id.slice(0, dot);
}

export type ResourceKind = 'lock' | 'semaphore';

/** The keys of one resource, made once. */
export interface ResourceKeys {
  /** `lock/main`, as people read it. */
  readonly resource: string;
  readonly record: string;
  readonly queue: string;
  readonly queueEnd: string;
  readonly children: string;
}

export function resourceKeys(kind: ResourceKind, name: string): ResourceKeys {
  // Escaped, so that the queue of `a` is not a part of the queue of `a/b`.
  const path = `${kind}/${encodeURIComponent(name)}`;
  const queue = `${TICKETS}${path}/`;
  return {
    resource: `${kind}/${name}`,
    record: RECORDS + path,
    queue,
    queueEnd: afterPrefix(queue),
    children: `${CHILDREN}${path}/`,
  };
}

/** `lock/main` of `r/lock/main`. */
export function resourceOfRecord(key: string): string {
  return readable(key, key.slice(RECORDS.length));
}

/** The queue of the resource whose record has this key. */
export function queueOfRecord(key: string): { readonly key: string; readonly end: string } {
  return prefixed(`${TICKETS}${key.slice(RECORDS.length)}/`);
}

export type StateKind = 'pipeline' | 'member';

export function stateKey(kind: StateKind, id: string): string {
  return `${STATES}${kind}/${encodeURIComponent(id)}`;
}

/** `pipeline/release-7` of `s/pipeline/release-7`. */
export function resourceOfState(key: string): string {
  return readable(key, key.slice(STATES.length));
}

/** `lock/main` of `q/lock/main/100/p.1`. */
export function resourceOfTicket(key: string): string {
  const [, kind, name] = key.split('/');
  return readable(key, `${kind}/${name}`);
}

/** `r/lock/main` of `q/lock/main/100/p.1`. */
export function recordOfTicket(key: string): string {
  const [, kind, name] = key.split('/');
  return `${RECORDS}${kind}/${name}`;
}

function readable(key: string, path: string): string {
  const slash = path.indexOf('/');
  return `${path.slice(0, slash)}/${nameIn(key, path.slice(slash + 1))}`;
}

/** Throws `corrupt` unless it is written as signalbox writes it: one name must not have two keys. */
export function nameIn(key: string, escaped: string): string {
  const name = unescaped(escaped);
  if (name !== undefined && nameProblem(name) === undefined && encodeURIComponent(name) === escaped) return name;
  throw corrupt(key, 'its name is not written as signalbox writes names');
}

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Within a queue, keys are ordered by class: those who upgrade, then from the highest priority to the lowest.
 * Everyone who goes before a ticket of one class has a key before that class.
 */
export function ticketClass(request: { readonly priority: number; readonly upgrades?: string }): string {
  if (request.upgrades !== undefined) return '!';
  return request.priority === 0 ? '100' : String(100 - request.priority).padStart(3, '0');
}

export function ticketKey(keys: ResourceKeys, request: Request & { readonly upgrades?: string }): string {
  return `${keys.queue}${ticketClass(request)}/${request.id}`;
}

/** What is stored under a record's key. */
export interface RecordDocument<R> {
  readonly record: R;
  readonly events: readonly Event[];
  /** The process that wrote it. */
  readonly by?: string;
  /** The marks of the last commands of those that leave nothing else to know them by. */
  readonly marks?: readonly string[];
}

/** A ticket that appears is itself the news that somebody waits. */
export interface TicketDocument<Q> {
  readonly request: Q;
  readonly at: number;
}

/** A letter: what one write means for the requests and holds of another process. */
export interface Letter {
  readonly answers: readonly (Answer<unknown> & { readonly resource: string })[];
  readonly losses: readonly LossNotice[];
  readonly reports?: readonly Report[];
  readonly delegations?: readonly DelegationRequest[];
  readonly done?: readonly DelegationReply[];
}

/** Commands that one process asks another to carry out: see `delegations.ts`. */
export interface DelegationRequest {
  readonly id: string;
  readonly resource: string;
  /** Whose they are: its session, the version of its anchor, and the store's id of its lease. */
  readonly from: string;
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly commands: readonly { readonly kind: string }[];
  /** Once is enough: two who leave everything to each other must not pass it to and fro. */
  readonly passedOn?: true;
}

export interface DelegationReply {
  readonly id: string;
  /** Which of its commands. */
  readonly place: number;
  readonly outcome: unknown;
}

/**
 * What the writer of a letter knows of a resource, as of its write: whoever is granted it need not look before it can
 * hand it on. No more than a guess, like everything a writer knows: what is decided on it is checked by the commit.
 */
export interface Report {
  readonly resource: string;
  readonly record: unknown;
  readonly by: string;
  /** As in the record's document. */
  readonly marks?: readonly string[];
  /** The front of the queue, in order of arrival, with the create revision of each ticket. */
  readonly waiting: readonly (readonly [request: ShortRequest, arrival: Revision])[];
  /** Others wait behind these. */
  readonly more?: true;
  /** When that was read: who arrived later is missing. */
  readonly queueRevision: Revision;
}

/** A request without what most of them have in common: what is left out follows from the id, or is the usual. */
export type ShortRequest = Partial<Request> & Pick<Request, 'id'>;

export function shortened({ holder, lease, priority, ...request }: Request): ShortRequest {
  return {
    ...request,
    ...(holder !== request.id && { holder }),
    ...(lease !== processOf(request.id) && { lease }),
    ...(priority !== 0 && { priority }),
  };
}

export function lengthened(request: ShortRequest): Request {
  return { holder: request.id, lease: processOf(request.id), priority: 0, ...request };
}

export interface LossNotice {
  readonly id: string;
  /** Which grant: a request that asks again may be granted again. */
  readonly token: Token;
  readonly why: LossReason;
  readonly by?: string;
  readonly reason?: string;
}

export function encode(document: unknown): Value {
  return Value.json(document);
}

export function decode<T>(pair: KeyValue): T {
  try {
    return pair.value.json as T;
  } catch (cause) {
    throw corrupt(pair.key, 'it does not hold JSON', cause);
  }
}

/** For a key that holds what signalbox cannot have written. */
export function corrupt(key: string, why: string, cause?: unknown): Failure {
  const told = `${shown(key)} cannot be read: ${why}; another program may have written it`;
  return new Failure('corrupt', told, { cause });
}

/** Throws `inconsistent` if a record that was read breaks a promise. */
export function refuseFault(resource: string, record: unknown): void {
  const fault = recordFault(resource, record);
  if (fault !== undefined) throw fault;
}

/** `heard`: the record was not read, but told by the process that wrote it. */
export function recordFault(resource: string, record: unknown, heard = false): Failure | undefined {
  const fault = faultOf(record as Parameters<typeof faultOf>[0]);
  if (fault === undefined) return undefined;
  return inconsistent(resource, heard ? 'as another process told it' : 'as it is stored', fault);
}

/** What is wrong with a hold that is about to be handed out for a request. */
export function wrongGrant(resource: string, asked: Wish, hold: Hold): Failure | undefined {
  const fault = grantFault(asked, hold);
  return fault === undefined ? undefined : inconsistent(resource, 'as it was about to be handed out', fault);
}

/** For a record that breaks a promise. */
export function inconsistent(resource: string, when: string, fault: string): Failure {
  const told = `${shown(resource)}, ${when}: ${fault}; nothing was changed. Either signalbox has a bug, which please report, or another program has written to its store`;
  return new Failure('inconsistent', told);
}
