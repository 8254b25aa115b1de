/** The queue of one resource in the order of service, and who waits for whom in it. */
import type { Json, LockMode } from '../../../core/index.ts';
import { inLine } from '../../../core/queue.ts';
import { processOf } from '../../layout.ts';
import { ownCopy } from '../../own-copy.ts';
import type { Anchored, SurveyedSession } from './anchored.ts';
import type { Found } from './found.ts';

/** A request that waits, as a survey shows it. */
export interface SurveyedWaiter {
  /** The id of the request. */
  readonly id: string;
  /** Who waits. */
  readonly holder: string;
  /** The mode, for a lock. */
  readonly mode: LockMode | undefined;
  /** The total weight that it wants, for a semaphore. */
  readonly weight: number | undefined;
  /** Higher goes first. */
  readonly priority: number;
  /** The reason that it gave. */
  readonly reason: string | undefined;
  /** The metadata that it gave. */
  readonly metadata: Json | undefined;
  /** The time when it began to wait, by its own clock. */
  readonly since: number;
  /** 1 is the next to be served. */
  readonly position: number;
  /** It already holds the resource and wants more: a reader wants to be the writer, a semaphore's holder wants more slots. */
  readonly isGrowing: boolean;
  /** The holders in its way, and the request directly ahead of it in the queue. */
  readonly waitsFor: readonly string[];
  /** The process that waits, if it is alive. */
  readonly session: SurveyedSession | undefined;
}

export function queueOf({ record, tickets }: Found, anchored: Anchored): readonly SurveyedWaiter[] {
  const began = new Map(tickets.map(({ request, at }) => [request.id, at]));
  let ahead: readonly string[] = [];
  const requests = tickets.map(({ request }) => request);
  return inLine(requests, record.passed).map((request, place) => {
    const inTheWay = record.holds
      .filter((hold) => !('mode' in hold) || hold.mode === 'exclusive' || request.mode === 'exclusive')
      .map(({ holder }) => holder);
    const waitsFor = [...new Set([...inTheWay, ...ahead])].filter((holder) => holder !== request.holder);
    ahead = [request.holder];
    return {
      id: request.id,
      holder: request.holder,
      mode: request.mode,
      weight: request.weight,
      priority: request.priority,
      reason: request.reason,
      metadata: ownCopy(request.metadata),
      since: began.get(request.id) ?? 0,
      position: place + 1,
      isGrowing: request.upgrades !== undefined || request.grows !== undefined,
      waitsFor,
      session: anchored.session(processOf(request.id)),
    };
  });
}
