/** Detached holds have a lease of their own; any process that knows holder and token can renew and release them. */
import {
  DETACHED_TTL_MS,
  type Hold as Grant,
  isAbout,
  type Json,
  renewWithinMs,
  requestProblem,
  type Token,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { isSameProcess, type ProcessIdentity, tieTo } from '../../host/index.ts';
import { processOf } from '../layout.ts';
import { optionsProblem, type AnyResource } from './resource.ts';
import { NotAcquired } from '../refusal.ts';
import {
  hasPassed,
  isOfOneMachine,
  MARGIN,
  type Sent,
  sentNow,
  type Session,
  sharesOneClock,
} from '../session/session.ts';
import { mayWait } from '../../core/strategy.ts';
import type { AnyOutcome } from '../write/pending-command.ts';
import { type WaitStatus, sessionWithin } from './wait-limits.ts';
import type { ClaimReleaseOutcome, DetachedHold, DetachedOptions, HoldClaim, RenewOutcome } from './terms.ts';

interface OwnLease {
  readonly name: string;
  readonly leaseId: string;
  readonly ttlMs: number;
}

/** A request that was left in the queue: `id` is its ticket. */
export interface Parked {
  readonly id: string;
  readonly status: WaitStatus;
}

export interface Given {
  readonly grant: Grant;
  readonly detached: DetachedHold;
}

export async function acquireDetached(of: AnyResource, options: DetachedOptions<unknown>): Promise<Given> {
  return (await acquired(of, options, undefined)) as Given;
}

/** Does not wait: a request that cannot be granted at once is left in the queue, on its own lease. */
export function acquireOrPark(of: AnyResource, options: DetachedOptions<unknown>): Promise<Given | Parked> {
  return acquired(of, options, (id, status) => ({ id, status }));
}

async function acquired(
  of: AnyResource,
  options: DetachedOptions<unknown>,
  parks: ((id: string, status: WaitStatus) => Parked) | undefined,
): Promise<Given | Parked> {
  const { runtime, resource } = of;
  const problem = optionsProblem(options, 'detached') ?? requestProblem({ holder: options.holder }, ['holder']);
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
  const tie = tieOf(of, options.pid);
  const { session, options: left } = await sessionWithin(runtime, resource, options);
  const sent = sentNow(runtime.clock);
  // The request has a lease of `ticketMs`, and the hold moves to a lease of its own time once it is granted. Otherwise a
  // process that is killed while it waits for a long hold would keep its place in line, and then the hold, for that long.
  const asked = options.ticketMs ?? options.ttlMs ?? DETACHED_TTL_MS;
  const lease = await runtime.leases.make(session, asked, tie);
  const renewing = renewWhileWaiting(of, lease, sent);
  let isAnswered = false;
  try {
    const wait = mayWait(options.strategy) && options.waitMs !== 0;
    let kind = 'acquired';
    const collect = (outcome: AnyOutcome): Grant | undefined => {
      kind = outcome.kind;
      if (outcome.hold !== undefined) runtime.remembered.collected(outcome.hold.id, runtime.lookedAt);
      return outcome.hold;
    };
    const from = placeOf(runtime.options.about);
    const own = { lease: lease.name, ...(options.ttlMs !== undefined && { ttlMs: options.ttlMs }), from };
    const answer = await of.askUnder<Grant | Parked, typeof left>(session, left, wait, collect, own, parks);
    isAnswered = true;
    if ('status' in answer) return answer;
    const grant = answer;
    if (!renewing.isAlive()) throw new NotAcquired(resource, { kind: 'lost' });
    const { holder, token, id } = grant;
    const told = { resource, holder, token, id, outcome: kind as DetachedHold['outcome'] };
    const terms =
      grant.lease === lease.name
        ? await bound(of, session, grant, { ...lease, askedMs: asked }, tie)
        : await heldBefore(of, session, grant, lease.leaseId, tie);
    if (isKnownLost(of, grant)) throw new NotAcquired(resource, { kind: 'lost' });
    return { grant, detached: { ...told, ...terms } };
  } catch (error) {
    // Another process of the same holder may have made the hold shared, and rely on this lease until it renews it.
    if (!isAnswered && error instanceof NotAcquired && error.refusal.kind === 'lost') throw error;
    runtime.remembered.giveUpLease(lease.name);
    await runtime.store.revokeLease(lease.leaseId).catch(() => undefined);
    throw error;
  } finally {
    renewing.cancel();
    runtime.leases.forget(lease.name);
  }
}

/**
 * Asked right before a hold is handed out: the write that granted or changed it may have given it to another holder as well, by
 * force, and a letter that says so may have come while its leases were made and ended.
 */
export function isKnownLost({ runtime }: AnyResource, grant: Grant): boolean {
  return runtime.remembered.wasLost(grant) || runtime.isForsaken(grant);
}

/** What helps a person who finds the hold when its lease has ended. The pid does not: a detached hold outlives its process. */
function placeOf(about: unknown): Json {
  const { host, user, directory } = (about ?? {}) as Readonly<Record<string, unknown>>;
  const known = Object.entries({ host, user, directory }).filter(([, text]) => typeof text === 'string');
  return Object.fromEntries(known) as Json;
}

/** Binds a new hold by the terms of its grant. The resource may allow another time than the lease has: then the hold moves. */
async function bound(
  of: AnyResource,
  session: Session,
  grant: Grant,
  lease: OwnLease & { readonly askedMs: number },
  tie: ProcessIdentity | undefined,
): Promise<Terms> {
  const { runtime } = of;
  const { holder, id, maxHoldMs, ttlMs = DETACHED_TTL_MS } = grant;
  const limit = maxHoldMs === undefined ? undefined : await runtime.leases.make(session, maxHoldMs);
  const other = ttlMs === lease.askedMs ? undefined : await runtime.leases.make(session, ttlMs, tie);
  for (const made of [limit, other]) if (made !== undefined) runtime.leases.forget(made.name);
  const boundFor = (time: number): Terms => ({ ...timesOf({ ttlMs: time, maxHoldMs }), ...endOf(of, tie) });
  if (limit === undefined && other === undefined) return boundFor(lease.ttlMs);
  const leases = { ...(limit && { limit: limit.name }), ...(other && { lease: other.name }) };
  const outcome = await of.submit({ kind: 'extend', holder, id, ...leases });
  if (outcome.kind !== 'refreshed') throw new NotAcquired(of.resource, { kind: 'lost' });
  if (other === undefined) return boundFor(lease.ttlMs);
  await runtime.store.revokeLease(lease.leaseId).catch(() => undefined);
  return boundFor(other.ttlMs);
}

/** The process that the user named; throws if a hold cannot be tied to it. */
function tieOf({ resource }: AnyResource, pid: number | undefined): ProcessIdentity | undefined {
  if (pid === undefined) return undefined;
  const tie = tieTo(pid);
  if (!tie.ok) throw new Failure('invalid', `${resource}: ${tie.problem}`);
  return tie.process;
}

function endOf({ runtime }: AnyResource, tie: ProcessIdentity | undefined): Pick<DetachedHold, 'endsWithPid'> {
  return tie === undefined || runtime.store.endLeaseWith === undefined ? {} : { endsWithPid: tie.pid };
}

/** How long a hold lasts. */
type Terms = Pick<DetachedHold, 'ttlMs' | 'renewWithinMs' | 'maxHoldMs' | 'endsWithPid'>;

/** `maxHoldMs`: from now on. */
interface Times {
  readonly ttlMs: number;
  readonly maxHoldMs?: number | undefined;
}

function timesOf({ ttlMs, maxHoldMs }: Times): Pick<DetachedHold, 'ttlMs' | 'renewWithinMs' | 'maxHoldMs'> {
  return { ttlMs, renewWithinMs: renewWithinMs(ttlMs), ...(maxHoldMs !== undefined && { maxHoldMs }) };
}

/**
 * The holder had the resource already: renews that hold on its own lease, for its full time, and ties it to the process that
 * this request names. If the process that took it was killed before it could bind the hold by its longest time, that time
 * begins now.
 */
async function heldBefore(
  of: AnyResource,
  session: Session,
  grant: Grant,
  leaseId: string,
  tie: ProcessIdentity | undefined,
): Promise<Terms> {
  const before = await of.tieOf(grant.lease);
  // An earlier attempt of this process failed after it was granted, and the end of its lease may still be on its way.
  if (of.runtime.remembered.isGivenUp(grant.lease))
    await moveTo(of, grant, grant.ttlMs ?? DETACHED_TTL_MS, {}, undefined);
  const times = await renewedAndLimited(of, session, grant);
  if (times === undefined) throw new NotAcquired(of.resource, { kind: 'lost' });
  await of.runtime.store.revokeLease(leaseId).catch(() => undefined);
  // A session ends with its own process, whatever was asked for.
  if (tie === undefined || isOfSession(grant.lease) || isSameProcess(before, tie)) {
    return { ...timesOf(times), ...endOf(of, before) };
  }
  const moved = await moveTo(of, grant, times.ttlMs, {}, tie);
  if (!('ttlMs' in moved)) throw new NotAcquired(of.resource, { kind: 'lost' });
  return { ...timesOf({ ...times, ttlMs: moved.ttlMs }), ...endOf(of, tie) };
}

/** Renews a hold, and collects it: until then it has the lease of its ticket. Undefined if the hold is lost. */
async function renewedAndLimited(of: AnyResource, session: Session, grant: Grant): Promise<Times | undefined> {
  const { holder, id, maxHoldMs, limit, ttlMs: wantedMs = DETACHED_TTL_MS } = grant;
  let renewed = await renew(of, grant);
  if (renewed.kind === 'refreshed' && !isAbout(renewed.ttlMs, wantedMs))
    renewed = await extend(of, grant, wantedMs, {});
  if (!('ttlMs' in renewed)) return undefined;
  const { ttlMs } = renewed;
  if (limit !== undefined) {
    const leftMs = await leftOf(of, limit);
    return leftMs === undefined ? undefined : { ttlMs, maxHoldMs: leftMs };
  }
  if (maxHoldMs === undefined || renewed.kind !== 'refreshed') return { ttlMs, maxHoldMs };
  const made = await of.runtime.leases.make(session, maxHoldMs);
  of.runtime.leases.forget(made.name);
  const outcome = await of.submit({ kind: 'extend', holder, id, limit: made.name });
  return outcome.kind === 'refreshed' ? { ttlMs, maxHoldMs } : undefined;
}

/** What is left of a limit, which nobody renews; undefined if it is over. */
async function leftOf(of: AnyResource, limit: string): Promise<number | undefined> {
  const { store, stopped } = of.runtime;
  const id = await of.leaseIdOf(limit);
  const state = id === undefined ? null : await of.untilAnswered(() => store.leaseState(id, stopped));
  return state === null ? undefined : Math.round(state.remainingMs);
}

/**
 * Hands out a grant that was made while its caller was away: renews it, and binds it by the terms of the resource if no process
 * has done so. Undefined if it is lost.
 */
export async function boundAgain(of: AnyResource, session: Session, grant: Grant): Promise<DetachedHold | undefined> {
  const { clock, store } = of.runtime;
  const sent = sentNow(clock);
  const end = endOf(of, await of.tieOf(grant.lease));
  const times = await renewedAndLimited(of, session, grant);
  // The answers may have taken so long that the lease has ended by now.
  if (times === undefined || hasPassed(clock, sent, times.ttlMs * (1 - MARGIN), isOfOneMachine(store)))
    return undefined;
  if (isKnownLost(of, grant)) return undefined;
  const { holder, token, id } = grant;
  return { resource: of.resource, holder, token, id, outcome: 'acquired', ...timesOf(times), ...end };
}

/** `sent`: when the lease was asked for. A grant that arrives after the lease may have ended does not count. */
export function renewWhileWaiting(
  { runtime }: AnyResource,
  { leaseId, ttlMs }: Pick<OwnLease, 'leaseId' | 'ttlMs'>,
  sent: Sent,
): { cancel(): void; isAlive(): boolean } {
  const { clock, store } = runtime;
  let last = sent;
  let timer = clock.timer(ttlMs / 3, renewIt);
  function renewIt(): void {
    const asked = sentNow(clock);
    timer = clock.timer(ttlMs / 3, renewIt);
    store.keepLeaseAlive(leaseId).then(
      (kept) => void (kept !== null && (last = asked)),
      () => undefined,
    );
  }
  return {
    cancel: () => timer.cancel(),
    isAlive: () => !hasPassed(clock, last, ttlMs * (1 - MARGIN), isOfOneMachine(store)),
  };
}

export async function renew(of: AnyResource, claim: HoldClaim): Promise<RenewOutcome> {
  const outcome = await of.submit({ kind: 'heartbeat', ...checked(of, claim) });
  if (outcome.kind === 'lost') return { kind: 'lost' };
  if (outcome.hold === undefined) return { kind: 'not-owner' };
  return kept(of, outcome.hold);
}

/** Only its own process renews a session: renewed by others, it would outlive a process that is stuck. */
async function kept(of: AnyResource, { lease }: Grant): Promise<RenewOutcome> {
  const { store, stopped } = of.runtime;
  const id = await of.leaseIdOf(lease);
  if (id === undefined) return { kind: 'lost' };
  if (isOfSession(lease)) {
    const state = await of.untilAnswered(() => store.leaseState(id, stopped));
    return state === null ? { kind: 'lost' } : { kind: 'attached', ttlMs: state.ttlMs };
  }
  const renewed = await of.untilAnswered(() => store.keepLeaseAlive(id, stopped));
  return renewed === null ? { kind: 'lost' } : refreshed(renewed.ttlMs);
}

export function refreshed(ttlMs: number): Extract<RenewOutcome, { kind: 'refreshed' }> {
  return { kind: 'refreshed', ttlMs, renewWithinMs: renewWithinMs(ttlMs) };
}

export function extend(
  of: AnyResource,
  claim: HoldClaim,
  ttlMs: number,
  limits: { readonly maxHoldMs?: number },
): Promise<RenewOutcome> {
  return moveTo(of, claim, ttlMs, limits, undefined);
}

/** Moves a hold to a lease of another time. `newTie`: the process that it ends with from now on; the same as before, if not given. */
async function moveTo(
  of: AnyResource,
  claim: HoldClaim,
  ttlMs: number,
  { maxHoldMs }: { readonly maxHoldMs?: number },
  newTie: ProcessIdentity | undefined,
): Promise<RenewOutcome> {
  const asked = { ttlMs, ...(maxHoldMs !== undefined && { maxHoldMs }) };
  const problem = requestProblem(asked, ['ttlMs']);
  if (problem !== undefined) throw new Failure('invalid', `${of.resource}: ${problem}`);
  const before = await of.submit({ kind: 'heartbeat', ...asked, ...checked(of, claim) });
  if (before.kind === 'lost') return { kind: 'lost' };
  if (before.hold === undefined) return { kind: 'not-owner' };
  if (isOfSession(before.hold.lease)) return kept(of, before.hold);
  const { ttlMs: allowed = ttlMs, maxHoldMs: allowedInAll } = before as Partial<typeof asked>;
  const { runtime } = of;
  const tie = newTie ?? (await of.tieOf(before.hold.lease));
  const session = await runtime.ready();
  const lease = await runtime.leases.make(session, allowed, tie);
  const limit = allowedInAll === undefined ? undefined : await runtime.leases.make(session, allowedInAll);
  const made = [lease, ...(limit === undefined ? [] : [limit])];
  for (const { name } of made) runtime.leases.forget(name);
  const move = { lease: lease.name, ttlMs: allowed, ...(limit !== undefined && { limit: limit.name }) };
  const outcome = await of.submit({ kind: 'extend', ...checked(of, claim), ...move });
  const isDone = outcome.kind === 'refreshed';
  const ended = isDone ? await endingOf(of, before.hold, limit !== undefined) : made.map(({ leaseId }) => leaseId);
  for (const one of ended) await runtime.store.revokeLease(one).catch(() => undefined);
  if (!isDone) return { kind: outcome.kind === 'lost' ? 'lost' : 'not-owner' };
  return { ...refreshed(lease.ttlMs), ...(allowedInAll !== undefined && { maxHoldMs: allowedInAll }) };
}

export async function release(
  of: AnyResource,
  claim: { readonly holder: string; readonly token?: Token },
): Promise<ClaimReleaseOutcome> {
  const { holder, token } = claim;
  const named =
    token === undefined ? { holder: checkedHolder(of, holder), sole: true } : checked(of, { holder, token });
  const outcome = await of.submit({ kind: 'release', elsewhere: true, ...named });
  if (outcome.kind === 'released') {
    if (outcome.hold !== undefined) measureEnd(of, outcome.hold);
    const leases = outcome.hold === undefined ? [] : await endingOf(of, outcome.hold, false);
    for (const lease of leases) await of.runtime.store.revokeLease(lease).catch(() => undefined);
    return { kind: 'released' };
  }
  if (outcome.kind === 'ambiguous') {
    const { holds } = outcome as unknown as { readonly holds: readonly Grant[] };
    return { kind: 'ambiguous', tokens: holds.map((hold) => hold.token) };
  }
  return { kind: outcome.kind === 'already-free' ? 'already-free' : 'not-owner' };
}

/** Measures how long a hold lasted: since this process handed it out, or by the time in the record if all read one clock. */
function measureEnd({ runtime, resource }: AnyResource, { id, lease, acquiredAt }: Grant): void {
  // Its own process measures it.
  if (isOfSession(lease)) return;
  const { clock, measures, remembered, store } = runtime;
  const at = remembered.collectedAt(id);
  if (at !== undefined) measures.of(resource).held(clock.monotonic() - at);
  else if (sharesOneClock(store)) measures.of(resource).held(Math.max(0, clock.now() - acquiredAt));
}

/** Takes only these two fields, also of a hold object. Without a token, the claim would match any hold of its holder. */
export function checked({ resource }: AnyResource, { holder, token }: HoldClaim): HoldClaim {
  const problem = requestProblem({ holder, token }, ['holder', 'token']);
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
  return { holder, token };
}

function checkedHolder({ resource }: AnyResource, holder: string): string {
  const problem = requestProblem({ holder }, ['holder']);
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
  return holder;
}

/**
 * The leases to end with the hold, or when it moves to others; not a session, whose end would end all other holds of its
 * process. A lease that cannot be read ends by itself, so that is no error.
 */
async function endingOf(of: AnyResource, { lease, limit }: Grant, withLimit: boolean): Promise<readonly string[]> {
  const names = [...(isOfSession(lease) ? [] : [lease]), ...(withLimit && limit !== undefined ? [limit] : [])];
  const idOf = async (name: string): Promise<string | undefined> =>
    of.runtime.leases.takeGivenId(name) ?? (await of.leaseIdOf(name).catch(() => undefined));
  const ids = await Promise.all(names.map(idOf));
  return ids.filter((id) => id !== undefined);
}

/** A lease has the name of its session, or of the request for which it was made. */
export function isOfSession(lease: string): boolean {
  return processOf(lease) === lease;
}
