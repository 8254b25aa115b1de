/** Reads past events from a server, then follows new ones. */
import type { RemoteSignalbox } from '../../client/connect.ts';
import type { EventPattern, SignalboxEvent } from '../../runtime/observe/event-types.ts';
import type { PastListener } from '../../runtime/observe/past-events.ts';
import { tell } from '../output.ts';

/** The most events that a server answers. */
const MOST = 1_000;

/** Reads all events that the store remembers in one answer; a stream goes on after the last of them. */
export async function eventsSince(
  client: RemoteSignalbox,
  pattern: EventPattern,
  at: number,
  listener: PastListener,
  signal: AbortSignal,
): Promise<void> {
  const { revision } = await client.health();
  const { isWhole, events } = await client.history({ patterns: [pattern], since: at });
  if (events.length >= MOST) tell(`signalbox: a server sends only the last ${MOST} events; older ones are left out`);
  else if (!isWhole) listener.forgotten();
  for (const event of events) listener.told(event);
  // Skips events that were delivered before. The two sources of events have separate orders, so each has its own place.
  const [ofTasks, ofRecords] = [events.filter(isOfTask), events.filter((event) => !isOfTask(event))];
  const since = `r${lastOf(ofRecords, revision)},t${lastOf(ofTasks, revision)}`;
  let isOpen = false;
  const onOpen = (): void => {
    if (!isOpen) listener.caughtUp();
    isOpen = true;
  };
  for await (const event of client.events(pattern, { since, signal, onOpen })) {
    if (event.type === 'resync') listener.forgotten();
    else listener.told(event);
  }
}

function isOfTask({ type }: SignalboxEvent): boolean {
  return type.startsWith('task:');
}

/**
 * The place of the last event: all events of its revision were delivered. Without an event, the place that was read before the
 * past.
 */
function lastOf(events: readonly SignalboxEvent[], otherwise: number): string {
  const revisions = events.map(({ id = '' }) => Number(id.split('.')[0]));
  return String(revisions.length === 0 ? otherwise : Math.max(...revisions));
}
