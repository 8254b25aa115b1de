/** Tools to get a lock or slots: acquire, wait. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { Problem } from '../../server/problem.ts';
import { refuseForeign } from '../../server/acting.ts';
import type { HeldBy } from '../../runtime/refusal.ts';
import { placeText, queuePlaceIn, type QueuePlace } from '../place.ts';
import { calling, refused, spoken, type Told, told } from '../result.ts';
import { type Asked, type Granted, type Kind, lookedAt, type Queued } from '../seat.ts';
import { type TaskMade, type Tool, tool, type ToolCall, WRITES } from '../tool.ts';
import { isCutShort, reporting, waitOf } from '../waiting.ts';
import * as field from './fields.ts';

const DEFAULT_WAIT_SECONDS = 300;
/** How often to ask again for a place in line that was lost at once. */
const MOST_TRIES = 3;

const acquireInput = z.strictObject({
  name: field.name,
  kind: field.kind,
  holder: field.newHolder,
  waitSeconds: field.waitSeconds.describe(
    `How long you will wait in line; ${DEFAULT_WAIT_SECONDS} if not given. 0 answers at once.`,
  ),
  reason: field.reason.optional().describe('What you are going to do with it. The agents in line see it.'),
  mode: z.enum(['exclusive', 'shared']).optional().describe('Locks: alone (the default), or with other readers.'),
  slots: z.int().min(1).optional().describe('Semaphores: how many slots you want in all; 1 if not given.'),
  capacity: z.int().min(1).optional().describe('Semaphores: how many slots exist; the first request sets it.'),
  priority: field.priority,
  maxHoldMinutes: field.maxHoldMinutes.describe(
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
      ticket: field.ticket,
      waitSeconds: field.waitSeconds.describe('How long this call may block; at most 45, which is the default.'),
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
  const { waitSeconds = DEFAULT_WAIT_SECONDS, maxHoldMinutes: minutes, kind = 'lock', ...asked } = input;
  const { name } = asked;
  refuseMixed(input, kind);
  const { seat, caller, clock, limits, signal } = call;
  const holder = input.holder ?? call.newHolder();
  refuseForeign(caller, holder);
  const wait = waitOf(call, waitSeconds * 1000);
  const whole = kind === 'lock' ? { mode: input.mode ?? 'exclusive' } : { slots: input.slots ?? 1 };
  const want = { ...asked, ...whole, kind, holder, waits: wait.totalMs > 0 };
  const maxHoldMs = minutes === undefined ? limits.maxHoldMs : minutes * 60_000;
  const since = clock.now();
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const first = await seat.ask({ ...want, maxHoldMs });
    if (first.kind === 'granted') {
      // The client has disconnected, and nobody else knows of this hold.
      if (signal.aborted && !first.isHeldBefore) await seat.release({ kind, name }, first);
      return grantedTold(first);
    }
    if (first.kind === 'gone') continue;
    const place: QueuePlace = {
      ...{ of: 'hold', kind, name, holder, ticket: first.ticket },
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
  return lostTold(`${kind}/${name}`);
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

function refuseMixed({ mode, slots, capacity }: Acquire, kind: Kind): void {
  const [wrong] =
    Object.entries(kind === 'lock' ? { slots, capacity } : { mode }).find(([, value]) => value !== undefined) ?? [];
  if (wrong === undefined) return;
  const other = kind === 'lock' ? 'semaphore' : 'lock';
  const what = `${wrong} is for a ${other}, and this is a ${kind}; leave it out, or pass kind ${other}`;
  throw new Problem('invalid-input', what);
}

function grantedTold(granted: Granted): Told {
  const { resource, holder, token, isHeldBefore, ttlMs, maxHoldMs, mode, slots } = granted;
  const [kind = '', ...rest] = resource.split('/');
  const claim = { ...(kind !== 'lock' && { kind }), name: rest.join('/'), holder, token };
  const lasts = [
    ...(ttlMs === undefined ? [] : [`call something with your holder at least every ${spoken(ttlMs)}`]),
    ...(maxHoldMs === undefined ? [] : [`give it back within ${spoken(maxHoldMs)}, or extend it with renew`]),
  ].join('; ');
  const had = isHeldBefore ? `You had ${resource} already` : `You have ${resource}`;
  const message = `${had} as ${holder}.${lasts === '' ? '' : ` To keep it: ${lasts}.`}`;
  const details = { resource, holder, token, ...given({ mode, slots }), ttlMs, maxHoldMs };
  return told('granted', message, `Do the work, then call ${calling('release', claim)}`, details);
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
  const { kind, name, holder } = place;
  const { position = null, holders } = queued;
  const ticket = placeText(place);
  const next = `Go on waiting: call ${calling('wait', { ticket })} within a minute.`;
  const details = { resource: `${kind}/${name}`, holder, ticket, position, holders: shownHolders(holders) };
  return told('waiting', lineTold(place, queued), next, details);
}

export function lineTold(place: QueuePlace, { position, holders }: Queued): string {
  const line = position === undefined ? 'in line' : `number ${position} in line`;
  return `You are ${line} for ${place.kind}/${place.name}, held by ${holdersTold(holders)}.`;
}

async function positionTold({ box }: ToolCall, place: QueuePlace): Promise<string> {
  const { holds, waiting } = await lookedAt(box, place);
  const position = waiting.find(({ holder }) => holder === place.holder)?.position;
  return lineTold(place, { kind: 'waiting', ticket: '', position, holders: holds as readonly HeldBy[] });
}

function holdersTold(holders: readonly HeldBy[]): string {
  if (holders.length === 0) return 'others who wait before you';
  return holders.map(({ holder, reason }) => (reason === undefined ? holder : `${holder} (${reason})`)).join(', ');
}

function shownHolders(holders: readonly HeldBy[]): readonly object[] {
  return holders.map(({ holder, acquiredAt, reason }) => ({
    ...{ holder, since: new Date(acquiredAt).toISOString() },
    ...given({ reason }),
  }));
}
