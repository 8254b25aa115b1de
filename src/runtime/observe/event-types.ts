/** What each event tells. `type` tells them apart: a handler that has looked at it knows the other fields. */
import type { Cycle, Json, LockMode, OnFailure, Outlook, Slots, Token, Topology } from '../../core/index.ts';
import type { EventKind } from './event-kinds.ts';

/** What every event tells. */
export interface EventFields<Type extends string> {
  /** What happened, such as `lock:acquired`. */
  readonly type: Type;
  /** `lock/main-branch`; for `resync`, which concerns everything, `*`. */
  readonly resource: string;
  /** Whom it concerns: of `lock:forced`, the holder that lost it. Empty where it is nobody. */
  readonly holder: string;
  /** The time, by the clock of the process that did it. */
  readonly at: number;
  /** Revision and place in it: the same in every process, and absent for events of this process alone (`denied`, `guard:*`). */
  readonly id?: string;
}

interface WithToken {
  /** The token of the grant, or of the claim. */
  readonly token: Token;
}

interface WithSlots {
  /** How many slots the hold has. */
  readonly weight: number;
  /** Which slots: numbers, and runs from a first to a last number. */
  readonly slots: Slots;
}

interface WithReason {
  /** Why, as the holder said when it asked. */
  readonly reason?: string;
}

interface Forced {
  /** Who took it. */
  readonly by: string;
  /** Why, as the taker said. */
  readonly reason: string;
}

interface Imported {
  /** `import` restored it from files. */
  readonly imported?: boolean;
}

/** A lock was granted, at once or after waiting, also by an upgrade. */
export interface LockAcquiredEvent extends EventFields<'lock:acquired'>, WithToken, WithReason, Imported {
  /** Whether it is held alone or together with other readers. */
  readonly mode: LockMode;
}

/** Slots were granted, also to a holder that had fewer. */
export interface SemaphoreAcquiredEvent
  extends EventFields<'semaphore:acquired'>, WithToken, WithSlots, WithReason, Imported {}

/** A lock was released, found stale, reclaimed, or its writer became a reader. */
export interface LockHoldEvent
  extends EventFields<`lock:${'released' | 'stale' | 'reclaimed' | 'downgraded'}`>, WithToken, WithReason {}

/** Slots were released, found stale, or reclaimed. */
export interface SemaphoreHoldEvent
  extends EventFields<`semaphore:${'released' | 'stale' | 'reclaimed'}`>, WithToken, WithSlots, WithReason {}

/** A lock was taken from its holder by force. */
export interface LockForcedEvent extends EventFields<'lock:forced'>, WithToken, Forced {}

/** Slots were taken from their holder by force. */
export interface SemaphoreForcedEvent extends EventFields<'semaphore:forced'>, WithToken, WithSlots, Forced {}

/** A request has to wait. */
export interface QueuedEvent extends EventFields<'lock:queued' | 'semaphore:queued'>, WithReason {
  /** Higher goes first. */
  readonly priority: number;
}

/** A try for a lock was refused; only this process gets the event. */
export interface LockDeniedEvent extends EventFields<'lock:denied'> {}

/** A try for slots was refused; only this process gets the event. */
export interface SemaphoreDeniedEvent extends EventFields<'semaphore:denied'> {
  /** How many slots were asked for. */
  readonly weight: number;
  /** How many were free. */
  readonly free: number;
}

/** A request was refused because it closed a circle of holders that wait for each other. */
export interface DeadlockEvent extends EventFields<'lock:deadlock' | 'semaphore:deadlock'> {
  /** Each holder in it waits for the next. */
  readonly cycle: Cycle;
}

/** The capacity of a semaphore was changed. */
export interface ResizedEvent extends EventFields<'semaphore:resized'>, Imported {
  /** The slots from now on. */
  readonly capacity: number;
  /** The slots before; 0 if it is new. */
  readonly from: number;
}

/** Nothing new of a semaphore is granted from now on; `holder` is who stopped it. */
export interface DrainedEvent extends EventFields<'semaphore:drained'> {
  /** Why. */
  readonly reason: string;
}

/** A semaphore grants slots again; `holder` is who undid the drain. */
export interface UndrainedEvent extends EventFields<'semaphore:undrained'> {
  /** Why it had been drained. */
  readonly reason: string;
}

/** A task is new; `holder` is who published it, if it said so. */
export interface TaskPublishedEvent extends EventFields<'task:published'> {}

/**
 * A task was claimed, released, requeued, completed or failed. Events of workers that do not use signalbox have fewer fields.
 */
export interface TaskEvent
  extends EventFields<`task:${'claimed' | 'released' | 'requeued' | 'completed' | 'failed'}`>, Partial<WithToken> {
  /** How often the task was claimed. */
  readonly attempts?: number;
  /** It failed because this number of workers died, or lost their claim, while they worked on it. */
  readonly losses?: number;
  /** It was taken from its worker by force. */
  readonly forced?: boolean;
  /** Who took it by force. */
  readonly by?: string;
  /** Why it failed, or was taken. */
  readonly reason?: string;
}

/** A pipeline is new; `holder` is who started it. */
export interface PipelineStartedEvent extends EventFields<'pipeline:started'> {
  /** The name of its runbook. */
  readonly name: string;
}

/** The command of a phase begins; `holder` is the driver. */
export interface PipelinePhaseEvent extends EventFields<'pipeline:phase'> {
  /** Its phase. */
  readonly phase: string;
  /** One for the first try. */
  readonly attempt: number;
}

/** A pipeline has to wait, or waits for something else than before. */
export interface PipelineBlockedEvent extends EventFields<'pipeline:blocked'> {
  /** Its phase. */
  readonly phase: string;
  /** What it waits for. */
  readonly on: 'guard' | 'holds' | 'backoff' | 'person';
  /** Every reason why it cannot continue. */
  readonly reasons: readonly string[];
  /** The number of the question that a person has to answer. */
  readonly question?: number;
}

/** A pipeline continues; or another driver has it, or a person has decided. */
export interface PipelineResumedEvent extends EventFields<'pipeline:resumed'>, Partial<WithToken> {
  /** Its phase, if it continues with that. */
  readonly phase?: string;
  /** Who or what made it continue. */
  readonly why?: string;
}

/** A pipeline is being cancelled, or is over. */
export interface PipelineEndedEvent extends EventFields<`pipeline:${'cancelling' | 'done' | 'failed' | 'cancelled'}`> {
  /** Its last phase, unless it is done. */
  readonly phase?: string;
  /** Why it failed, or was cancelled. */
  readonly reason?: string;
}

/** A member came, or went; `holder` is its id. */
export interface MemberEvent extends EventFields<`member:${'joined' | 'left'}`> {}

/** Another member is first in the view, as this process sees it; only this process gets the event. `holder` is that member. */
export interface CoordinatorEvent extends EventFields<'coordinator:changed'> {
  /** The coordinator before; null if there was no member. */
  readonly from: string | null;
  /** The coordinator now; null if there is no member. */
  readonly to: string | null;
  /** The version of the view. */
  readonly version: number;
}

/** The topology was broadcast; `holder` is the coordinator. */
export interface TopologyEvent extends EventFields<'topology:changed'> {
  /** The members with their assets, and the coordinator. */
  readonly topology: Topology;
}

/** A guard is looked at, and what came of it. `resource` is `guard/ID`, or the pipeline to whose phase it belongs. */
export interface GuardEvent extends EventFields<`guard:${'evaluating' | 'passed' | 'failed'}`> {
  /** Of a pipeline: the guard. */
  readonly guard?: string;
  /** Of a pipeline: its phase. */
  readonly phase?: string;
  /** Why it failed. */
  readonly reasons?: readonly string[];
  /** Whether it can pass as things stand. */
  readonly outlook?: Outlook;
  /** What the guard says to do when it fails. */
  readonly action?: OnFailure | 'retry' | 'fail';
  /** The inputs that could not be looked up. */
  readonly missing?: Json;
}

/** The record of the witness fills: maintenance trims it when it is full. `resource` is `witness/size`. */
export interface WitnessFillingEvent extends EventFields<'witness:filling'> {
  /** How many entries the record has. */
  readonly entries: number;
  /** About how many bytes it takes. */
  readonly bytes: number;
  /** How full it is, in percent. */
  readonly filled: number;
}

/** The record of the witness was full, and maintenance has trimmed it. `resource` is `witness/size`. */
export interface WitnessTrimmedEvent extends EventFields<'witness:trimmed'> {
  /** How many entries went. */
  readonly trimmed: number;
  /** How many are left. */
  readonly entries: number;
  /** The checkpoint that covers what went. */
  readonly checkpoint: number;
}

/** The record of the witness could not be anchored, archived or trimmed; it is tried again later. `resource` is `witness/size`. */
export interface WitnessFailedEvent extends EventFields<'witness:failed'> {
  /** What failed. A record that cannot be archived is not trimmed. */
  readonly step: 'anchor' | 'archive' | 'trim';
  /** Why, in a sentence. */
  readonly why: string;
  /** The checkpoint that was made for it. */
  readonly checkpoint: number;
}

/** Maintenance found a part of the record that does not verify, and left it unsealed. `resource` is `witness/size`. */
export interface WitnessDamagedEvent extends EventFields<'witness:damaged'> {
  /** The chain that is damaged; empty if it is not one chain. */
  readonly chain: string;
  /** What is wrong, in a sentence. */
  readonly why: string;
}

/** Something was missed: look at the state itself. A handler may get it, whatever its pattern. */
export interface ResyncEvent extends EventFields<'resync'> {}

/** Everything that can happen; `type` tells the events apart. */
export type SignalboxEvent =
  | LockAcquiredEvent
  | LockHoldEvent
  | LockForcedEvent
  | LockDeniedEvent
  | SemaphoreAcquiredEvent
  | SemaphoreHoldEvent
  | SemaphoreForcedEvent
  | SemaphoreDeniedEvent
  | QueuedEvent
  | DeadlockEvent
  | ResizedEvent
  | DrainedEvent
  | UndrainedEvent
  | TaskPublishedEvent
  | TaskEvent
  | PipelineStartedEvent
  | PipelinePhaseEvent
  | PipelineBlockedEvent
  | PipelineResumedEvent
  | PipelineEndedEvent
  | MemberEvent
  | CoordinatorEvent
  | TopologyEvent
  | GuardEvent
  | WitnessFillingEvent
  | WitnessTrimmedEvent
  | WitnessFailedEvent
  | WitnessDamagedEvent
  | ResyncEvent;

/** The name of an event. */
export type EventType = SignalboxEvent['type'];

/** An event (`lock:released`), all of a kind (`lock:*`), or everything (`*`). */
export type EventPattern = EventType | `${EventKind}:*` | '*';

/** The events that a pattern matches. Every handler may also get `resync`. */
export type EventOf<Pattern extends EventPattern> =
  | ResyncEvent
  | (Pattern extends '*'
      ? SignalboxEvent
      : Pattern extends `${infer Kind}:*`
        ? Of<SignalboxEvent, `${Kind}:${string}`>
        : Of<SignalboxEvent, Pattern>);

/** The events of these types. One interface may describe several types: of those, only the ones meant are left. */
type Of<Event, Type extends string> = Event extends { readonly type: infer Has extends string }
  ? [Extract<Has, Type>] extends [never]
    ? never
    : Event & { readonly type: Extract<Has, Type> }
  : never;

/** Called for each event; the next one waits until it is done. */
export type EventHandler<Pattern extends EventPattern = '*'> = (event: EventOf<Pattern>) => void | Promise<void>;
