/** Locks and semaphores: acquire, wait, renew, release, break_lock. */
import { z } from 'zod';
import { Problem } from '../../server/problem.ts';
import { actorOf, refuseForeign } from '../../server/acting.ts';
import type { HeldBy } from '../../runtime/refusal.ts';
import { placeIn, placeText, type QueuePlace } from '../place.ts';
import { NOTHING_NEXT, refused, type Told, told } from '../result.ts';
import { type Asked, type Granted, type Kind, type Queued, resourceOf } from '../seat.ts';
import { TAKES, type TaskMade, type Tool, tool, type ToolCall, WRITES, WRITES_ONCE } from '../tool.ts';
import { reporting, waitOf } from '../waiting.ts';
import {
  calling,
  holder,
  kind,
  maxHoldMinutes,
  name,
  newHolder,
  priority,
  reason,
  spoken,
  ticket,
  token,
  waitSeconds,
} from './fields.ts';

const DEFAULT_WAIT_SECONDS = 300;
/** A place that is lost at once is asked for again, so often. */
const MOST_TRIES = 3;

export const holds: readonly Tool[] = [
  tool({
    name: 'acquire',
    title: 'Acquire a lock or slots',
    description:
      'Take a named lock (or slots of a semaphore) before you touch something that others share: pushing to a branch, a ' +
      'deployment, a port, a directory. Status granted: you have it; keep holder and token, and call release when you are ' +
      'done. Status waiting: you are in line; call wait with the ticket. Status busy: others have it, and you are not in ' +
      'line. Never work around a lock that you did not get.',
    role: 'worker',
    input: z.strictObject({
      name,
      kind,
      holder: newHolder,
      waitSeconds: waitSeconds.describe(
        `How long you are ready to wait in line; ${DEFAULT_WAIT_SECONDS} if not given. 0: answer at once.`,
      ),
      reason: reason.optional().describe('What you are going to do with it. Those who wait see it.'),
      mode: z.enum(['exclusive', 'shared']).optional().describe('Locks: alone (the default), or with other readers.'),
      slots: z.int().min(1).optional().describe('Semaphores: how many slots in all; 1.'),
      capacity: z.int().min(1).optional().describe('Semaphores: how many slots there are; the first to ask says so.'),
      priority,
      maxHoldMinutes: maxHoldMinutes.describe('Give it back after this time at the latest; 30. renew extends it.'),
    }),
    annotations: WRITES,
    run: (input, call) => acquire(input, call),
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
      const place = placeIn(input.ticket);
      if (place.of !== 'hold') throw notForWait();
      refuseForeign(call.caller, place.holder);
      const blockMs = Math.min(call.limits.blockMs, (input.waitSeconds ?? Number.POSITIVE_INFINITY) * 1000);
      return goOn(call, place, blockMs, true);
    },
  }),
  tool({
    name: 'renew',
    title: 'Keep what you hold',
    description:
      'Check that you still hold something and keep it: of one lock or semaphore by name and token, or of everything that ' +
      'the holder has. With maxHoldMinutes it may be held that much longer from now on. Status lost: stop, another may have it.',
    role: 'worker',
    input: z.strictObject({
      holder,
      name: name.optional(),
      kind,
      token: token.optional(),
      maxHoldMinutes: maxHoldMinutes.describe(
        'Extend the limit: from now on it may be held for this long. Needs name.',
      ),
    }),
    output: { holds: z.array(z.object({ resource: z.string(), token: z.int() })), resource: z.string() },
    annotations: WRITES_ONCE,
    renewsHolder: true,
    run: (input, call) => renew(input, call),
  }),
  tool({
    name: 'release',
    title: 'Give it back',
    description:
      'Give back a lock or slots as soon as you are done, so that the next in line can go on; or give up waiting, by the ticket.',
    role: 'worker',
    input: z.strictObject({
      name: name.optional(),
      kind,
      holder: holder.optional(),
      token: token.optional(),
      ticket: ticket.optional().describe('Give up waiting instead: the ticket that acquire answered.'),
    }),
    output: { resource: z.string() },
    annotations: WRITES_ONCE,
    run: (input, call) => release(input, call),
  }),
  tool({
    name: 'break_lock',
    title: 'Take a lock away',
    description:
      'Take a lock or semaphore away from everybody who holds it. Only if your user told you to: a holder that still works ' +
      'loses it in the middle. A dead holder needs no break: its lock becomes free by itself.',
    role: 'administrator',
    input: z.strictObject({
      name,
      kind,
      reason: reason.describe('Why; the holders that lose it see this, and it is recorded.'),
      holder: holder.optional().describe('Who takes it away; recorded.'),
    }),
    output: { resource: z.string(), broken: z.int() },
    annotations: TAKES,
    async run({ name: called, kind: which = 'lock', reason: why, holder: who }, { box, caller }) {
      const one = resourceOf(box, { kind: which, name: called });
      const { resource } = one;
      const { broken } = await one.break({ holder: actorOf(caller, who), reason: why });
      if (broken === 0)
        return told('already-free', `${resource} is not held; nothing was changed.`, NOTHING_NEXT, { resource });
      return told('broken', `${resource} was taken from ${broken} holder(s).`, 'Call acquire if you need it.', {
        ...{ resource, broken },
      });
    },
  }),
];

interface Acquire {
  readonly name: string;
  readonly kind?: Kind | undefined;
  readonly holder?: string | undefined;
  readonly waitSeconds?: number | undefined;
  readonly reason?: string | undefined;
  readonly mode?: 'exclusive' | 'shared' | undefined;
  readonly slots?: number | undefined;
  readonly capacity?: number | undefined;
  readonly priority?: number | undefined;
  readonly maxHoldMinutes?: number | undefined;
}

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
      // The client is gone, and nobody else knows of this hold.
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
      // An earlier call of the same holder, at whose place this one waits, may have been given up meanwhile.
      if ('task' in answer || answer.status !== 'lost' || signal.aborted) return answer;
    } finally {
      // The client does not know its ticket, so nobody would ever ask for it.
      if (signal.aborted) await seat.withdraw(place);
    }
  }
  return lostTold(`${which}/${input.name}`);
}

/** Waits on, for as long as this call may block. */
async function goOn(call: ToolCall, place: QueuePlace, leftMs: number, goesOn: boolean): Promise<Told | TaskMade> {
  const { seat, signal, takesTasks, clock } = call;
  const blockMs = Math.max(0, leftMs);
  const answer = await reporting(call, blockMs, () => positionTold(call, place), seat.collect(place, blockMs, signal));
  if (answer.kind !== 'waiting') return collectedTold(place, answer);
  if (!goesOn) {
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
    `${resource}: your place in line is gone. Nobody asked for it in time, or you gave it up.`,
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

interface Renew {
  readonly holder: string;
  readonly name?: string | undefined;
  readonly kind?: Kind | undefined;
  readonly token?: number | undefined;
  readonly maxHoldMinutes?: number | undefined;
}

async function renew(input: Renew, { seat, caller }: ToolCall): Promise<Told> {
  const { holder: who, name: called, kind: which = 'lock', token: number, maxHoldMinutes: minutes } = input;
  refuseForeign(caller, who);
  const held = await seat.touch(who);
  if (called === undefined) {
    if (minutes !== undefined) throw new Problem('invalid-input', 'maxHoldMinutes needs name: it extends one hold');
    if (held.length === 0)
      return refused('lost', `${who} holds nothing.`, 'Call acquire if you need something.', { holds: held });
    const all = held.map(({ resource }) => resource).join(', ');
    return told('renewed', `${who} still holds ${all}.`, 'Go on, and release each when you are done.', { holds: held });
  }
  const resource = `${which}/${called}`;
  const known = number ?? held.find((one) => one.resource === resource)?.token;
  if (known === undefined) return refused('lost', `${who} does not hold ${resource} any more.`, STOP, { resource });
  const maxHoldMs = minutes === undefined ? undefined : minutes * 60_000;
  const outcome = await seat.renew({ kind: which, name: called }, { holder: who, token: known }, maxHoldMs);
  if (outcome.kind === 'lost') {
    return refused('lost', `${resource} is lost${outcome.why === undefined ? '' : `: ${outcome.why}`}.`, STOP, {
      resource,
    });
  }
  if (outcome.kind === 'not-owner') return notOwnerTold(resource);
  const limit = outcome.maxHoldMs === undefined ? '' : ` It may be held for ${spoken(outcome.maxHoldMs)} from now on.`;
  return told('renewed', `${who} still holds ${resource}.${limit}`, 'Go on, and release it when you are done.', {
    resource,
  });
}

const STOP = 'Stop the work that needed it: another may have it by now. Call acquire to ask again.';

function notOwnerTold(resource: string): Told {
  return refused(
    'not-owner',
    `${resource}: this holder and token do not have it. Nothing was changed.`,
    'If you held it, it was lost: stop the work that needed it. Call status to see who has it.',
    { resource },
  );
}

interface Release {
  readonly name?: string | undefined;
  readonly kind?: Kind | undefined;
  readonly holder?: string | undefined;
  readonly token?: number | undefined;
  readonly ticket?: string | undefined;
}

async function release(input: Release, { seat, caller }: ToolCall): Promise<Told> {
  const { name: called, kind: which = 'lock', holder: who, token: number, ticket: text } = input;
  if (text !== undefined) {
    if (called !== undefined || number !== undefined) {
      throw new Problem(
        'invalid-input',
        'ticket gives up waiting, name and token give back a hold; pass one or the other',
      );
    }
    const place = placeIn(text);
    if (place.of !== 'hold') throw notForWait();
    refuseForeign(caller, place.holder);
    const resource = `${place.kind}/${place.name}`;
    const wasThere = await seat.withdraw(place);
    const message = wasThere ? `You left the line for ${resource}.` : `You were not in line for ${resource} any more.`;
    return told('withdrawn', message, NOTHING_NEXT, { resource });
  }
  if (called === undefined || who === undefined) {
    throw new Problem(
      'invalid-input',
      'pass name and holder (and the token) to give back a hold, or ticket to give up waiting',
    );
  }
  refuseForeign(caller, who);
  const resource = `${which}/${called}`;
  const outcome = await seat.release(
    { kind: which, name: called },
    { holder: who, ...(number !== undefined && { token: number }) },
  );
  switch (outcome.kind) {
    case 'released':
      return told('released', `You gave back ${resource}.`, NOTHING_NEXT, { resource });
    case 'not-owner':
      return notOwnerTold(resource);
    case 'already-free':
      return told(
        'already-free',
        `${resource} is free. You gave it back before, or you lost it meanwhile.`,
        'If you did not release it yourself, check the work that you did under it.',
        { resource },
      );
    case 'ambiguous':
      return refused(
        'ambiguous',
        `${who} has ${resource} ${outcome.tokens.length} times.`,
        'Call release with one of these tokens.',
        {
          ...{ resource, tokens: outcome.tokens },
        },
      );
  }
}

function notForWait(): Problem {
  return new Problem(
    'invalid-input',
    'this is the id of a task that waits for something else; it is not a ticket for a lock',
  );
}
