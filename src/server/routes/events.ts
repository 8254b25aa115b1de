/** Events over HTTP, as a stream of server-sent events. */
import { z } from 'zod';
import { patternProblem } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { EventStream, placeIn } from '../event-stream.ts';
import { type Operation, operation } from '../operation.ts';

export const list = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (Array.isArray(value) ? value : [value]))
  .optional();

export function refuseWrongPatterns(patterns: readonly string[]): void {
  for (const pattern of patterns) {
    const problem = patternProblem(pattern, 'pattern');
    if (problem !== undefined) throw new Failure('invalid', problem);
  }
}

export const EVENTS_PATH = '/v1/events';
/** Pages consider a stream dead if it is silent for 10 s. */
const HEARTBEAT_MS = 4_000;
const MOST_WAITING = 1024 * 1024;

export const events: readonly Operation[] = [
  operation({
    ...{ id: 'events', method: 'get', path: EVENTS_PATH, tag: 'events', role: 'viewer' },
    summary: 'Follow events',
    description:
      'Server-sent events, from now on or from where the reader stopped: browsers send `Last-Event-ID` by themselves, other clients may ' +
      'use `since`, a revision of the store or the id of an event. An event `resync` says that some were missed, because the ' +
      'store has forgotten them, was created again or restored, or the reader was too slow: read the state; the stream goes ' +
      'on. A comment every 4 s shows that it is alive. Events that leave nothing in the store (`…:denied`, `guard:*`, `coordinator:changed`) are not sent.',
    query: z.strictObject({
      pattern: list.meta({ description: 'Only these, such as `lock:*` or `task:failed`; repeatable.' }),
      resource: list.meta({ description: 'Only events of these, such as `lock/main`; repeatable.' }),
      since: z.string().optional().describe('After this revision, or after the event with this id.'),
    }),
    answers: { 200: { description: 'A stream of `text/event-stream`.' } },
    async run({ hub, signal, headers, query }) {
      const { pattern: patterns = [] } = query;
      refuseWrongPatterns(patterns);
      const from = headers.get('last-event-id') ?? query.since ?? '';
      const place = from === '' ? undefined : placeIn(from);
      if (from !== '' && place === undefined) {
        const expected = 'expected a revision, or the id of an event such as r812,t790';
        throw new Failure('invalid', `since is ${shown(from)}; ${expected}`);
      }
      const settings = {
        patterns,
        resources: query.resource ?? [],
        heartbeatMs: HEARTBEAT_MS,
        mostWaiting: MOST_WAITING,
      };
      const body = await new EventStream(settings).open(hub, place, signal);
      return new Response(body, {
        headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
      });
    },
  }),
];
