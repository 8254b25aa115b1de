/** A decision: what a batch of commands would make of what is known. `commit.ts` has the transaction that makes it so. */
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

type AnyRecord = Parameters<typeof faultOf>[0];

const NOBODY: ReadonlyMap<string, never> = new Map<string, never>();

/** Collected over a batch. Most batches are one command, so its lists are taken over as they are. */
export class Decision<State extends Coordinated> {
  state: State;
  readonly at: number;
  /** Tokens that it gives out are larger than this. */
  readonly revision: Revision;
  /** A decision rests on the record's being as it is known, although it does not change it. */
  restsOnRecord = false;
  /** Granted without having waited: nobody may be waiting. */
  newcomers: readonly Request[] = NONE;
  events: readonly Event[] = NONE;
  answers: readonly Answer<unknown>[] = NONE;
  losses: readonly Loss[] = NONE;
  /** How many requests and holds of others this write answers, drops and ends. */
  touched = 0;
  /** Some newcomer hangs on a lease other than the session's. */
  usesOwnLease = false;
  /** Holds that their own holders changed: they must be alive. */
  kept: readonly Hold[] = NONE;
  /** What is wrong with what one of the steps made of the record: then nothing of it may be written. */
  fault: string | undefined;
  /** The marks of commands that can be known by nothing else. */
  marks: readonly string[] = NONE;
  /** Requests to be taken out of the queue, known or not. */
  withdrawn: readonly Ticket[] = NONE;

  /** What becomes of delegations, to be told to those who sent them. */
  replies: readonly (DelegationReply & { readonly process: string })[] = NONE;
  /** The sessions of those who ask for something by them, by name. */
  senders: ReadonlyMap<string, Pick<DelegationRequest, 'epoch' | 'leaseId'>> = NOBODY;

  constructor(state: State, { now, revision }: Moment) {
    this.state = state;
    this.at = now;
    this.revision = revision;
  }

  /** Concerns nobody but the one who asks, under the session of this process. */
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
   * A request that joined the queue and was served in the same batch has not waited either. That holds for an upgrade as
   * well: no ticket of it was in the store that would prove its lease alive.
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
    // To give something back is never too late.
    if (commands[place]?.kind !== 'acquire') return;
    // Of two delegations of one process the one of the earlier epoch may be void: both are only done if neither is.
    const earlier = this.senders.get(from)?.epoch ?? epoch;
    this.senders = new Map([...this.senders, [from, { epoch: Math.min(earlier, epoch), leaseId }]]);
  }

  take(step: Step<State, AnyOutcome>): void {
    // Each step by itself: what is right after one may look wrong after the next, such as a smaller capacity after a grant.
    if (step.state.record !== this.state.record)
      this.fault ??= faultOf(step.state.record as AnyRecord, this.state.record as AnyRecord);
    this.#keep(step.outcome);
    for (const { outcome } of step.answers) this.#keep(outcome);
    this.state = step.state;
    // That somebody waits is told by its ticket.
    const events =
      step.outcome.kind === 'queued' ? step.events.filter(({ type }) => !type.endsWith(':queued')) : step.events;
    this.events = joined(this.events, events);
    this.answers = joined(this.answers, step.answers);
    this.losses = joined(this.losses, step.losses);
    this.touched += step.answers.length + step.losses.length + (step.dropped ?? 0);
  }

  /**
   * What somebody is told to have was there before, perhaps of another session than the one that asks, and has changed: as
   * it was, it has to be alive. One that was stale already must not come back to life by being changed.
   */
  #keep({ kind, hold }: AnyOutcome): void {
    if (hold === undefined || kind === 'released') return;
    const was = this.state.record.holds.find(({ id }) => id === hold.id) as Hold | undefined;
    if (was !== undefined && was !== hold && !this.kept.includes(was)) this.kept = [...this.kept, was];
  }
}

/**
 * An outcome as it is sent to another process. Whoever has to wait can do without a list of all who hold it, and nobody
 * needs the metadata of holds that are over: there may be many, and a store takes only so much in one write.
 */
export function mailed(outcome: AnyOutcome): AnyOutcome {
  const { kind, hold, from } = outcome as AnyOutcome & { readonly from?: readonly Hold[] };
  if (kind === 'queued') return { ...outcome, holders: undefined } as AnyOutcome;
  if (from !== undefined) return { ...outcome, from: from.map(bare) } as AnyOutcome;
  return kind === 'released' && hold !== undefined ? { ...outcome, hold: bare(hold) } : outcome;
}

/** The id by which a command waits, if it is one that may wait. */
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
