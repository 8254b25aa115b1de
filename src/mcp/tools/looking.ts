/** Tools that only read: status, events, members. */
import { z } from 'zod';
import { pause } from '../../clock.ts';
import { allows } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { crewJson, crewOf } from '../../json/member.ts';
import { taskJson } from '../../json/task.ts';
import { time } from '../../json/time.ts';
import type { EventPattern, SignalboxEvent } from '../../runtime/observe/event-types.ts';
import { refuseForeign } from '../../server/acting.ts';
import { refuseWrongPatterns } from '../../server/routes/events.ts';
import { maybe } from '../../server/schemas.ts';
import { boardOf, resourceTold } from '../board.ts';
import { NOTHING_NEXT, refused, type Told, told } from '../result.ts';
import { heldBy, told as heldTold } from '../seat.ts';
import { READS, type Tool, tool, type ToolCall } from '../tool.ts';
import * as field from './fields.ts';

const DEFAULT_MINUTES = 15;
const DEFAULT_EVENTS = 50;
/** The past is complete once no event has arrived for this long. */
const QUIET_MS = 100;
const any = z.looseObject({});

const statusInput = z.strictObject({
  name: field.name.optional().describe('Only this lock or semaphore.'),
  kind: field.kind,
  task: field.task.optional().describe('Only this task, with its data and result.'),
  holder: field.holder.optional().describe('Your holder: the answer says what you hold.'),
});
type Status = z.infer<typeof statusInput>;

const eventsInput = z.strictObject({
  pattern: maybe(z.string().min(1).max(100), "Which events: lock:*, task:completed, … '*' if not given."),
  sinceMinutes: maybe(z.number().positive().max(10_080), `How far to look back; ${DEFAULT_MINUTES}.`),
  limit: maybe(z.int().min(1).max(500), `The newest of them, at most this many; ${DEFAULT_EVENTS}.`),
});
type Events = z.infer<typeof eventsInput>;

export const looking: readonly Tool[] = [
  tool({
    name: 'status',
    title: 'Who holds what',
    description:
      'Who holds which lock and since when and why, who waits, free slots, tasks, pipelines, members: everything, or one lock, ' +
      'semaphore or task. With holder, also what you hold yourself. Look here first when something is busy.',
    role: 'viewer',
    input: statusInput,
    output: { yours: z.array(any), board: any, one: any, task: any },
    annotations: READS,
    renewsHolder: true,
    run: status,
  }),
  tool({
    name: 'events',
    title: 'What happened',
    description:
      'Recent events, oldest first: who acquired, released or lost what; tasks, pipelines and members. For instance to ' +
      'see what happened to a lock while you were away.',
    role: 'viewer',
    input: eventsInput,
    output: { events: z.array(any) },
    annotations: READS,
    run: events,
  }),
  tool({
    name: 'members',
    title: 'Who is alive',
    description: 'The processes that have joined and are alive, what they own, and their coordinator.',
    role: 'viewer',
    input: z.strictObject({}),
    output: { members: z.array(any), coordinator: z.string().nullable() },
    annotations: READS,
    async run(_, { box }) {
      const crew = await crewOf(box);
      const count = crew.members.length;
      const message = count === 0 ? 'No process has joined.' : `${count} joined and alive.`;
      return told('ok', message, NOTHING_NEXT, crewJson(crew) as Readonly<Record<string, unknown>>);
    },
  }),
];

async function status({ name, kind = 'lock', task, holder }: Status, call: ToolCall): Promise<Told> {
  const { box, seat, caller } = call;
  if (holder !== undefined) refuseForeign(caller, holder);
  // Reading renews nothing for a token that may only read.
  const held = allows(caller.role, 'worker') ? (of: string) => seat.touch(of) : (of: string) => heldBy(box, of);
  const yours = holder === undefined ? {} : { yours: (await held(holder)).map(heldTold) };
  if (task !== undefined) {
    const found = await box.tasks.show(task);
    if (found === undefined) {
      return refused('missing', `There is no task ${task}.`, 'Check the id, or publish it with publish.', yours);
    }
    return told('ok', `task/${task} is ${found.status}.`, NOTHING_NEXT, { ...yours, task: taskJson(found) });
  }
  if (name !== undefined) {
    const one = await resourceTold(box, { kind, name });
    if (one === undefined) throw new Failure('corrupt', `${kind}/${name} cannot be read; see signalbox doctor`);
    const isFree = one['isFree'] === true;
    const next = isFree ? 'Call acquire to have it.' : 'Call acquire to get in line.';
    return told('ok', `${kind}/${name} is ${isFree ? 'free' : 'in use'}.`, next, { ...yours, one });
  }
  const board = await boardOf(box);
  const used = (board['locks'] as readonly unknown[]).length;
  const message = used === 0 ? 'No lock is held.' : `${used} lock(s) are held or waited for.`;
  return told('ok', message, NOTHING_NEXT, { ...yours, board });
}

async function events(input: Events, { box, signal, clock }: ToolCall): Promise<Told> {
  const { pattern = '*', sinceMinutes = DEFAULT_MINUTES, limit = DEFAULT_EVENTS } = input;
  refuseWrongPatterns([pattern]);
  const found: SignalboxEvent[] = [];
  let isForgotten = false;
  const enough = new AbortController();
  const over = AbortSignal.any([signal, enough.signal]);
  await box.eventsSince(
    pattern as EventPattern,
    clock.now() - sinceMinutes * 60_000,
    {
      told: (event) => void found.push(event),
      forgotten: () => void (isForgotten = true),
      // Events that are not kept in the store arrive a moment after the others.
      caughtUp: () => void pause(QUIET_MS, over).then(() => enough.abort()),
    },
    over,
  );
  const sorted = found.filter(({ type }) => type !== 'resync').sort((one, other) => one.at - other.at);
  const shown = sorted.slice(-limit).map(({ type, resource, holder, at, ...details }) => ({
    ...{ at: time(at), type, resource, holder },
    ...details,
  }));
  const more = sorted.length > limit ? `, of ${sorted.length}` : '';
  const gone = isForgotten ? ' The store has forgotten older ones.' : '';
  return told('ok', `${shown.length} event(s)${more}.${gone}`, NOTHING_NEXT, { events: shown });
}
