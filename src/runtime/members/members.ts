/**
 * Members: which processes are alive. The key of a member is on the session lease of the process that joined, so it goes
 * with that process, and needs no heartbeats of its own.
 */
import { type Event, type Json, nameProblem, requestProblem, type ToldEvent } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { type Compare, type KeyValue, prefixed, readRange, type ReadResult, type Revision } from '../../store/index.ts';
import { anchorKey, encode, type RecordDocument, resourceOfState, stateKey, STATES } from '../layout.ts';
import { frozenCopy, ownCopy } from '../own-copy.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { checked, isObject, isTime, type ListOptions, readEach } from '../stored.ts';
import { type NextStep, persistently, send, writeOnce } from '../write/write-once.ts';

/** A process that has joined. */
export interface Member {
  /** Its id. */
  readonly id: string;
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  /** The time, by the clock of the process that joined. */
  readonly joinedAt: number;
}

/** What `join` answers. */
export type JoinOutcome =
  | { readonly kind: 'joined'; readonly membership: Membership }
  /** A member of this id is alive. */
  | { readonly kind: 'taken'; readonly member: Member };

interface MemberRecord extends Member {
  readonly v: 1;
  readonly session: string;
  /** The id of the attempt to join, to recognise one whose answer got lost. */
  readonly attempt: string;
}

/** What one pass of a join decides on. */
interface JoinView {
  readonly session: Session;
  readonly pair: KeyValue | undefined;
}

const MEMBERS = `${STATES}member/`;

/** The processes that have joined. */
export class Members {
  readonly #runtime: Runtime;

  /** @internal */
  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Joins for as long as this process is alive, or until it leaves. Of any number that want an id at once, one gets it. */
  async join(id: string, metadata?: Json): Promise<JoinOutcome> {
    this.#runtime.refuseIfClosed();
    refuseUnlessNamed(id);
    const problem = requestProblem({ metadata });
    if (problem !== undefined) throw new Failure('invalid', `member/${id}: ${problem}`);
    const runtime = this.#runtime;
    const about = { v: 1 as const, id, metadata: frozenCopy(metadata ?? null), attempt: runtime.options.newId() };
    return writeOnce(runtime, {
      // The first pass reads nothing: the write compares that no member has this id.
      read: async (isFirst) => {
        const session = await runtime.ready();
        if (isFirst) return { session, pair: undefined };
        const { pairs } = await this.#read({ key: stateKey('member', id) });
        return { session, pair: pairs[0] };
      },
      decide: (seen) => this.#decideJoin(about, seen),
      found: ({ session, pair }) => {
        const there = pair === undefined ? undefined : memberIn(pair);
        if (pair === undefined || there?.attempt !== about.attempt || there.session !== session.id) return undefined;
        return this.#joined(session, there, pair.createRevision);
      },
      fence: (done, failed) => runtime.fence(done, failed),
      until: runtime.giveUpAt(),
    });
  }

  #decideJoin(
    about: Pick<MemberRecord, 'v' | 'id' | 'metadata' | 'attempt'>,
    { session, pair }: JoinView,
  ): NextStep<JoinView, JoinOutcome> {
    if (pair !== undefined) return { kind: 'answer', answer: { kind: 'taken', member: shownMember(memberIn(pair)) } };
    const runtime = this.#runtime;
    const key = stateKey('member', about.id);
    const anchor = anchorKey(session.id);
    const record: MemberRecord = { ...about, joinedAt: runtime.clock.now(), session: session.id };
    const events: Event[] = [{ type: 'member:joined', at: record.joinedAt, holder: record.id }];
    const document: RecordDocument<MemberRecord> = { record, events, by: session.id };
    return {
      kind: 'write',
      transaction: {
        compare: [
          { key, target: 'version', is: '=', than: 0 },
          { key: anchor, target: 'version', is: '=', than: session.epoch },
        ],
        success: [{ do: 'put', key, value: encode(document), lease: session.leaseId }],
        failure: [
          { do: 'read', key },
          { do: 'read', key: anchor },
        ],
      },
      landed: ({ revision }) => this.#joined(session, record, revision),
      overtaken: ({ results, revision }) => {
        const [found, own] = results as readonly [ReadResult, ReadResult];
        // Our session has ended, or a fence has raised its epoch.
        runtime.sawLease(session.id, own.pairs[0]?.version, revision);
        return found.pairs.length === 0 ? undefined : { session, pair: found.pairs[0] };
      },
    };
  }

  #joined(session: Session, member: MemberRecord, since: Revision): JoinOutcome {
    return { kind: 'joined', membership: new Membership(this.#runtime, session, member, since) };
  }

  /** All members, by id. `onMalformed` gets the keys that are passed over because they cannot be read. */
  async list({ onMalformed }: ListOptions = {}): Promise<readonly Member[]> {
    const { pairs } = await this.#read(prefixed(MEMBERS));
    const members = readEach(pairs, (pair) => shownMember(memberIn(pair)), onMalformed);
    return [...members].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** Whether there is such a member. */
  async isAlive(id: string): Promise<boolean> {
    refuseUnlessNamed(id);
    return (await this.#read({ key: stateKey('member', id), countOnly: true })).count > 0;
  }

  async #read(range: { readonly key: string; readonly end?: string; readonly countOnly?: true }): Promise<ReadResult> {
    this.#runtime.refuseIfClosed();
    return readRange(this.#runtime.store, range, this.#runtime.stopped);
  }
}

/** The membership of this process. */
export class Membership implements AsyncDisposable {
  /** Its id. */
  readonly id: string;
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  readonly #runtime: Runtime;
  readonly #session: Session;
  readonly #since: Revision;
  #hasLeft = false;

  /** @internal */
  constructor(runtime: Runtime, session: Session, member: Member, since: Revision) {
    this.#runtime = runtime;
    this.#session = session;
    this.#since = since;
    ({ id: this.id, metadata: this.metadata } = shownMember(member));
  }

  /** Whether this process is still a member: not after it left, nor once its session was not renewed in time. */
  get isValid(): boolean {
    return !this.#hasLeft && this.#session.isValid();
  }

  /** Leaving twice, or after the session ended, changes nothing, nor does it touch a later member with this id. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    const runtime = this.#runtime;
    const key = stateKey('member', this.id);
    const compare: Compare[] = [{ key, target: 'create', is: '=', than: this.#since }];
    // Repeating the write is harmless: it compares this very membership.
    await persistently(runtime, runtime.giveUpAt(), () =>
      send(runtime, { compare, success: [{ do: 'delete', key }], failure: [] }),
    );
  }

  /** Leaves at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}

/** The deletion of the key is the event: a process that dies writes none. */
export function memberLeft(key: string, at: number): ToldEvent | undefined {
  if (!key.startsWith(MEMBERS)) return undefined;
  const resource = resourceOfState(key);
  return { type: 'member:left', at, holder: resource.slice(resource.indexOf('/') + 1), resource };
}

function memberIn(pair: KeyValue): MemberRecord {
  const id = resourceOfState(pair.key).slice('member/'.length);
  return checked<RecordDocument<MemberRecord>>(pair, ({ record }) => {
    if (!isObject(record)) return `its record is ${shown(record)}`;
    if (record['id'] !== id) return `its id is ${shown(record['id'])}`;
    return isTime(record['joinedAt']) ? undefined : `its time is ${shown(record['joinedAt'])}`;
  }).record;
}

function shownMember({ id, metadata, joinedAt }: Member): Member {
  return { id, metadata: ownCopy(metadata ?? undefined), joinedAt };
}

function refuseUnlessNamed(id: string): void {
  const problem = nameProblem(id, 'member');
  if (problem !== undefined) throw new Failure('invalid', problem);
}
