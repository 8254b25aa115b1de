/**
 * Decides a batch of commands on a state, one after another. The decision is the state that they would make, and what it relies
 * on; `commit.ts` makes it a transaction.
 */
import {
  type Answer,
  type Event,
  faultOf,
  type Hold,
  joined,
  type Loss,
  type Moment,
  NONE,
  type Request,
  type Step,
  withMost,
} from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { DelegationRequest, DelegationReply } from '../layout.ts';
import {
  requestIn,
  DelegatedCommand,
  type AnyCommand,
  type AnyOutcome,
  type PendingCommand,
  type Ticket,
} from './pending-command.ts';
import type { Coordinated, Machine } from '../../core/machines.ts';
import type { WitnessedStep } from './witnessed.ts';

/** The machine of a lock or of a semaphore. */
export type AnyMachine = Machine<Coordinated, AnyCommand, AnyOutcome>;

type AnyRecord = Parameters<typeof faultOf>[0];

const NOBODY: ReadonlyMap<string, never> = new Map<string, never>();

/** Gives each command its outcome. `session`: of the process that decides. `at.most`: how many waiters the decision serves at most. */
export function decide<State extends Coordinated>(
  machine: Machine<State, AnyCommand, AnyOutcome>,
  state: State,
  batch: readonly PendingCommand[],
  at: Moment,
  session: string,
  isWitnessed: boolean,
): Decision<State> {
  const { most = Number.POSITIVE_INFINITY } = at;
  const decision = new Decision(state, at, isWitnessed);
  // Plain loops here and below, for speed: every acquire and every release runs them.
  for (let i = 0; i < batch.length; i++) {
    const pending = batch[i] as PendingCommand;
    const { command } = pending;
    const before = decision.state;
    const answer = decision.answers.length === 0 ? undefined : answerTo(command, decision);
    if (answer !== undefined) {
      // It was sent again, and served from the queue in this very write: decided once more, it would queue behind itself.
      pending.outcome = answer.outcome as AnyOutcome;
      pending.effective = false;
      continue;
    }
    const left = most - decision.touched;
    if (left <= 0) {
      // This write is full: the rest of the batch is decided again after it.
      pending.outcome = { kind: 'unfinished', then: command } as AnyOutcome;
      pending.effective = false;
      continue;
    }
    const step = machine.transition(before, command, decision.touched === 0 ? at : withMost(at, left));
    const { outcome } = step;
    pending.outcome = outcome;
    pending.effective = step.state !== before;
    pending.events = pending.effective ? NONE : step.events;
    const { ticket } = command;
    if (ticket !== undefined) {
      // The request may have been granted since: then the record has changed, and the grant has to be given back.
      decision.restsOnRecord = true;
      if (!decision.withdrawn.some(({ id }) => id === ticket.id)) decision.withdrawn = [...decision.withdrawn, ticket];
    }
    if (!pending.effective) continue;
    decision.take(step, command);
    if (outcome.kind === 'unfinished') continue;
    if (pending.mark !== undefined) decision.marks = [...decision.marks, pending.mark];
    if (pending instanceof DelegatedCommand) decision.onBehalfOf(pending.delegated, pending.place, outcome);
    if (outcome.kind === 'queued') {
      // A holder that may hold the resource already must not queue behind itself: this decision rests on the record.
      const request = command as unknown as Request;
      if (pending.uncertain || command.kind !== 'acquire' || request.holder !== request.id)
        decision.restsOnRecord = true;
    } else if ((command.kind === 'acquire' || command.kind === 'upgrade') && !isReentry(outcome)) {
      const request = command as unknown as Request;
      decision.newcomers = decision.newcomers.length === 0 ? [request] : [...decision.newcomers, request];
      if (request.lease !== session) decision.usesOwnLease = true;
    }
  }
  if (decision.answers.length > 0) decision.countNewcomers(batch);
  return decision;
}

function answerTo(command: AnyCommand, { answers }: Pick<Decision<never>, 'answers'>): Answer<unknown> | undefined {
  const request = requestIn(command);
  return request === undefined ? undefined : answers.find(({ id }) => id === request);
}

/** A re-entry passes no waiter: its holder has the resource already. */
function isReentry({ kind }: AnyOutcome): boolean {
  return kind === 'extended' || kind === 'already-held';
}

/** Collects the steps of a batch. Most batches have one command, so the lists of a first step are taken without a copy. */
export class Decision<State extends Coordinated> {
  state: State;
  readonly at: number;
  /** The tokens of its grants are larger than this. */
  readonly revision: Revision;
  /** The commit has to compare the record even if the decision does not change it. */
  restsOnRecord = false;
  /** Requests that are granted without having waited: the commit has to compare that the queue is empty. */
  newcomers: readonly Request[] = NONE;
  events: readonly Event[] = NONE;
  answers: readonly Answer<unknown>[] = NONE;
  losses: readonly Loss[] = NONE;
  /** How many requests and holds of others this write answers, drops or ends. */
  touched = 0;
  /** Some newcomer rests on another lease than the session's. */
  usesOwnLease = false;
  /** Holds that their own holders change, as they were before: their leases must be alive. */
  kept: readonly Hold[] = NONE;
  /** The promise that one of the steps breaks: such a decision must not be written. */
  fault: string | undefined;
  /** The marks of the commands that have one. */
  marks: readonly string[] = NONE;
  /** Requests to delete from the queue, whether they are in the snapshot or not. */
  withdrawn: readonly Ticket[] = NONE;

  /** The outcomes of delegated commands, for the processes that delegated them. */
  replies: readonly (DelegationReply & { readonly process: string })[] = NONE;
  /** The sessions of the processes that delegated an acquire, by name. */
  senders: ReadonlyMap<string, Pick<DelegationRequest, 'epoch' | 'leaseId'>> = NOBODY;

  /** The steps, if the witness enters them. */
  readonly steps: WitnessedStep[] | undefined;

  constructor(state: State, { now, revision }: Moment, isWitnessed: boolean) {
    this.state = state;
    this.steps = isWitnessed ? [] : undefined;
    this.at = now;
    this.revision = revision;
  }

  /** Whether it concerns only the caller, under the session of this process. */
  get isPlain(): boolean {
    return (
      this.answers.length === 0 &&
      this.losses.length === 0 &&
      this.kept.length === 0 &&
      this.withdrawn.length === 0 &&
      this.replies.length === 0 &&
      !this.usesOwnLease
    );
  }

  /**
   * A request that joined the queue and was granted in the same batch is a newcomer too. So is an upgrade: the store had no
   * ticket of it that would prove its lease alive.
   */
  countNewcomers(batch: readonly { readonly command: AnyCommand; readonly outcome: AnyOutcome | undefined }[]): void {
    for (const { command, outcome } of batch) {
      if (outcome?.kind !== 'queued') continue;
      const asked = requestIn(command);
      if (asked === undefined || !this.answers.some(({ id }) => id === asked)) continue;
      this.newcomers = [...this.newcomers, command as unknown as Request];
    }
  }

  onBehalfOf({ from, id, epoch, leaseId, commands }: DelegationRequest, place: number, outcome: AnyOutcome): void {
    this.replies = [...this.replies, { process: from, id, place, outcome: mailed(outcome) }];
    // A release is never too late, so it does not depend on its sender's epoch.
    if (commands[place]?.kind !== 'acquire') return;
    // Of two delegations of one process, the one of the earlier epoch may be void. The commit compares that epoch, for both.
    const earlier = this.senders.get(from)?.epoch ?? epoch;
    this.senders = new Map([...this.senders, [from, { epoch: Math.min(earlier, epoch), leaseId }]]);
  }

  take(step: Step<State, AnyOutcome>, command: AnyCommand): void {
    this.steps?.push({ command, before: this.state, step });
    // Checks each step by itself: a later step may make an earlier one look wrong, such as a smaller capacity after a grant.
    if (step.state.record !== this.state.record)
      this.fault ??= faultOf(step.state.record as AnyRecord, this.state.record as AnyRecord);
    this.#keep(step.outcome);
    for (let i = 0; i < step.answers.length; i++) this.#keep((step.answers[i] as Answer<AnyOutcome>).outcome);
    this.state = step.state;
    // The ticket itself tells that a request waits, so the record does not repeat the event.
    const events =
      step.outcome.kind === 'queued' ? step.events.filter(({ type }) => !type.endsWith(':queued')) : step.events;
    this.events = joined(this.events, events);
    this.answers = joined(this.answers, step.answers);
    this.losses = joined(this.losses, step.losses);
    this.touched += step.answers.length + step.losses.length + (step.dropped ?? 0);
  }

  /**
   * Keeps the hold that an outcome shows, as it was before the step changed it: the commit compares that its lease is alive.
   * The lease may be of another session than the caller's, and a change must not bring a stale hold back to life.
   */
  #keep({ kind, hold }: AnyOutcome): void {
    if (hold === undefined || kind === 'released') return;
    const holds = this.state.record.holds as readonly Hold[];
    for (let i = 0; i < holds.length; i++) {
      const was = holds[i] as Hold;
      if (was.id !== hold.id) continue;
      if (was !== hold && !this.kept.includes(was)) this.kept = [...this.kept, was];
      return;
    }
  }
}

/**
 * An outcome as it is sent to another process: without the holders where the request waits, and without the metadata of holds
 * that have ended. The receiver needs neither, there may be many, and stores limit the size of a write.
 */
export function mailed(outcome: AnyOutcome): AnyOutcome {
  const { kind, hold, from } = outcome as AnyOutcome & { readonly from?: readonly Hold[] };
  if (kind === 'queued') return { ...outcome, holders: undefined } as AnyOutcome;
  if (from !== undefined) return { ...outcome, from: from.map(bare) } as AnyOutcome;
  return kind === 'released' && hold !== undefined ? { ...outcome, hold: bare(hold) } : outcome;
}

function bare<H extends Hold>({ metadata: _metadata, reason: _reason, ...hold }: H): H {
  return hold as H;
}

/** Which requests join the queue by a decision, and which leave it. */
export interface Moved {
  readonly arriving: readonly Ticket[];
  readonly leaving: readonly Ticket[];
}

const UNMOVED: Moved = { arriving: NONE, leaving: NONE };

/** Both lists are in order of arrival, and a request that stays is the same object in both. */
export function difference(before: readonly Ticket[], after: readonly Ticket[]): Moved {
  if (before === after) return UNMOVED;
  const leaving: Ticket[] = [];
  let place = 0;
  for (const request of before) {
    if (after[place] === request) place++;
    else leaving.push(request);
  }
  return { arriving: after.slice(place), leaving };
}
