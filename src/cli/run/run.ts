/**
 * One run, from its request to its exit code.
 *
 *     acquire all or nothing ── child at its gate ── its note written ── leftovers of others ended ── let go
 *        └─ a signal: leave                                                                            │
 *     release ── nothing of it left ── (stragglers: grace, TERM, KILL) ── it has ended  ◀──────────────┤
 *                       └───────────── TERM, grace, KILL ◀── a hold was lost ◀─────────────────────────┘
 */
import { BytesLost, GatedChild, originalArguments, randomHex, type Text } from '../../host/index.ts';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { asTold, childEnvironment, type OuterHolds, outerHolds, told } from '../../runtime/processes/environment.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import type { Ground } from '../../runtime/processes/children.ts';
import { clearLeftovers } from '../../runtime/processes/leftovers.ts';
import { storeUrl, witnessIn } from '../../runtime/location/location.ts';
import { open } from '../../runtime/open.ts';
import { type HoldLost, NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { spoken } from '../../core/index.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { anyOf } from '../interrupt.ts';
import { openInTime, WaitLimit } from '../opening.ts';
import { quoted } from '../pipeline/words.ts';
import { isServerUrl, notThroughServer } from '../remote/url.ts';
import { holdersOf } from '../guard/own-holders.ts';
import { acquire, type AcquireOptions } from './acquire.ts';
import { attended, NOT_STARTED } from './attended.ts';
import { givenDescriptors, stillOpen } from './descriptors.ts';
import type { RunEnded } from './ended.ts';
import { limitTold } from './limit-told.ts';
import { findProgram } from './program.ts';
import type { RunRequest } from './request.ts';
import type { Blocking, Guarding } from './guarding.ts';
import type { Signals } from './signals.ts';
import { leaveStreamsAlone } from './streams.ts';
import { type Attention, type Releasable, supervise } from './supervise.ts';
import type { Voice } from './voice.ts';
import type { Want } from '../../runtime/holds/wants.ts';
import { goneTold, ticketsIn } from '../ticket.ts';
import { atOnceOrAfterTheDead, lookAtWait, refusalTold, resourceOf } from '../waiting.ts';
import { acquireWithTicket, holderOf } from './with-ticket.ts';

export async function run(
  request: RunRequest,
  env: NodeJS.ProcessEnv,
  guarding: Guarding | undefined,
): Promise<RunEnded> {
  leaveStreamsAlone();
  const descriptors = givenDescriptors();
  const argv = originalArgv(request.argv);
  const program = findProgram(argv[0], env);
  return attended(request.tells, async ({ signals, voice, sharesTerminal }) => {
    const url = storeUrl(request.store, env);
    if (request.ticket !== undefined && isServerUrl(url)) {
      const why = 'what it waits for becomes a hold of its process';
      throw notThroughServer('run --ticket', url, why, 'keep the place with signalbox lock acquire --ticket');
    }
    const limit = new WaitLimit(request.waitMs);
    const witness = witnessIn(request.store, env);
    const box = await openInTime({ url, leaving: signals.leaving, limit }, (signal) =>
      opened(url, request.ttlMs, witness, signal),
    );
    try {
      const outer = outerHolds(env, url);
      let tickets = request.ticket === undefined ? undefined : idsIn(request.ticket);
      const known = tickets?.length ? await holderOf(box, request.wants, tickets) : undefined;
      if (tickets?.length && known === undefined) {
        voice.say(goneTold(request.wants.map(resourceOf).join(', ')));
        tickets = [];
      }
      const holder = request.holder ?? known ?? `run:${hostname()}:${process.pid}:${randomHex(3)}`;
      for (;;) {
        const holds = await acquired(box, request, holder, outer, signals, voice, limit.leftMs, tickets);
        tickets = tickets && [];
        const mark = randomHex(8);
        const held = holds.map(told);
        const environment = childEnvironment(env, { url, holder: holderAmong(held, holder), mark, held, outer });
        const gate = { leads: !sharesTerminal, mark, given: stillOpen(descriptors) };
        const child = await GatedChild.start(program, argv, environment, gate);
        // The guards' commands get the environment of the command, so that a run inside one of them re-enters our holds.
        const guarded = async (signal: AbortSignal): Promise<Blocking | undefined> => {
          const own = [...new Set([...holds.map((hold) => hold.holder), ...(await holdersOf(box, outer))])];
          return guarding?.check(box, { own, env: environment, signal }, voice);
        };
        const ended = await begun(box, request, holds, outer, child, signals, voice, limit.signal, guarding && guarded);
        if (!('guard' in ended)) return ended;
        // Others must be able to get what the guard waits for.
        await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
        const around = { own: await holdersOf(box, outer), env, signal: signals.leaving };
        await guarding?.wait(box, ended, around, request, limit.leftMs, voice);
      }
    } finally {
      await box.close();
    }
  });
}

async function acquired(
  box: Signalbox,
  request: RunRequest,
  holder: string,
  outer: OuterHolds,
  signals: Signals,
  voice: Voice,
  waitMs: number | undefined,
  tickets: readonly string[] | undefined,
): Promise<readonly Hold[]> {
  const { wants, argv, priority, reason } = request;
  const holders = new Set([holder, ...Object.values(outer).map((hold) => hold.holder)]);
  const look = lookAtWait(box, wants, (waiter) => holders.has(waiter));
  const rest =
    tickets === undefined
      ? undefined
      : (some: readonly Want[], asked: AcquireOptions) =>
          acquireWithTicket(box, some, { ...asked, tickets, tell: voice.say });
  try {
    const asked: AcquireOptions = {
      holder,
      // Not the arguments, which may contain secrets.
      metadata: { command: basename(argv[0]), pid: process.pid, host: hostname() },
      signal: signals.leaving,
      // Outer runs wait for us. Without this, two runs that each want what the other's outer run holds would
      // wait for ever.
      ...(Object.keys(outer).length > 0 && { within: [...new Set(Object.values(outer).map((hold) => hold.holder))] }),
      onWaiting: () => voice.waiting(look),
      ...given({ waitMs, priority, reason }),
    };
    if (tickets !== undefined || waitMs !== 0) return await acquire(box, wants, outer, asked, rest);
    return await atOnceOrAfterTheDead(box, wants, (ms) => acquire(box, wants, outer, { ...asked, waitMs: ms }));
  } catch (error) {
    throw await toldToPeople(box, error, request, holder);
  } finally {
    voice.done();
  }
}

/** Translates the library's names into the options of the command line. */
async function toldToPeople(box: Signalbox, error: unknown, request: RunRequest, holder: string): Promise<unknown> {
  const told = await refusalTold(box, request.wants, holder, error, request.waitMs);
  if (!(told instanceof NotAcquired)) return told;
  const { resource, refusal } = told;
  const name = resource.slice(resource.indexOf('/') + 1);
  if (refusal.kind === 'capacity-mismatch') {
    const { capacity, asked } = refusal;
    const ways = `write --sem ${name}, or change it: signalbox sem resize ${quoted(name)} --capacity ${asked}`;
    const what = `${resource}: the capacity is ${capacity}, not ${asked}; ${ways}`;
    return new CliExit(EXIT.usage, what, { resource, refusal });
  }
  if (refusal.kind !== 'impossible' || refusal.capacity > 0) return told;
  return new CliExit(EXIT.usage, `${told.message}: --sem ${name}=WEIGHT/CAPACITY`);
}

/** What a command works under. */
export type Held = Ground & Releasable & { readonly signal: AbortSignal };

/** Checks the guards; aborts with the signal. */
type Guarded = (signal: AbortSignal) => Promise<Blocking | undefined>;

/** Lets the child go, once its note is written and nothing of an earlier holder runs. */
export async function begun(
  box: Signalbox,
  request: Pick<RunRequest, 'graceMs' | 'onLost' | 'ttlMs' | 'waitMs'>,
  holds: readonly Held[],
  outer: OuterHolds,
  child: GatedChild,
  signals: Pick<Signals, 'left' | 'leaving'> & Attention,
  voice: Voice,
  late: AbortSignal | undefined,
  guarded: Guarded | undefined,
): Promise<RunEnded | Blocking> {
  const { graceMs, onLost } = request;
  const since = systemClock.monotonic();
  try {
    const lost = AbortSignal.any(holds.map((hold) => hold.signal));
    const terms = { graceMs, outlivesHold: onLost === 'warn' };
    const entered = await box.children.enter(holds, child.offspring, terms, asTold(outer));
    if (entered.kind === 'lost') throw tooLate(entered.resource);
    try {
      const cut = anyOf(lost, signals.leaving, late);
      // With --no-wait the guards are still checked, once.
      const inTime = request.waitMs === 0 ? undefined : late;
      const judging = anyOf(lost, signals.leaving, inTime);
      // Without a limit it would wait for ever for a process that it may not end; the lease's time is the limit.
      const unendableMs = request.waitMs === undefined ? request.ttlMs : Number.POSITIVE_INFINITY;
      const clearing = { children: box.children, graceMs, unendableMs, tell: voice.say, cut };
      const [left] = await clearLeftovers(entered, clearing);
      if (signals.left !== undefined) throw new Failure('closed', 'left');
      if (left !== undefined && late?.aborted === true)
        throw new CliExit(EXIT.notAcquired, `${left}; given up${within(request)}`);
      const open = left === undefined ? await guarded?.(judging).catch(unless(judging)) : undefined;
      if (signals.left !== undefined) throw new Failure('closed', 'left');
      if (open === 'aborted' && inTime?.aborted === true) {
        const what = `the guards were not checked${within(request)}; the command was not started`;
        throw new CliExit(EXIT.notAcquired, what);
      }
      if (open !== undefined && open !== 'aborted') return open;
      // The last check before the child starts. If we are stopped here, the next run finds the note and ends the child.
      const gone = holds.find((hold) => !hold.isValid);
      if (gone !== undefined) throw tooLate(gone.resource);
      if (left !== undefined)
        throw new CliExit(EXIT.notAcquired, `${left}; given up, and nothing was started beside it`);
      const explain = (loss: HoldLost): Promise<string | undefined> => limitTold(box, loss, since);
      return await supervise({ terms: { ...request, explain }, child, signals, voice, lost }, holds);
    } finally {
      if (!child.isLeft) await box.children.forget(entered.keys).catch(() => undefined);
    }
  } finally {
    await child.abandon();
  }
}

/** The abort of the check is no failure of its own. */
function unless(aborted: AbortSignal): (error: unknown) => 'aborted' {
  return (error) => {
    if (!aborted.aborted) throw error;
    return 'aborted';
  };
}

function within({ waitMs = 0 }: Pick<RunRequest, 'waitMs'>): string {
  return waitMs === 0 ? '' : ` within ${spoken(waitMs)}`;
}

/** The command has not begun, so this is not 76: trying again is safe. */
function tooLate(resource: string): CliExit {
  return new CliExit(EXIT.notAcquired, `${resource}: the hold was lost before the command could begin`);
}

/** An argument that is not UTF-8 reaches the command byte by byte, or the command does not begin. */
export function originalArgv(argv: readonly [string, ...string[]]): readonly [Text, ...Text[]] {
  try {
    const [name = argv[0], ...rest] = originalArguments(argv);
    return [name, ...rest];
  } catch (error) {
    if (!(error instanceof BytesLost)) throw error;
    throw new CliExit(NOT_STARTED, `${argv[0]}: cannot be started: ${error.message}`);
  }
}

export async function opened(
  url: string,
  sessionTtlMs: number,
  witness: boolean | undefined,
  signal: AbortSignal,
): Promise<Signalbox> {
  if (isServerUrl(url)) return (await import('../remote/open.ts')).openRemote(url, { ttlMs: sessionTtlMs });
  return open(url, { sessionTtlMs, signal, ...given({ witness }) });
}

/** If outer runs hold everything, theirs is the holder. */
function holderAmong(held: readonly ReturnType<typeof told>[], own: string): string {
  return held.some(({ holder }) => holder === own) ? own : (held[0]?.holder ?? own);
}

/** None for a new ticket. */
function idsIn(ticket: true | string): readonly string[] {
  return ticket === true ? [] : ticketsIn(ticket);
}
