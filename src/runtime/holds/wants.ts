/** What is wanted of a lock or a semaphore, among several: checked, asked for, and made a hold. */
import { type LockMode, nameProblem, type Request, requestProblem } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { optionsProblem, requestFields } from './resource.ts';
import type { Runtime } from '../runtime.ts';
import type { Hold, KeptHold } from './hold.ts';
import { KeptLockHold, Lock, LockHold, refuseReader } from './lock.ts';
import { KeptSemaphoreHold, Semaphore, SemaphoreHold } from './semaphore.ts';
import type { WaitOptions } from './wait-limits.ts';
import type { Session } from '../session/session.ts';
import { type Coordinated, lockMachine, type Machine, semaphoreMachine } from '../../core/machines.ts';
import type { AnyCommand, AnyOutcome } from '../write/pending-command.ts';
import type { RequestOptions } from './terms.ts';

/** The most resources in one transaction, which has room for 128 comparisons: two for each, and some for stale holds. */
export const MOST_WANTS = 50;

/** One of the resources to acquire together. */
export type Want =
  | { readonly lock: string; readonly mode?: LockMode }
  | { readonly semaphore: string; readonly weight?: number; readonly capacity?: number };

/** A want that was checked, with the machine that decides it. */
export interface Piece {
  readonly want: Want;
  readonly resource: string;
  readonly machine: Machine<Coordinated, AnyCommand, AnyOutcome>;
  readonly name: string;
}

export type AcquireCommand = Request & AnyCommand;

export function piecesOf(wants: readonly Want[], options: object): readonly Piece[] {
  const problem = optionsProblem(options, 'together');
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

export function commandOf(piece: Piece, session: Session, id: string, options: RequestOptions): AcquireCommand {
  const fields = requestFields(id, session.id, options);
  if ('lock' in piece.want) {
    return { kind: 'acquire', ...fields, mode: piece.want.mode ?? 'exclusive', wait: false } as AcquireCommand;
  }
  const { weight = 1, capacity } = piece.want;
  return {
    kind: 'acquire',
    ...fields,
    weight,
    wait: false,
    ...(capacity !== undefined && { capacity }),
  } as AcquireCommand;
}

/** The hold of a grant, as the runtime keeps it. */
export function keptHold(runtime: Runtime, want: Want, outcome: AnyOutcome, process: string): KeptHold {
  const reentry = ['extended', 'upgraded', 'already-held', 'increased'].includes(outcome.kind);
  const writer = runtime.writerFor('lock' in want ? `lock/${want.lock}` : `semaphore/${want.semaphore}`);
  const made = 'lock' in want ? KeptLockHold : KeptSemaphoreHold;
  const hold = new made(runtime, writer, outcome.hold as never, process, reentry);
  if ('lock' in want) refuseReader(hold as KeptLockHold, want.mode);
  return hold;
}

/** The same, as its user gets it. */
export function shownHold(kept: KeptHold): Hold {
  return kept instanceof KeptLockHold ? new LockHold(kept) : new SemaphoreHold(kept as KeptSemaphoreHold);
}

/** Acquires one of them by itself. */
export function acquireWanted(runtime: Runtime, want: Want, options: RequestOptions & WaitOptions): Promise<Hold> {
  if ('lock' in want) {
    const { lock, mode } = want;
    return new Lock(runtime, lock).acquire({ ...options, ...(mode !== undefined && { mode }) });
  }
  const { semaphore, weight = 1, capacity } = want;
  return new Semaphore(runtime, semaphore, capacity).acquire({ ...options, weight });
}
