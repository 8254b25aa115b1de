/**
 * Acquires several locks and slots together, or none. If all are free, one transaction takes them. Otherwise they are acquired
 * one after another in the order of their names, which is the same for all processes, and handed out only when all are there;
 * if one cannot be had, the others are released.
 */
import {
  acquireTogether,
  type Hold as Grant,
  type LockMode,
  type Moment,
  type NamedStep,
  nameProblem,
  type Part,
  type Request,
  requestProblem,
  type Step,
} from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { MOST_OPERATIONS, type Nested, type Operation, Operations, type Transaction } from '../../store/index.ts';
import type { WaitOptions } from './acquisition.ts';
import { optionsProblem } from '../options.ts';
import { sessionWithin } from './session-in-time.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf, BackgroundCommand } from '../write/pending-command.ts';
import { commitOf } from '../write/commit.ts';
import { Decision } from '../write/decision.ts';
import { handedOut } from './hand-out.ts';
import type { KeptHold, ReleaseOutcome } from './hold.ts';
import { encode, type Letter, resourceKeys, wrongGrant } from '../layout.ts';
import { type Coordinated, lockMachine, type Machine, semaphoreMachine } from '../write/machines.ts';
import { type HeldBy, type HoldLost, NotAcquired, type Refusal } from '../refusal.ts';
import type { Hold } from './public-hold.ts';
import { requestFields } from './resource.ts';
import type { RequestOptions } from './terms.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { readSnapshot, snapshotFrom, type Snapshot } from '../write/snapshot.ts';
import { type NextStep, type Intent, send, writeOnce } from '../write/write-once.ts';

/** One of the resources to acquire together. */
export type Want =
  | { readonly lock: string; readonly mode?: LockMode }
  | { readonly semaphore: string; readonly weight?: number; readonly capacity?: number };

/** How to ask for several resources; `maxHoldMs` and `strategy` are of single ones. */
export interface TogetherOptions extends Omit<RequestOptions, 'maxHoldMs' | 'strategy'>, WaitOptions {}

/** What `tryAcquireAll` answers: all of them, or why not, resource by resource. */
export type TogetherAttempt =
  | { readonly ok: true; readonly kind: 'acquired'; readonly holds: HoldSet }
  | {
      readonly ok: false;
      readonly kind: 'refused';
      readonly refusals: readonly { readonly resource: string; readonly refusal: Refusal }[];
    };

/** Makes the hold of a grant, and acquires a single resource: `Signalbox` knows both for each kind. */
export interface Parts {
  kept(want: Want, outcome: AnyOutcome, process: string): KeptHold;
  shown(kept: KeptHold): Hold;
  acquire(want: Want, options: RequestOptions & WaitOptions): Promise<Hold>;
}

/** After this many lost races in a row, waiting in order is the better way. */
const MOST_RACES = 16;
/** The most resources in one transaction, which has room for 128 comparisons: two for each, and some for stale holds. */
export const MOST_WANTS = 50;
/** How many resources one transaction reads, at four reads each. */
const READ_AT_ONCE = 32;

/** Several holds that were acquired together. */
export class HoldSet implements AsyncDisposable {
  /** Each of them, in the order of their names. */
  readonly holds: readonly Hold[];

  /** @internal */
  constructor(holds: readonly Hold[]) {
    this.holds = holds;
  }

  /** The names of all of them, in one line. */
  get resource(): string {
    return this.holds.map(({ resource }) => resource).join(', ');
  }

  /** Aborts as soon as one hold is lost. */
  get signal(): AbortSignal {
    return AbortSignal.any(this.holds.map((hold) => hold.signal));
  }

  /** Whether all of them are valid at this moment, by the clock. */
  get isValid(): boolean {
    return this.holds.every((hold) => hold.isValid);
  }

  /** The first loss, if a hold was lost. */
  get lost(): HoldLost | undefined {
    return this.holds.find((hold) => hold.lost !== undefined)?.lost;
  }

  /** Throws `HoldLost` if one of the holds has ended. */
  check(): void {
    for (const hold of this.holds) hold.check();
  }

  /** Releases all of them. Never throws because one was lost. */
  async release(): Promise<readonly ReleaseOutcome[]> {
    return Promise.all(this.holds.map((hold) => hold.release()));
  }

  /** Releases them at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

interface Piece {
  readonly want: Want;
  readonly resource: string;
  readonly machine: Machine<Coordinated, AnyCommand, AnyOutcome>;
  readonly name: string;
}

export async function tryTogether(
  runtime: Runtime,
  parts: Parts,
  wants: readonly Want[],
  options: TogetherOptions = {},
): Promise<TogetherAttempt> {
  const pieces = piecesOf(wants, options);
  const session = await runtime.ready();
  return attempt(runtime, session, parts, pieces, options, options.holder ?? runtime.nextId(session));
}

export async function acquireAllTogether(
  runtime: Runtime,
  parts: Parts,
  wants: readonly Want[],
  options: TogetherOptions = {},
): Promise<HoldSet> {
  const since = runtime.clock.monotonic();
  const pieces = piecesOf(wants, options);
  const all = pieces.map(({ resource }) => resource).join(', ');
  const { session } = await sessionWithin(runtime, all, options, false);
  // One holder for all of them, so that deadlock detection sees that it holds one resource and waits for another.
  const holder = options.holder ?? runtime.nextId(session);
  const attempted = await attempt(runtime, session, parts, pieces, options, holder);
  if (options.signal?.aborted === true) {
    if (attempted.kind === 'acquired') await attempted.holds.release();
    throw new NotAcquired(all, { kind: 'aborted', reason: options.signal.reason as unknown });
  }
  if (attempted.kind === 'acquired') return attempted.holds;
  const hopeless = attempted.refusals.find(({ refusal }) => refusal.kind !== 'busy' && refusal.kind !== 'full');
  const [first] = attempted.refusals;
  if (hopeless ?? (options.waitMs === 0 ? first : undefined)) {
    const { resource, refusal } = (hopeless ?? first) as { resource: string; refusal: Refusal };
    throw new NotAcquired(resource, refusal);
  }
  const holds: Hold[] = [];
  try {
    for (const { want } of pieces) {
      const { waitMs } = options;
      const left = waitMs === undefined ? undefined : waitMs - (runtime.clock.monotonic() - since);
      if (left !== undefined && left <= 0) throw timedOut(all, waitMs ?? 0, attempted.refusals);
      holds.push(await parts.acquire(want, { ...options, ...(left !== undefined && { waitMs: left }), holder }));
    }
    for (const hold of holds) hold.check();
    return new HoldSet(holds);
  } catch (error) {
    await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
    throw error;
  }
}

function piecesOf(wants: readonly Want[], options: TogetherOptions): readonly Piece[] {
  const problem = optionsProblem(options);
  if (problem !== undefined) throw new Failure('invalid', problem);
  if (!Array.isArray(wants)) throw new Failure('invalid', `what is wanted is ${shown(wants)}, not a list`);
  if (wants.length === 0) throw new Failure('invalid', 'nothing was asked for: name at least one lock or semaphore');
  if (wants.length > MOST_WANTS) {
    throw new Failure('invalid', `${wants.length} are wanted at once; expected at most ${MOST_WANTS}`);
  }
  const pieces = wants.map((want): Piece => {
    if (typeof want !== 'object' || want === null || 'lock' in want === 'semaphore' in want) {
      throw new Failure('invalid', `${shown(want)} is wanted; expected { lock: NAME } or { semaphore: NAME }`);
    }
    const isLock = 'lock' in want;
    const wrong = isLock
      ? (nameProblem(want.lock, 'lock') ?? requestProblem({ mode: want.mode }))
      : (nameProblem(want.semaphore, 'semaphore') ?? requestProblem({ capacity: want.capacity }));
    if (wrong !== undefined) throw new Failure('invalid', wrong);
    const machine = (isLock ? lockMachine : semaphoreMachine) as unknown as Piece['machine'];
    const name = isLock ? want.lock : want.semaphore;
    return { want, resource: `${machine.kind}/${name}`, machine, name };
  });
  pieces.sort((one, other) => (one.resource < other.resource ? -1 : 1));
  const twice = pieces.find(({ resource }, place) => resource === pieces[place + 1]?.resource);
  if (twice !== undefined) throw new Failure('invalid', `${shown(twice.resource)} was asked for twice; name it once`);
  return pieces;
}

/** Takes all resources at once, or answers what is in the way. */
async function attempt(
  runtime: Runtime,
  session: Session,
  parts: Parts,
  pieces: readonly Piece[],
  options: TogetherOptions,
  holder: string,
): Promise<TogetherAttempt> {
  const asking = new AskingTogether(runtime, session, parts, pieces, { ...options, holder });
  // `writeOnce` settles an attempt that may have been applied: its holds would otherwise stay without an owner until the session ends.
  return writeOnce(runtime, asking);
}

type Views = readonly Snapshot<Coordinated>[];

class AskingTogether implements Intent<Views, TogetherAttempt> {
  readonly until: number;
  readonly #runtime: Runtime;
  readonly #session: Session;
  readonly #parts: Parts;
  readonly #pieces: readonly Piece[];
  readonly #commands: readonly Command[];
  #races = 0;
  /** Frees stale holds that are too many for one write; the next read waits for it. */
  #clearing: Promise<unknown> | undefined;

  constructor(
    runtime: Runtime,
    session: Session,
    parts: Parts,
    pieces: readonly Piece[],
    options: TogetherOptions & { readonly holder: string },
  ) {
    this.until = runtime.giveUpAt();
    this.#runtime = runtime;
    this.#session = session;
    this.#parts = parts;
    this.#pieces = pieces;
    const origin = runtime.witness.isOn ? { origin: runtime.witness.origin() } : {};
    this.#commands = pieces.map((piece) => ({
      ...commandOf(piece, session, runtime.nextId(session), options),
      ...origin,
    }));
  }

  async read(): Promise<Views> {
    await this.#clearing;
    return readAll(this.#runtime, this.#pieces);
  }

  async #maintained(resource: string): Promise<void> {
    await outcomeOf(this.#runtime.writerFor(resource), { kind: 'maintain' }, this.until).catch(() => undefined);
  }

  decide(views: Views): NextStep<Views, TogetherAttempt> {
    const runtime = this.#runtime;
    const at = runtime.moment(runtime.revision);
    const decided = acquireTogether(
      this.#pieces.map((piece, place) =>
        partOf(piece, views[place] as Snapshot<Coordinated>, this.#commands[place] as Command),
      ),
      at,
    );
    if (decided.kind === 'invalid') throw new Failure('invalid', decided.problem);
    if (decided.kind === 'refused') {
      for (const { name, events } of decided.refusals) runtime.emit(name, events);
      return refusedWith(
        decided.refusals.map(({ name, outcome }) => ({ resource: name, refusal: outcome as unknown as Refusal })),
      );
    }
    const forsaken = restingOnNothing(runtime, decided.steps, this.#commands);
    if (forsaken.length > 0) return refusedWith(forsaken);
    if (this.#races++ === MOST_RACES) {
      return refusedWith(
        this.#pieces.map(({ resource }) => ({ resource, refusal: { kind: 'busy' as const, holders: [] } })),
      );
    }
    if (runtime.session?.id !== this.#session.id) throw sessionLost(this.#pieces);
    const steps = new Map(decided.steps.map(({ name, step }) => [name, step]));
    const transaction = merge(this.#pieces.map((piece, place) => this.#transaction(piece, place, views, steps, at)));
    if (Math.max(transaction.compare.length, transaction.success.length) > MOST_OPERATIONS) {
      // Frees the stale holds first, one resource at a time; then the transaction has room.
      const stale = [...steps].filter(([, { losses }]) => losses.length > 0);
      this.#clearing = Promise.all(stale.map(([resource]) => this.#maintained(resource)));
      return { kind: 'look' };
    }
    return {
      kind: 'write',
      transaction,
      // Each part of it has its entry already: see `commitOf`.
      deeds: [],
      landed: () => {
        for (const [resource, step] of steps) {
          for (const answer of step.answers) runtime.answer(resource, answer);
          for (const loss of step.losses) runtime.lose(loss);
        }
        return this.#granted(new Map([...steps].map(([resource, { outcome }]) => [resource, outcome as AnyOutcome])));
      },
    };
  }

  #transaction(
    piece: Piece,
    place: number,
    views: Views,
    steps: ReadonlyMap<string, NamedStep['step']>,
    at: Moment,
  ): Transaction {
    const view = views[place] as Snapshot<Coordinated>;
    const step = steps.get(piece.resource);
    if (step === undefined) throw new TypeError(`no step for ${piece.resource}`);
    const { witness } = this.#runtime;
    const decision = new Decision(view.state, at, witness.isOn);
    if (step.state === view.state) {
      decision.restsOnRecord = true;
    } else {
      const command = this.#commands[place] as Command;
      decision.take(step as Step<Coordinated, AnyOutcome>, command);
      decision.newcomers = [command];
    }
    const { isClosed } = piece.machine;
    const keys = resourceKeys(piece.machine.kind, piece.name);
    const commit = commitOf(keys, view, decision, this.#runtime.sender, witness, isClosed(decision.state), undefined);
    if (commit === undefined) throw new TypeError('the whole queue was read');
    return commit.transaction;
  }

  /** Finds the grants of an earlier attempt: one transaction made them, so either all are there, or none is. */
  found(views: Views): TogetherAttempt | Promise<TogetherAttempt> | undefined {
    const outcomes = new Map<string, AnyOutcome>();
    let isThere = false;
    for (const [place, { resource }] of this.#pieces.entries()) {
      const { id, holder } = this.#commands[place] as Command;
      const holds = (views[place] as Snapshot<Coordinated>).state.record.holds as readonly Grant[];
      const own = holds.find((hold) => hold.id === id);
      const grown = holds.find((hold) => by(hold) === id);
      if (own !== undefined || grown !== undefined) isThere = true;
      const hold = own ?? grown ?? holds.find((held) => held.holder === holder);
      const isLock = resource.startsWith('lock/');
      const kind =
        own !== undefined
          ? 'acquired'
          : grown !== undefined
            ? isLock
              ? 'upgraded'
              : 'increased'
            : isLock
              ? 'extended'
              : 'already-held';
      if (hold !== undefined) outcomes.set(resource, { kind, hold });
    }
    return isThere && outcomes.size === this.#pieces.length ? this.#granted(outcomes) : undefined;
  }

  readonly fence = (done: () => void, failed: (error: unknown) => void): void => this.#runtime.fence(done, failed);

  gone(): void {
    this.#session.end('expired');
  }

  /** Gives back what may have been granted, as soon as the store is there again. */
  abandoned(doubt: Failure): Failure {
    this.#giveBack();
    return doubt;
  }

  #giveBack(): void {
    for (const [place, { resource }] of this.#pieces.entries()) {
      const { id } = this.#commands[place] as Command;
      this.#runtime.writerFor(resource).submit(new BackgroundCommand({ kind: 'cancel', id }));
    }
  }

  async #granted(outcomes: ReadonlyMap<string, AnyOutcome>): Promise<TogetherAttempt> {
    const runtime = this.#runtime;
    if (runtime.session?.id !== this.#session.id) throw sessionLost(this.#pieces);
    const grants = [...outcomes.values()].flatMap(({ hold }) => (hold === undefined ? [] : [hold]));
    if (grants.some(({ id, token }) => runtime.holdings.wasLostEarly(id, token))) {
      // One of the grants was lost before its answer arrived: the others go back.
      this.#giveBack();
      throw new NotAcquired(this.#pieces.map(({ resource }) => resource).join(', '), { kind: 'lost' });
    }
    for (const [place, { resource }] of this.#pieces.entries()) {
      const { hold } = outcomes.get(resource) as AnyOutcome;
      const fault = hold && wrongGrant(resource, this.#commands[place] as Command, hold);
      if (fault === undefined) continue;
      this.#giveBack();
      throw fault;
    }
    const kept = this.#pieces.map(({ want, resource }) =>
      this.#parts.kept(want, outcomes.get(resource) as AnyOutcome, this.#session.id),
    );
    const holds = new HoldSet(kept.map((hold) => this.#parts.shown(hold)));
    try {
      await Promise.all(kept.map(async (hold) => handedOut(runtime, hold)));
      // Their limits took time to set, and the first may be over before the last is there.
      holds.check();
    } catch (error) {
      await holds.release().catch(() => undefined);
      throw error;
    }
    return { ok: true, kind: 'acquired', holds };
  }
}

/** The request that upgraded or enlarged this hold, if one did. */
function by(hold: Grant): string | undefined {
  const { upgradedBy, grown } = hold as Grant & {
    readonly upgradedBy?: string;
    readonly grown?: { readonly by: string };
  };
  return upgradedBy ?? grown?.by;
}

function refusedWith(
  refusals: Extract<TogetherAttempt, { kind: 'refused' }>['refusals'],
): NextStep<Views, TogetherAttempt> {
  return { kind: 'answer', answer: { ok: false, kind: 'refused', refusals } };
}

/** Refuses the re-entries into a hold of this process that has ended here, and is still in the record. */
function restingOnNothing(
  runtime: Runtime,
  steps: readonly NamedStep[],
  commands: readonly Command[],
): Extract<TogetherAttempt, { kind: 'refused' }>['refusals'] {
  return steps.flatMap(({ name, step }) => {
    const { hold } = step.outcome as AnyOutcome;
    if (hold === undefined || commands.some(({ id }) => id === hold.id) || !runtime.isForsaken(hold)) return [];
    const holders = [hold] as never;
    const refusal: Refusal = name.startsWith('lock/') ? { kind: 'busy', holders } : { kind: 'full', free: 0, holders };
    return [{ resource: name, refusal }];
  });
}

type Refusals = Extract<TogetherAttempt, { kind: 'refused' }>['refusals'];

/** Names the holders that were in the way at first: no request waits for all of them at once. */
function timedOut(all: string, waitedMs: number, refusals: Refusals): NotAcquired {
  const holders = refusals.flatMap(({ refusal }): readonly HeldBy[] => ('holders' in refusal ? refusal.holders : []));
  return new NotAcquired(all, { kind: 'timed-out', waitedMs, holders });
}

function sessionLost(pieces: readonly Piece[]): NotAcquired {
  return new NotAcquired(pieces.map(({ resource }) => resource).join(', '), { kind: 'session-lost' });
}

type Command = Request & AnyCommand;

function commandOf(piece: Piece, session: Session, id: string, options: RequestOptions): Command {
  const fields = requestFields(id, session.id, options);
  if ('lock' in piece.want) {
    return { kind: 'acquire', ...fields, mode: piece.want.mode ?? 'exclusive', wait: false } as Command;
  }
  const { weight = 1, capacity } = piece.want;
  return { kind: 'acquire', ...fields, weight, wait: false, ...(capacity !== undefined && { capacity }) } as Command;
}

function partOf(piece: Piece, view: Snapshot<Coordinated>, command: Command): Part {
  return { name: piece.resource, state: view.state, command } as unknown as Part;
}

async function readAll(runtime: Runtime, pieces: readonly Piece[]): Promise<readonly Snapshot<Coordinated>[]> {
  const views: Snapshot<Coordinated>[] = [];
  // Each transaction reads some of them, at another revision: the write compares what was decided on them.
  while (views.length < pieces.length) {
    const some = pieces.slice(views.length, views.length + READ_AT_ONCE);
    const look = new Operations();
    const reads = some.map(({ machine, name }) =>
      readSnapshot(look, resourceKeys(machine.kind, name), runtime.witness.isOn, true),
    );
    const { results, revision } = await send(runtime, look.always());
    for (const [place, read] of reads.entries()) {
      const { machine } = some[place] as Piece;
      const view = snapshotFrom(machine, read, results, revision) as Snapshot<Coordinated>;
      views.push({ ...view, chain: { ...view.chain, asOf: revision } });
    }
  }
  return views;
}

/** Merges the transactions of all resources. Letters to one process become one, because no key may be put twice. */
function merge(transactions: readonly Transaction[]): Transaction {
  const letters = new Map<string, Nested>();
  const success: Operation[] = [];
  for (const operation of transactions.flatMap((transaction) => transaction.success)) {
    const put = operation.do === 'transaction' ? operation.success[0] : undefined;
    if (operation.do !== 'transaction' || put?.do !== 'put') {
      success.push(operation);
      continue;
    }
    const [before] = letters.get(put.key)?.success ?? [];
    const earlier = before?.do === 'put' ? (before.value.json as Letter) : undefined;
    const letter = put.value.json as Letter;
    const both: Letter = {
      answers: [...(earlier?.answers ?? []), ...letter.answers],
      losses: [...(earlier?.losses ?? []), ...letter.losses],
      reports: [...(earlier?.reports ?? []), ...(letter.reports ?? [])],
    };
    letters.set(put.key, { ...operation, success: [{ ...put, value: encode(both) }] });
  }
  // Each transaction compares that our session is alive: once is enough.
  const compare = new Map(transactions.flatMap((one) => one.compare.map((each) => [JSON.stringify(each), each])));
  return {
    compare: [...compare.values()],
    success: [...success, ...letters.values()],
    failure: [],
  };
}
