/**
 * Events from a time in the past on, as far as the store still has its history, and then new events as they happen. Unlike a
 * subscription it drops nothing: its listener runs on the path of the watch, so it must neither throw nor wait.
 */
import { whenAborted } from '../../clock.ts';
import { matches } from '../../core/index.ts';
import { type Changes, readPages, type Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import type { EventPattern, SignalboxEvent } from './event-types.ts';
import { eventReader, type EventSource, publicEvents, type RecordEvent, SOURCE_RANGES } from './events.ts';

export interface PastListener {
  told(event: SignalboxEvent): void;
  /** The store has forgotten what happened before this event, which may be later than the time that was asked for. */
  forgotten(): void;
  /** All that is still stored has been delivered. What left nothing behind, such as a member that left, may follow. */
  caughtUp(): void;
}

/** A part of the history: what came after the one revision, up to the other. */
export interface PastWindow {
  readonly after?: Revision;
  readonly until?: Revision;
}

/** How many keys one read asks for to find the newest. */
const KEYS_AT_ONCE = 2_000;

/** Events of tasks come in an order of their own. Ends when the signal aborts. */
export async function followSince(
  runtime: Runtime,
  pattern: EventPattern,
  at: number,
  listener: PastListener,
  signal: AbortSignal,
  { after = 0, until = Infinity }: PastWindow = {},
): Promise<void> {
  const { store, clock } = runtime;
  const { compacted } = await store.health(signal);
  const begin = Math.max(compacted, after);
  let isOldest = compacted > 0 && begin === compacted;
  const tell = (revision: Revision, events: readonly RecordEvent[]): void => {
    if (revision > until) return;
    for (const event of publicEvents(revision, events)) {
      if (isOldest && event.at >= at) listener.forgotten();
      isOldest = false;
      if (event.at >= at && matches(pattern, event.type)) listener.told(event);
    }
  };
  const resync = async (): Promise<Revision> => {
    listener.told({ type: 'resync', resource: '*', holder: '', at: clock.now() });
    return (await store.health(signal)).revision;
  };
  /** Resolves when the newest of what is stored now has been delivered. */
  const from = async (source: EventSource): Promise<void> => {
    const range = SOURCE_RANGES[source];
    const eventsOf = eventReader(source);
    let newest = begin;
    for await (const { pairs } of readPages(store, range, KEYS_AT_ONCE, signal)) {
      newest = pairs.reduce((last, { modRevision }) => Math.max(last, modRevision), newest);
    }
    const last = Math.min(newest, until);
    let caughtUp = (): void => undefined;
    const isDelivered = new Promise<void>((resolve) => (caughtUp = resolve));
    const changes = (some: Changes): void => {
      tell(some.revision, eventsOf(some, clock.now()));
      if (some.revision >= last) caughtUp();
    };
    await follow(store, clock, range, { changes, resync }, signal, undefined, begin);
    if (last > begin) await isDelivered;
  };
  const delivered: Promise<void>[] = [];
  if (!pattern.startsWith('task:')) delivered.push(from('records'));
  if (/^(task:|\*)/.test(pattern)) delivered.push(from('tasks'));
  await Promise.race([Promise.all(delivered), whenAborted(signal)]);
  if (signal.aborted) return;
  listener.caughtUp();
  await whenAborted(signal);
}
