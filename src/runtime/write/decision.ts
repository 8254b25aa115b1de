/** A decision: the state that a batch of commands would make, and what it relies on. `commit.ts` makes it a transaction. */
import {
  type Answer,
  type Event,
  faultOf,
  type Hold,
  type Loss,
  type Moment,
  NONE,
  type Request,
  type Step,
} from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { DelegationRequest, DelegationReply } from '../layout.ts';
import type { Coordinated } from './machines.ts';
import type { AnyCommand, AnyOutcome, Ticket } from './pending-command.ts';
import type { WitnessedStep } from './witnessed.ts';

type AnyRecord = Parameters<typeof faultOf>[0];

const NOBODY: ReadonlyMap<string, never> = new Map<string, never>();

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

  /** Concerns only the caller, under the session of this process. */
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
      const asked = requestOf(command);
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
    for (const { outcome } of step.answers) this.#keep(outcome);
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
    const was = this.state.record.holds.find(({ id }) => id === hold.id) as Hold | undefined;
    if (was !== undefined && was !== hold && !this.kept.includes(was)) this.kept = [...this.kept, was];
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

/** The request id under which a command may wait. */
function requestOf(command: AnyCommand & { readonly request?: string }): string | undefined {
  if (command.kind === 'acquire') return command.id;
  return command.kind === 'upgrade' ? command.request : undefined;
}

function bare<H extends Hold>({ metadata: _metadata, reason: _reason, ...hold }: H): H {
  return hold as H;
}

function joined<T>(some: readonly T[], more: readonly T[]): readonly T[] {
  if (more.length === 0) return some;
  return some.length === 0 ? more : [...some, ...more];
}
