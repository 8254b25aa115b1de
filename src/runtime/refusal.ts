/** Why a request ended without a hold, or a hold ended without a release, and the errors that say so. */
import { blockerTold, type ClaimRefusal, drainTold } from '../core/index.ts';
import type {
  Cycle,
  Drain,
  Json,
  LockHold as LockGrant,
  LossReason,
  SemaphoreHold as SemaphoreGrant,
  Token,
  TooLarge,
} from '../core/index.ts';
import { Failure, isMarked } from '../failure.ts';

/** What others get to see of a holder. */
export interface HeldBy {
  /** Its name. */
  readonly holder: string;
  /** The token of its grant. */
  readonly token: Token;
  /** When it was granted, by the clock of the process that acquired it. */
  readonly acquiredAt: number;
  /** The reason that it gave. */
  readonly reason?: string;
  /** The metadata that it gave. */
  readonly metadata?: Json;
}

/** Why there is no hold. */
export type Refusal =
  | { readonly kind: 'busy'; readonly holders: readonly LockGrant[] }
  /** `behind`: there is room, but this request waits for more slots and is served first. */
  | {
      readonly kind: 'full';
      readonly free: number;
      readonly holders: readonly SemaphoreGrant[];
      readonly behind?: { readonly holder: string; readonly weight: number };
      /** Nothing at all is granted until this is undone. */
      readonly drained?: Drain;
    }
  /** Its metadata and reason do not fit into the record with those of the other holds. */
  | TooLarge
  /** `holders`: who held it when the time was over; none if that is not known, or if others were to get it first. */
  | { readonly kind: 'timed-out'; readonly waitedMs: number; readonly holders: readonly HeldBy[] }
  | { readonly kind: 'aborted'; readonly reason: unknown }
  /** Each holder in the cycle waits for the next; this request was chosen to give way. */
  | { readonly kind: 'deadlock'; readonly cycle: Cycle }
  | { readonly kind: 'upgrade-conflict'; readonly by: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly capacity: number }
  | { readonly kind: 'capacity-mismatch'; readonly capacity: number; readonly asked: number }
  /** The hold on which it was to rest, or which it was to upgrade, has ended. */
  | { readonly kind: 'lost' }
  /** This process closed its signalbox while the request waited. */
  | { readonly kind: 'closed' }
  /** This process lost its session while the request waited, and the request lost its place in the queue. */
  | { readonly kind: 'session-lost' }
  /** Of a task. */
  | ClaimRefusal
  /** No task can be claimed now by a worker with these capabilities. */
  | { readonly kind: 'none' };

/** The refusals of these kinds, as a `try…` answers them. */
export type Refused<Kind extends Refusal['kind']> = Extract<Refusal, { readonly kind: Kind }> & { readonly ok: false };

const NOT_ACQUIRED = Symbol.for('signalbox.NotAcquired');
const HOLD_LOST = Symbol.for('signalbox.HoldLost');

/** Thrown by what waits (`acquire`, `run`, `claim`) when it ends without a hold. */
export class NotAcquired extends Failure {
  /** What was asked for, such as `lock/main-branch`. */
  readonly resource: string;
  /** Why it was not granted. */
  readonly refusal: Refusal;

  static {
    Object.defineProperty(this.prototype, NOT_ACQUIRED, { value: true });
  }

  /** `refusal` explains itself in the message. */
  constructor(resource: string, refusal: Refusal) {
    super('not-acquired', `${resource}: ${explained(refusal)}`);
    this.name = 'NotAcquired';
    this.resource = resource;
    this.refusal = refusal;
  }

  /** Also true for one of another copy of this package: `signalbox/client` contains one, so that it fits into a page. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    return this === NotAcquired ? isMarked(error, NOT_ACQUIRED) : super[Symbol.hasInstance](error);
  }
}

/** The reason of a hold's abort signal: the hold ended without a release by its holder. */
export class HoldLost extends Failure {
  /** What was held, such as `lock/main-branch`. */
  readonly resource: string;
  /** How it was lost. */
  readonly why: LossReason;
  /** Who took it, if it was taken. */
  readonly by: string | undefined;
  /** Why it was taken, if it was. */
  readonly reason: string | undefined;

  static {
    Object.defineProperty(this.prototype, HOLD_LOST, { value: true });
  }

  /** `loss` explains itself in the message. */
  constructor(resource: string, loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }) {
    super('hold-lost', `${resource}: the hold was lost: ${lossTold(loss)}`);
    this.name = 'HoldLost';
    this.resource = resource;
    this.why = loss.why;
    this.by = loss.by;
    this.reason = loss.reason;
  }

  /** As for `NotAcquired`. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    return this === HoldLost ? isMarked(error, HOLD_LOST) : super[Symbol.hasInstance](error);
  }
}

/** The loss, to pass on to the re-entries of the hold. */
export function lossIn({ why, by, reason }: HoldLost): {
  readonly why: LossReason;
  readonly by?: string;
  readonly reason?: string;
} {
  return { why, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}

function explained(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'busy':
      return `held by ${told(refusal.holders)}`;
    case 'full':
      if (refusal.drained !== undefined) return drainTold(refusal.drained);
      if (refusal.behind !== undefined) return behindTold(refusal.behind, refusal.free);
      return `only ${refusal.free} free; held by ${told(refusal.holders)}`;
    case 'too-large':
      return (
        `with it the record would have ${refusal.bytes} bytes, and at most ${refusal.most} are accepted; ` +
        `ask with less metadata, or when others have released theirs`
      );
    case 'timed-out':
      return `not granted within ${Math.round(refusal.waitedMs)} ms${
        refusal.holders.length === 0 ? '' : `; held by ${told(refusal.holders)}`
      }`;
    case 'aborted':
      return 'the wait was aborted';
    case 'deadlock':
      return `deadlock: ${cycleTold(refusal.cycle)}`;
    case 'upgrade-conflict':
      return `${refusal.by} already waits to become the writer; both waiting would deadlock`;
    case 'impossible':
      return refusal.why;
    case 'capacity-mismatch':
      return `the capacity is ${refusal.capacity}, not ${refusal.asked}; change it with resize, or name the same one everywhere`;
    case 'lost':
      return 'the hold that it was to rest on has ended';
    case 'closed':
      return 'the signalbox was closed while it waited';
    case 'session-lost':
      return 'the store ended the session of this process while it waited';
    case 'missing':
      return 'there is no such task';
    case 'taken':
      return `claimed by ${refusal.owner}${refusal.isLeased ? '' : ', on no lease'}`;
    case 'finished':
      return refusal.status === 'complete' ? 'it is complete' : 'it has failed';
    case 'blocked':
      return `it cannot be claimed yet: ${refusal.by.map(blockerTold).join('; ')}`;
    case 'unfit':
      return `it wants what this worker does not have: ${refusal.lacking.join(', ')}`;
    case 'none':
      return 'there is no task to claim';
  }
}

/** Why a small request does not go past a large one that came before it. */
export function behindTold(
  { holder, weight }: { readonly holder: string; readonly weight: number },
  free: number,
): string {
  return `behind ${holder}, which waits for ${weight} slots and goes first; ${free} free`;
}

function told(holders: readonly HeldBy[]): string {
  const some = holders
    .slice(0, 5)
    .map(({ holder, reason }) => (reason === undefined ? holder : `${holder} (${reason})`));
  const more = holders.length - some.length;
  return (some.length === 0 ? 'nobody, but others wait' : some.join(', ')) + (more > 0 ? ` and ${more} more` : '');
}

/** `a waits for lock/x behind b; b waits for lock/y behind a`. A run inside another is named with the outer one. */
function cycleTold(cycle: Cycle): string {
  return cycle
    .map(({ holder, resource, blockedBy, inside }) => {
      const who = inside === undefined ? holder : `${holder} (inside ${inside})`;
      return `${who} waits for ${resource} behind ${blockedBy}`;
    })
    .join('; ');
}

function lossTold({
  why,
  by,
  reason,
}: {
  readonly why: LossReason;
  readonly by?: string;
  readonly reason?: string;
}): string {
  const who = (by === undefined ? '' : ` by ${by}`) + (reason === undefined || reason === '' ? '' : ` (${reason})`);
  switch (why) {
    case 'expired':
      return 'its lease ended';
    case 'disconnected':
      return 'the store could not be reached in time to renew its lease';
    case 'reclaimed':
      return `its lease had ended, and it was reclaimed${who}`;
    case 'forced':
      return `it was taken${who}`;
    case 'released-elsewhere':
      return 'it was released elsewhere';
  }
}
