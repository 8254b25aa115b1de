/**
 * The Tasks extension turns a wait into a task that the client polls, so that it costs the model no turn. The id of a task
 * carries the whole request, so this server keeps nothing, and any server of the store can answer.
 */
import { createHash } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { allows, type Json } from '../core/index.ts';
import { refuseForeign } from '../server/acting.ts';
import { Problem } from '../server/problem.ts';
import { type ClaimPlace, LONGEST_WAIT_MS, type Place, placeIn, placeText, type QueuePlace } from './place.ts';
import { failureTold, NOTHING_NEXT, resultOf, type Told, told } from './result.ts';
import type { ClaimedTask } from './seat.ts';
import type { Desk, TaskMade } from './tool.ts';
import { collectedTold, lineTold } from './tools/acquire.ts';
import { checkPlace } from './tools/guard.ts';
import { claimedTold, isOver, noneTold } from './tools/work.ts';

export const TASKS = 'io.modelcontextprotocol/tasks';

/** The state of a wait: a result, or what it still waits for. */
type Progress = { readonly done: Told } | { readonly waits: string };

/** While one server claims a task for a poll, another poll waits at most this long before it considers that claim failed. */
const CLAIMING_MS = 30_000;

/** The answer to a tool call that goes on as a task. */
export function taskResult(desk: Desk, { task, message }: TaskMade): Readonly<Record<string, unknown>> {
  return { resultType: 'task', ...taskOf(desk, task), status: 'working', statusMessage: message };
}

export function addTasks({ server }: McpServer, desk: Desk): void {
  const params = z.looseObject({ taskId: z.string() });
  server.setRequestHandler('tasks/get', { params }, async ({ taskId }, ctx) => {
    refuseUnlessTaken(ctx);
    const place = placeNamed(desk, taskId);
    const found = await answered(async () => {
      await keep(desk, place, 'polled');
      return progressOf(desk, place, ctx.mcpReq.signal);
    });
    const task = taskOf(desk, place);
    if ('waits' in found) return { ...task, status: 'working', statusMessage: found.waits };
    // The holder gets its full time from this answer on. If the renewal fails, the next call makes up for it.
    await keep(desk, place, 'touch').catch(() => undefined);
    const status = found.done.status === 'cancelled' ? 'cancelled' : 'completed';
    return { ...task, status, statusMessage: found.done.message, result: resultOf(found.done) };
  });
  server.setRequestHandler('tasks/cancel', { params }, async ({ taskId }, ctx) => {
    refuseUnlessTaken(ctx);
    const place = placeNamed(desk, taskId);
    await cancel(desk, place);
    await keep(desk, place, 'touch').catch(() => undefined);
    return {};
  });
  // No task asks its client for anything.
  server.setRequestHandler('tasks/update', { params }, ({ taskId }, ctx) => {
    refuseUnlessTaken(ctx);
    placeNamed(desk, taskId);
    return {};
  });
}

/** Polling a task counts as a call of its holder, so it renews the holder's holds. */
async function keep({ seat, caller }: Desk, { holder }: Place, how: 'polled' | 'touch'): Promise<void> {
  if (holder !== undefined && allows(caller.role, 'worker') && seat.needsTouch(holder)) await seat[how](holder);
}

/** Leaves a finished task as it is, and the hold or claim that it got. */
async function cancel({ box, seat, clock, limits }: Desk, place: Place): Promise<void> {
  if (place.of === 'hold') return seat.giveUp(place);
  if (place.of === 'guard') return;
  const done = told('cancelled', 'You gave up waiting for a task.', NOTHING_NEXT, { holder: place.holder });
  // The store must not keep the answer for longer than any wait lasts, whatever time the id names.
  const keptMs = Math.min(Math.max(0, place.until - clock.now()), LONGEST_WAIT_MS) + limits.windowMs;
  await box.once.settle(...onceOf(place), { status: 200, body: done as unknown as Json }, keptMs);
}

/** The key of a claim by task, and its content. */
function onceOf(place: ClaimPlace): readonly [string, string] {
  const key = createHash('sha256')
    .update(`mcp-claim\n${placeText(place)}`)
    .digest('hex');
  return [key, key];
}

/** Whether this request itself says that its client has the Tasks extension; earlier requests do not count. */
export function takesTasks({ mcpReq: { envelope } }: ServerContext): boolean {
  const told = (envelope ?? {}) as { readonly [CLIENT_CAPABILITIES_META_KEY]?: { readonly extensions?: object } };
  const { extensions } = told[CLIENT_CAPABILITIES_META_KEY] ?? {};
  return extensions !== undefined && TASKS in extensions;
}

function refuseUnlessTaken(ctx: ServerContext): void {
  if (takesTasks(ctx)) return;
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
}

function taskOf({ clock, limits }: Desk, place: Place): Readonly<Record<string, unknown>> {
  const { since, until } = place;
  return {
    taskId: placeText(place),
    createdAt: new Date(since).toISOString(),
    lastUpdatedAt: new Date(clock.now()).toISOString(),
    ttlMs: Math.max(0, Math.round(until - since)) + limits.windowMs,
    pollIntervalMs: limits.pollMs,
  };
}

function placeNamed({ caller }: Desk, taskId: string): Place {
  try {
    const place = placeIn(taskId);
    const who = place.holder;
    if (who !== undefined) refuseForeign(caller, who);
    const needed = place.of === 'guard' ? 'viewer' : 'worker';
    if (!allows(caller.role, needed)) throw new Problem('wrong-role', `this task needs the role ${needed}`);
    return place;
  } catch (error) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, failureTold(error).message);
  }
}

/** Turns a refusal into a result. */
async function answered(look: () => Promise<Progress>): Promise<Progress> {
  try {
    return await look();
  } catch (error) {
    const { status } = failureTold(error);
    // The client will poll again.
    if (status === 'unavailable' || status === 'closed') return { waits: 'the store cannot be reached; trying again' };
    return { done: failureTold(error) };
  }
}

async function progressOf(desk: Desk, place: Place, signal: AbortSignal): Promise<Progress> {
  const isLate = desk.clock.now() >= place.until;
  switch (place.of) {
    case 'hold':
      return holdProgress(desk, place, isLate, signal);
    case 'claim':
      return claimProgress(desk, place, isLate, signal);
    case 'guard': {
      const found = await checkPlace(place, desk, signal);
      const isDone = found.status === 'passed' || isLate || found.details?.['outlook'] === 'never';
      return isDone ? { done: found } : { waits: found.message };
    }
  }
}

async function holdProgress(
  { seat }: Desk,
  place: QueuePlace,
  isLate: boolean,
  signal: AbortSignal,
): Promise<Progress> {
  const resource = `${place.kind}/${place.name}`;
  const found = await seat.collect(place, 0, signal);
  if (found.kind !== 'waiting') return { done: collectedTold(place, found) };
  if (!isLate) return { waits: lineTold(place, found) };
  await seat.withdraw(place);
  const message = `${resource} was not free in the time that you wanted to wait; you left the line.`;
  return { done: told('busy', message, 'Do something else first, or call acquire again.', { resource }) };
}

/** Keeps the first answer for later polls, because a poll after a lost answer must not claim a second task. */
async function claimProgress(desk: Desk, place: ClaimPlace, isLate: boolean, signal: AbortSignal): Promise<Progress> {
  const { box, seat, limits } = desk;
  const { holder, task, capabilities } = place;
  const waits = { waits: 'There is no task yet that fits.' };
  const begun = await box.once.begin(...onceOf(place), CLAIMING_MS);
  if (begun.kind === 'answered') return { done: begun.answer.body as unknown as Told };
  if (begun.kind !== 'first') return waits;
  let claimed: ClaimedTask;
  try {
    claimed = await seat.claim({ holder, task, capabilities, waitMs: 0, signal });
  } catch (error) {
    await begun.failed();
    if (!isOver(error)) throw error;
    return isLate ? { done: noneTold({ holder, task, capabilities }, false) } : waits;
  }
  const done = claimedTold(claimed);
  const body = JSON.parse(JSON.stringify(done)) as Json;
  const giveBack = () => box.tasks.release(claimed.task, { holder, token: claimed.token });
  try {
    if (!signal.aborted && (await begun.done({ status: 200, body }, limits.ttlMs))) return { done };
  } catch (error) {
    // The answer may have been kept after all, and the next poll would return it, so the claim must stand.
    if (!(await begun.failed())) return waits;
    await giveBack();
    throw error;
  }
  // The client is gone or has cancelled the task, so another worker gets it.
  await begun.failed();
  await giveBack();
  return waits;
}
