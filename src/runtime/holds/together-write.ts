/**
 * Takes several locks and slots in one write, or none of them: reads all of them, decides, and sends one transaction. If the
 * answer is lost, the ids of the requests show whether it landed.
 */
import {
  acquireTogether,
  type Hold as Grant,
  type Moment,
  type NamedStep,
  type Part,
  type Step,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { MOST_OPERATIONS, Operations, type Transaction, type Nested, type Operation } from '../../store/index.ts';
import { resourceKeys, wrongGrant, encode, type Letter } from '../layout.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import type { StepFields } from '../tracer.ts';
import { commitOf } from '../write/commit.ts';
import { Decision } from '../write/decision.ts';
import type { Coordinated } from '../../core/machines.ts';
import { type AnyOutcome, BackgroundCommand, outcomeOf } from '../write/pending-command.ts';
import { lookUpLeases, readSnapshot, type Snapshot, snapshotFrom } from '../write/snapshot.ts';
import { type Intent, type NextStep, send } from '../write/write-once.ts';
import type { WaitOptions } from './wait-limits.ts';
import type { KeptHold } from './hold.ts';
import { HoldSet } from './hold-set.ts';
import type { RequestOptions } from './terms.ts';
import { type AcquireCommand, commandOf, keptHold, type Piece, shownHold } from './wants.ts';

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

export type Refusals = Extract<TogetherAttempt, { kind: 'refused' }>['refusals'];

/** After this many lost races in a row, it waits for the resources in order instead. */
const MOST_RACES = 16;
/** How many resources one transaction reads, at four reads each. */
const READ_AT_ONCE = 32;

type Views = readonly Snapshot<Coordinated>[];

export class AskingTogether implements Intent<Views, TogetherAttempt> {
  readonly until: number;
  readonly #runtime: Runtime;
  readonly #session: Session;
  readonly #pieces: readonly Piece[];
  readonly #commands: readonly AcquireCommand[];
  #races = 0;
  /** Frees stale holds that are too many for one write; the next read waits for it. */
  #clearing: Promise<unknown> | undefined;

  constructor(
    runtime: Runtime,
    session: Session,
    pieces: readonly Piece[],
    options: TogetherOptions & { readonly holder: string },
  ) {
    this.until = runtime.giveUpAt();
    this.#runtime = runtime;
    this.#session = session;
    this.#pieces = pieces;
    const sensitive = options.sensitive === true ? true : undefined;
    const isTold = runtime.witness.isOn || sensitive === true;
    const origin = isTold ? { origin: runtime.witness.origin(undefined, sensitive) } : {};
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
        partOf(piece, views[place] as Snapshot<Coordinated>, this.#commands[place] as AcquireCommand),
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
      const command = this.#commands[place] as AcquireCommand;
      decision.take(step as Step<Coordinated, AnyOutcome>, command);
      decision.newcomers = [command];
    }
    const { isClosed } = piece.machine;
    const keys = resourceKeys(piece.machine.kind, piece.name);
    const { sender } = this.#runtime;
    const draft = { keys, snapshot: view, decision, sender, witness, isClosed: isClosed(decision.state) };
    const commit = commitOf(draft, undefined);
    if (commit === undefined) throw new TypeError('the whole queue was read');
    return commit.transaction;
  }

  /** Finds the grants of an earlier attempt. One transaction made them all, but others may have been taken away since. */
  found(views: Views): TogetherAttempt | Promise<TogetherAttempt> | undefined {
    const outcomes = new Map<string, AnyOutcome>();
    let isThere = false;
    for (const [place, { resource }] of this.#pieces.entries()) {
      const { id, holder } = this.#commands[place] as AcquireCommand;
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
    if (!isThere) return undefined;
    return outcomes.size === this.#pieces.length ? this.#granted(outcomes) : this.#lost();
  }

  /** One of the grants is lost: the others go back. */
  async #lost(): Promise<never> {
    this.#giveBack();
    throw new NotAcquired(this.#pieces.map(({ resource }) => resource).join(', '), { kind: 'lost' });
  }

  readonly fence = (done: () => void, failed: (error: unknown) => void): void =>
    this.#runtime.presence.fence(done, failed);

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
      const { id } = this.#commands[place] as AcquireCommand;
      this.#runtime.writerFor(resource).submit(new BackgroundCommand({ kind: 'cancel', id }));
    }
  }

  async #granted(outcomes: ReadonlyMap<string, AnyOutcome>): Promise<TogetherAttempt> {
    const runtime = this.#runtime;
    if (runtime.session?.id !== this.#session.id) throw sessionLost(this.#pieces);
    const grants = [...outcomes.values()].flatMap(({ hold }) => (hold === undefined ? [] : [hold]));
    if (grants.some(({ id, token }) => runtime.wasLostEarly(id, token))) return this.#lost();
    for (const [place, { resource }] of this.#pieces.entries()) {
      const { hold } = outcomes.get(resource) as AnyOutcome;
      const fault = hold && wrongGrant(resource, this.#commands[place] as AcquireCommand, hold);
      if (fault === undefined) continue;
      this.#giveBack();
      throw fault;
    }
    const kept = this.#pieces.map(({ want, resource }) =>
      keptHold(runtime, want, outcomes.get(resource) as AnyOutcome, this.#session.id),
    );
    const holds = new HoldSet(kept.map(shownHold));
    try {
      await Promise.all(kept.map(async (hold) => hold.handOut()));
      // Their limits took time to set, and the first may be over before the last is there.
      holds.check();
    } catch (error) {
      await holds.release().catch(() => undefined);
      throw error;
    }
    const tookMs = runtime.clock.monotonic() - (this.until - runtime.options.requestTimeoutMs);
    for (const { resource } of this.#pieces) {
      const { kind, from } = outcomes.get(resource) as AnyOutcome & { readonly from?: readonly Grant[] };
      runtime.measures.of(resource).acquired(tookMs);
      if (kind === 'reclaimed') runtime.measures.of(resource).claimedStale(from?.length ?? 1);
    }
    for (const hold of kept) {
      if (!hold.isReentry) hold.trace = runtime.measures.tracer?.begin('hold', tracedAs(hold));
    }
    return { ok: true, kind: 'acquired', holds };
  }
}

function tracedAs({ resource, holder, token }: KeptHold): StepFields {
  return { resource, holder, token };
}

/** The request that upgraded or enlarged this hold, if one did. */
function by(hold: Grant): string | undefined {
  const { upgradedBy, grown } = hold as Grant & {
    readonly upgradedBy?: string;
    readonly grown?: { readonly by: string };
  };
  return upgradedBy ?? grown?.by;
}

function refusedWith(refusals: Refusals): NextStep<Views, TogetherAttempt> {
  return { kind: 'answer', answer: { ok: false, kind: 'refused', refusals } };
}

/** Refuses the re-entries into a hold of this process that has ended here, and is still in the record. */
function restingOnNothing(
  runtime: Runtime,
  steps: readonly NamedStep[],
  commands: readonly AcquireCommand[],
): Refusals {
  return steps.flatMap(({ name, step }) => {
    const { hold } = step.outcome as AnyOutcome;
    if (hold === undefined || commands.some(({ id }) => id === hold.id) || !runtime.isForsaken(hold)) return [];
    const holders = [hold] as never;
    const refusal: Refusal = name.startsWith('lock/') ? { kind: 'busy', holders } : { kind: 'full', free: 0, holders };
    return [{ resource: name, refusal }];
  });
}

function sessionLost(pieces: readonly Piece[]): NotAcquired {
  return new NotAcquired(pieces.map(({ resource }) => resource).join(', '), { kind: 'session-lost' });
}

function partOf(piece: Piece, view: Snapshot<Coordinated>, command: AcquireCommand): Part {
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
  const states = views.map(({ state }) => state);
  await new Promise<void>((resolve, reject) => lookUpLeases(runtime, states, resolve, reject));
  return views;
}

/** Merges the transactions of all resources. Letters to one process become one, because no key may be put twice. */
export function merge(transactions: readonly Transaction[]): Transaction {
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
  // Each transaction compares that our session is alive; one comparison is enough.
  const compare = new Map(transactions.flatMap((one) => one.compare.map((each) => [JSON.stringify(each), each])));
  return {
    compare: [...compare.values()],
    success: [...success, ...letters.values()],
    failure: [],
  };
}
