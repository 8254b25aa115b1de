/** Tools to get a lock or slots: acquire, wait. */
import { z } from 'zod';
import { Problem } from '../../server/problem.ts';
import { refuseForeign } from '../../server/acting.ts';
import type { HeldBy } from '../../runtime/refusal.ts';
import { placeText, queuePlaceIn, type QueuePlace } from '../place.ts';
import { refused, type Told, told } from '../result.ts';
import type { Asked, Granted, Kind, Queued } from '../seat.ts';
import { type TaskMade, type Tool, tool, type ToolCall, WRITES } from '../tool.ts';
import { isCutShort, reporting, waitOf } from '../waiting.ts';
import {
  calling,
  kind,
  maxHoldMinutes,
  name,
  newHolder,
  priority,
  reason,
  spoken,
  ticket,
  waitSeconds,
} from './fields.ts';

const DEFAULT_WAIT_SECONDS = 300;
/** How often to ask again for a place in line that was lost at once. */
const MOST_TRIES = 3;

const acquireInput = z.strictObject({
  name,
  kind,
  holder: newHolder,
  waitSeconds: waitSeconds.describe(
    `How long you will wait in line; ${DEFAULT_WAIT_SECONDS} if not given. 0 answers at once.`,
  ),
  reason: reason.optional().describe('What you are going to do with it. The agents in line see it.'),
  mode: z.enum(['exclusive', 'shared']).optional().describe('Locks: alone (the default), or with other readers.'),
  slots: z.int().min(1).optional().describe('Semaphores: how many slots you want in all; 1 if not given.'),
  capacity: z.int().min(1).optional().describe('Semaphores: how many slots exist; the first request sets it.'),
  priority,
  maxHoldMinutes: maxHoldMinutes.describe(
    'Release it after this time at the latest; 30 if not given. renew extends it.',
  ),
});
type Acquire = z.infer<typeof acquireInput>;

export const acquiring: readonly Tool[] = [
  tool({
    name: 'acquire',
    title: 'Acquire a lock or slots',
    description:
      'Take a named lock (or slots of a semaphore) before you touch something that others share: pushing to a branch, a ' +
      'deployment, a port, a directory. Status granted: you have it; keep holder and token, and call release when you are ' +
      'done. Status waiting: you are in line; call wait with the ticket. Status busy: others have it, and you are not in ' +
      'line. Never work around a lock that you did not get.',
    role: 'worker',
    input: acquireInput,
    annotations: WRITES,
    run: acquire,
  }),
  tool({
    name: 'wait',
    title: 'Go on waiting',
    description:
      'Go on waiting with the ticket that acquire answered. It keeps your place in line as long as you call this within a ' +
      'minute after each answer. Blocks for up to 45 seconds; status granted or waiting.',
    role: 'worker',
    input: z.strictObject({
      ticket,
      waitSeconds: waitSeconds.describe('How long this call may block; at most 45, which is the default.'),
    }),
    annotations: WRITES,
    async run(input, call) {
      const place = queuePlaceIn(input.ticket);
      refuseForeign(call.caller, place.holder);
      const blockMs = Math.min(call.limits.blockMs, (input.waitSeconds ?? Number.POSITIVE_INFINITY) * 1000);
      return goOn(call, place, blockMs, true);
    },
  }),
];

async function acquire(input: Acquire, call: ToolCall): Promise<Told | TaskMade> {
  const {
    waitSeconds: seconds = DEFAULT_WAIT_SECONDS,
    maxHoldMinutes: minutes,
    kind: which = 'lock',
    ...asked
  } = input;
  refuseMixed(input, which);
  const { seat, caller, clock, limits, signal } = call;
  const who = input.holder ?? call.newHolder();
  refuseForeign(caller, who);
  const wait = waitOf(call, seconds * 1000);
  const whole = which === 'lock' ? { mode: input.mode ?? 'exclusive' } : { slots: input.slots ?? 1 };
  const want = { ...asked, ...whole, kind: which, holder: who, waits: wait.totalMs > 0 };
  const maxHoldMs = minutes === undefined ? limits.maxHoldMs : minutes * 60_000;
  const since = clock.now();
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const first = await seat.ask({ ...want, maxHoldMs });
    if (first.kind === 'granted') {
      // The client has disconnected, and nobody else knows of this hold.
      if (signal.aborted && !first.isHeldBefore) await seat.release({ kind: which, name: input.name }, first);
      return grantedTold(first);
    }
    if (first.kind === 'gone') continue;
    const place: QueuePlace = {
      ...{ of: 'hold', kind: which, name: input.name, holder: who, ticket: first.ticket },
      ...{ since, until: since + wait.totalMs },
    };
    try {
      const answer = await goOn(call, place, wait.blockMs - (clock.now() - since), wait.goesOn);
      // This call waits at the place of an earlier call by the same holder, which may have given up meanwhile.
      if ('task' in answer || answer.status !== 'lost' || signal.aborted) return answer;
    } finally {
      // The client does not know its ticket, so it could never ask for it.
      if (signal.aborted) await seat.withdraw(place);
    }
  }
  return lostTold(`${which}/${input.name}`);
}

/** Goes on waiting as long as this call may block. */
async function goOn(call: ToolCall, place: QueuePlace, leftMs: number, goesOn: boolean): Promise<Told | TaskMade> {
  const { seat, signal, stopping, takesTasks, clock } = call;
  const blockMs = Math.max(0, leftMs);
  const collecting = seat.collect(place, blockMs, signal, stopping);
  const answer = await reporting(call, blockMs, () => positionTold(call, place), collecting);
  if (answer.kind !== 'waiting') return collectedTold(place, answer);
  if (!goesOn && !isCutShort(call)) {
    await seat.withdraw(place);
    return busyTold(place, answer, clock.now() - place.since);
  }
  if (takesTasks) return { task: place, message: lineTold(place, answer) };
  return waitingTold(place, answer);
}

export function collectedTold(place: QueuePlace, answer: Exclude<Asked, Queued>): Told {
  return answer.kind === 'granted' ? grantedTold(answer) : lostTold(`${place.kind}/${place.name}`);
}

function refuseMixed({ mode, slots, capacity }: Acquire, which: Kind): void {
  const wrong = which === 'lock' ? { slots, capacity } : { mode };
  const [field] = Object.entries(wrong).find(([, value]) => value !== undefined) ?? [];
  if (field === undefined) return;
  const other = which === 'lock' ? 'semaphore' : 'lock';
  throw new Problem(
    'invalid-input',
    `${field} is for a ${other}, and this is a ${which}; leave it out, or pass kind ${other}`,
  );
}

function grantedTold(granted: Granted): Told {
  const { kind: _, resource, holder: who, token: number, isHeldBefore, ttlMs, maxHoldMs, mode, slots } = granted;
  const [which = '', ...rest] = resource.split('/');
  const claim = { ...(which !== 'lock' && { kind: which }), name: rest.join('/'), holder: who, token: number };
  const lasts = [
    ...(ttlMs === undefined ? [] : [`call something with your holder at least every ${spoken(ttlMs)}`]),
    ...(maxHoldMs === undefined ? [] : [`give it back within ${spoken(maxHoldMs)}, or extend it with renew`]),
  ].join('; ');
  const had = isHeldBefore ? 'You had' : 'You have';
  return told(
    'granted',
    `${had} ${resource}${isHeldBefore ? ' already' : ''} as ${who}.${lasts === '' ? '' : ` To keep it: ${lasts}.`}`,
    `Do the work, then call ${calling('release', claim)}`,
    {
      resource,
      holder: who,
      token: number,
      ...(mode !== undefined && { mode }),
      ...(slots !== undefined && { slots }),
      ttlMs,
      maxHoldMs,
    },
  );
}

function lostTold(resource: string): Told {
  return refused(
    'lost',
    `${resource}: your place in line is gone. You did not call wait in time, or you gave it up.`,
    'You do not hold it. Call acquire to get in line again.',
    { resource },
  );
}

function busyTold(place: QueuePlace, { holders }: Queued, waitedMs: number): Told {
  const resource = `${place.kind}/${place.name}`;
  return told(
    'busy',
    `${resource} is held by ${holdersTold(holders)}; you waited ${spoken(waitedMs)} and left the line.`,
    'Do something else first, or call acquire with a larger waitSeconds.',
    { resource, holders: shownHolders(holders) },
  );
}

function waitingTold(place: QueuePlace, queued: Queued): Told {
  const text = placeText(place);
  return told(
    'waiting',
    lineTold(place, queued),
    `Go on waiting: call ${calling('wait', { ticket: text })} within a minute.`,
    {
      ...{
        resource: `${place.kind}/${place.name}`,
        holder: place.holder,
        ticket: text,
        position: queued.position ?? null,
      },
      holders: shownHolders(queued.holders),
    },
  );
}

export function lineTold(place: QueuePlace, { position, holders }: Queued): string {
  const line = position === undefined ? 'in line' : `number ${position} in line`;
  return `You are ${line} for ${place.kind}/${place.name}, held by ${holdersTold(holders)}.`;
}

async function positionTold({ box }: ToolCall, place: QueuePlace): Promise<string> {
  const { kind: which, name: called } = place;
  const { locks, semaphores } = await box.survey({ resource: { kind: which, name: called } });
  const [one] = [...locks, ...semaphores];
  const position = one?.waiting.find((waiter) => waiter.holder === place.holder)?.position;
  return lineTold(place, { kind: 'waiting', ticket: '', position, holders: (one?.holds ?? []) as readonly HeldBy[] });
}

function holdersTold(holders: readonly HeldBy[]): string {
  if (holders.length === 0) return 'others who wait before you';
  return holders.map(({ holder: who, reason: why }) => (why === undefined ? who : `${who} (${why})`)).join(', ');
}

function shownHolders(holders: readonly HeldBy[]): readonly object[] {
  return holders.map(({ holder: who, acquiredAt, reason: why }) => ({
    ...{ holder: who, since: new Date(acquiredAt).toISOString() },
    ...(why !== undefined && { reason: why }),
  }));
}
