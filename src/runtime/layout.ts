/**
 * The keys in the store, and what they hold. All engines have the same layout.
 *
 *     a/<lease>                             anchor: is there for as long as the lease is. `a/P` is the session of
 *                                           process P, and its version is P's epoch; `a/P.7` a lease of its own.
 *     m/P                                   mailbox of process P, on P's lease: each put is one letter
 *     r/<kind>/<name>                       record of a resource, with the events of the write that made it
 *     r.horizon                             written before maintenance deletes records: see `commit.ts`
 *     q/<kind>/<name>/<class>/<request>     ticket: one waiting request, on its own lease
 *     s/<kind>/<id>                         state of something that is followed, in the shape of a record: a pipeline; or
 *                                           a member, on the lease of the session that joined
 *     t/retention, t/mark/<revision>        how long finished tasks are kept: see `tasks/retention.ts`
 *     n/denied                              how often requests were denied: see `observe/denials.ts`
 *     p/<id>                                a probe of whether the store works; deleted at once
 *     c/<kind>/<name>/<note>                note of a child process that works under a hold of the resource; on no
 *                                           lease, since the child may outlive its parent
 *     witness.setting                       whether the witness of this store is on: see `write/witness.ts`
 *     witness/<kind>/<name>/<seq>           entry of the witness: one write of the resource
 *     witness.head/<kind>/<name>            the last entry of a resource without a document; otherwise the document names it
 *     witness.trimmed/<kind>/<name>         the last entry that was trimmed
 *     witness.checkpoint/<seq>              checkpoint: the heads of all chains
 *     witness.sealed                        number, hash and time of the newest checkpoint
 *     witness.trims                         put by every write that trims or drops a part of the record
 *
 * When a process dies, its anchor, its mailbox and its tickets go in one revision. Records name the leases of their holds, so
 * a hold is stale if a key is gone: no clock decides it.
 */
import type { ResourceKind } from '../core/machines.ts';
import {
  type Answer,
  type Wish,
  type Event,
  faultOf,
  grantFault,
  type Hold,
  type Json,
  type LossReason,
  nameProblem,
  type Request,
  type Token,
  isRecord,
  ticketCheck,
} from '../core/index.ts';
import { NO_ENTRY } from '../core/witness/index.ts';
import { Failure, shown } from '../failure.ts';
import { identityFrom, type ProcessIdentity } from '../host/index.ts';
import { afterPrefix, type KeyValue, type LeaseId, prefixed, type Revision, Value } from '../store/index.ts';

export const ANCHORS = 'a/';
export const MAINTAINER = '!maintainer';
/** The process that signs, anchors and archives the record of the witness, if there is one. */
export const RECORD_KEEPER = '!maintainer.record';
export const RECORDS = 'r/';
/** Sorts right before the records, so that one watch can follow both, and is outside of their prefix. */
export const HORIZON = 'r.horizon';
export const TICKETS = 'q/';
export const STATES = 's/';
export const PROBES = 'p/';
export const CHILDREN = 'c/';

export const WITNESS_SETTING = 'witness.setting';
export const ENTRIES = 'witness/';
export const HEADS = 'witness.head/';
export const TRIMMED = 'witness.trimmed/';
export const CHECKPOINTS = 'witness.checkpoint/';
export const SEALED = 'witness.sealed';
export const TRIMS = 'witness.trims';

/** The digits of an entry's number in its key: enough for a thousand entries per second over thirty years. */
const SEQ_DIGITS = 12;

/** `lock/a%2Fb` of `lock/a/b`: how a resource is written in the keys of the witness. */
export function chainPath(resource: string): string {
  const slash = resource.indexOf('/');
  return `${resource.slice(0, slash)}/${encodeURIComponent(resource.slice(slash + 1))}`;
}

export function entryKey(path: string, seq: number): string {
  return `${ENTRIES}${path}/${String(seq).padStart(SEQ_DIGITS, '0')}`;
}

export const headKey = (path: string): string => HEADS + path;

/** Throws `corrupt` unless the rest of the key is written as `chainPath` writes it. */
export function resourceOfChain(key: string, prefix: string): string {
  return readable(key, key.slice(prefix.length));
}

export const anchorKey = (lease: string): string => ANCHORS + lease;
export const mailboxKey = (process: string): string => `m/${process}`;

/** The process that made a request or a lease: its id begins with it. */
export function processOf(id: string): string {
  const dot = id.indexOf('.');
  return dot < 0 ? id : id.slice(0, dot);
}

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

export type StateKind = 'pipeline' | 'member' | 'topology' | 'witness';

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

/** Throws `corrupt` unless the name is escaped as signalbox escapes it: one name must not have two keys. */
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
 * Within a queue, keys are ordered by class: upgrades first, then from the highest priority to the lowest. Every ticket that
 * goes before a class has a key before it.
 */
export function ticketClass(request: { readonly priority: number; readonly upgrades?: string }): string {
  if (request.upgrades !== undefined) return '!';
  return request.priority === 0 ? '100' : String(100 - request.priority).padStart(3, '0');
}

export function ticketKey(keys: ResourceKeys, request: Request & { readonly upgrades?: string }): string {
  return `${keys.queue}${ticketClass(request)}/${request.id}`;
}

/** The document under a record's key. */
export interface RecordDocument<R> {
  readonly record: R;
  readonly events: readonly Event[];
  /** The process that wrote it. */
  readonly by?: string;
  /** The marks of the last marked commands: see `Snapshot.marks` in `write/snapshot.ts`. */
  readonly marks?: readonly string[];
  /** The last entry of the witness: the one of the write that made it. */
  readonly head?: Head;
}

/** The last entry of a chain of the witness. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** The end of a chain, as far as this process knows. */
export interface ChainEnd extends Head {
  /** The mod revision of the head key, which the write has to compare; undefined if it compares a document instead. */
  readonly keyMod: Revision | undefined;
  /**
   * The revision at which it was read, in a write of many resources, which has no room for so many comparisons: nobody deletes
   * a record, and so writes a head key, without writing the horizon first. See `nothingForgotten` in `write/commit.ts`.
   */
  readonly asOf?: Revision;
}

/** A first guess: no entry, as of a resource that was never used. The write compares it, so a wrong guess costs a race. */
export const NO_CHAIN: ChainEnd = { seq: 0, hash: NO_ENTRY, keyMod: 0 };

/** The record is there, and names no entry yet. The write compares the record. */
export const CHAIN_TO_BEGIN: ChainEnd = { ...NO_CHAIN, keyMod: undefined };

/** The document under a ticket's key. Its appearance is the event that a request waits. */
export interface TicketDocument<Q> {
  readonly request: Q;
  readonly at: number;
}

/** A letter: the effects of one write on the requests and holds of another process. */
export interface Letter {
  readonly answers: readonly (Answer<unknown> & { readonly resource: string })[];
  readonly losses: readonly LossNotice[];
  readonly reports?: readonly Report[];
  readonly delegations?: readonly DelegationRequest[];
  readonly done?: readonly DelegationReply[];
}

/** Commands that one process delegates to another: see `write/delegation.ts`. */
export interface DelegationRequest {
  readonly id: string;
  readonly resource: string;
  /** The sender: its session, the version of its anchor, and the store's id of its lease. */
  readonly from: string;
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly commands: readonly { readonly kind: string }[];
  /** Was forwarded once, and must not be again: two processes that delegate to each other would forward it for ever. */
  readonly passedOn?: true;
}

export interface DelegationReply {
  readonly id: string;
  /** Which of its commands. */
  readonly place: number;
  readonly outcome: unknown;
}

/**
 * The state of a resource after a write, by the process that wrote it: a process that is granted the resource can hand it on
 * without a read. It is only a guess, like every cached state: the commit compares what is decided on it.
 */
export interface Report {
  readonly resource: string;
  readonly record: unknown;
  readonly by: string;
  /** As in the record's document. */
  readonly marks?: readonly string[];
  readonly head?: Head;
  /** The front of the queue, in order of arrival, with the create revision of each ticket. */
  readonly waiting: readonly (readonly [request: ShortRequest, arrival: Revision])[];
  /** The queue has more tickets behind these. */
  readonly more?: true;
  /** The revision at which the queue was read; tickets that arrived later are missing. */
  readonly queueRevision: Revision;
}

/** A request without fields that follow from its id or have their default. */
export type ShortRequest = Partial<Request> & Pick<Request, 'id'>;

export function shortened({ holder, lease, priority, ...rest }: Request): ShortRequest {
  const short: { -readonly [Field in keyof ShortRequest]: ShortRequest[Field] } = rest;
  if (holder !== rest.id) short.holder = holder;
  if (lease !== processOf(rest.id)) short.lease = lease;
  if (priority !== 0) short.priority = priority;
  return short;
}

export function lengthened(request: ShortRequest): Request {
  return { holder: request.id, lease: processOf(request.id), priority: 0, ...request };
}

export interface LossNotice {
  readonly id: string;
  /** Tells the grants of one request apart: a request that is sent again may be granted again. */
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

export type Fields = Readonly<Record<string, unknown>>;

/**
 * Decodes and checks a value; `problem` says what is wrong with it. A value that has passed a check is not checked again, so
 * `problem` must depend on nothing but the document.
 */
export function checked<T>(pair: KeyValue, problem: (document: Fields) => string | undefined): T {
  const { value } = pair;
  if (value.passed === problem) return value.json as T;
  const document = decode<unknown>(pair);
  const found = isRecord(document) ? problem(document) : `it holds ${shown(document)}`;
  if (found !== undefined) throw corrupt(pair.key, found);
  value.passed = problem;
  return document as T;
}

/** The document of a ticket under `q/lock/` or `q/semaphore/`. */
export function ticketIn<Q>(pair: KeyValue): TicketDocument<Q> {
  return checked<TicketDocument<Q>>(pair, pair.key.startsWith(LOCK_TICKETS) ? lockTicketProblem : slotsTicketProblem);
}

const LOCK_TICKETS = `${TICKETS}lock/`;
const lockTicketProblem = ticketCheck('mode');
const slotsTicketProblem = ticketCheck('weight');

/** The process with which a lease ends, as its anchor names it. */
export function tieIn(about: Json): ProcessIdentity | undefined {
  return identityFrom((about as { readonly endsWith?: Json } | null)?.endsWith);
}

/** The failure for a key with a value that signalbox cannot have written. */
export function corrupt(key: string, why: string, cause?: unknown): Failure {
  const message = `${shown(key)} cannot be read: ${why}; another program may have written it`;
  return new Failure('corrupt', message, { cause });
}

/** Throws `inconsistent` if a record that was read breaks a promise. */
export function refuseFault(resource: string, record: unknown): void {
  const fault = recordFault(resource, record);
  if (fault !== undefined) throw fault;
}

/** `reported`: the record comes from a letter of the process that wrote it, and was not read. */
export function recordFault(resource: string, record: unknown, reported = false): Failure | undefined {
  const fault = faultOf(record as Parameters<typeof faultOf>[0]);
  if (fault === undefined) return undefined;
  return inconsistent(resource, reported ? 'as another process told it' : 'as it is stored', fault);
}

/** The fault of a hold that is about to be handed out for a request; undefined if it has none. */
export function wrongGrant(resource: string, asked: Wish, hold: Hold): Failure | undefined {
  const fault = grantFault(asked, hold);
  return fault === undefined ? undefined : inconsistent(resource, 'as it was about to be handed out', fault);
}

/** The failure for a record that breaks a promise. */
export function inconsistent(resource: string, when: string, fault: string): Failure {
  const message = `${shown(resource)}, ${when}: ${fault}; nothing was changed. Either signalbox has a bug, which please report, or another program has written to its store`;
  return new Failure('inconsistent', message);
}
