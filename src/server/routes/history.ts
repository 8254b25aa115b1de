/** Past events in the order of the store: page by page from the newest back, so that no request reads everything. */
import { z } from 'zod';
import { matches } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { EventPattern, SignalboxEvent } from '../../runtime/observe/event-types.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { answer, anyObject, maybe } from '../schemas.ts';
import { list, refuseWrongPatterns } from './events.ts';

const MOST_EVENTS = 1_000;
/** How many revisions of the store one page looks through. */
const MOST_REVISIONS = 20_000;

type Place = readonly [revision: number, index: number];

function placeOf(id: string): Place {
  const [revision = '0', index = '0'] = id.split('.');
  return [Number(revision), Number(index)];
}

function compare([one, first]: Place, [other, second]: Place): number {
  return one - other || first - second;
}

export const history: readonly Operation[] = [
  operation({
    ...{ id: 'history', method: 'get', path: '/v1/history', tag: 'events', role: 'viewer' },
    summary: 'Show what happened',
    description:
      `The last events that the store still remembers, in its order, oldest first: a page of at most ${MOST_EVENTS}, out of ` +
      `at most ${MOST_REVISIONS} revisions, so a page may be empty though earlier ones are not. \`next\` is the \`before\` of ` +
      'the earlier page, null if there is none. `isWhole` says whether nothing earlier is missing.',
    query: z.strictObject({
      pattern: list.meta({ description: 'Only these, such as `lock:*` or `lock:deadlock`; repeatable.' }),
      resource: list.meta({ description: 'Only events of these, such as `lock/main`; repeatable.' }),
      since: z.coerce.number().optional().meta({ type: 'number', description: 'Milliseconds since 1970.' }),
      before: maybe(z.string().regex(/^\d{1,15}\.\d{1,6}$/), 'The id of an event; answers only earlier ones.'),
      limit: z.coerce.number().int().min(1).max(MOST_EVENTS).optional().meta({ type: 'integer' }),
    }),
    answers: answer('The events.', { isWhole: z.boolean(), events: z.array(anyObject), next: z.string().nullable() }),
    async run({ box, signal, query: { pattern: patterns = ['*'], resource = [], since = 0, before, limit } }) {
      refuseWrongPatterns(patterns);
      const most = limit ?? MOST_EVENTS;
      const { revision, compacted } = await box.health();
      const end: Place = before === undefined ? [revision + 1, 0] : placeOf(before);
      if (end[0] > revision + 1)
        throw new Failure('invalid', `before is ${shown(before)}; expected the id of an event`);
      const after = Math.max(0, end[0] - 1 - MOST_REVISIONS);
      const found: { readonly place: Place; readonly event: SignalboxEvent }[] = [];
      /** Set by an event older than `since`: the earlier pages contain only such events. */
      let isPast = false;
      let isForgotten = false;
      const over = new AbortController();
      const listener = {
        told(event: SignalboxEvent) {
          if (event.type === 'resync') return void (isForgotten = true);
          const place = placeOf(event.id ?? '');
          if (compare(place, end) >= 0) return;
          if (event.at < since) return void (isPast = true);
          const isWanted = patterns.some((pattern) => matches(pattern, event.type));
          if (isWanted && (resource.length === 0 || resource.includes(event.resource))) found.push({ place, event });
        },
        forgotten: () => undefined,
        caughtUp: () => over.abort(),
      };
      await box.eventsSince(
        patterns.length === 1 && since === 0 ? (patterns[0] as EventPattern) : '*',
        0,
        listener,
        AbortSignal.any([over.signal, signal]),
        { after, until: end[0] },
      );
      signal.throwIfAborted();
      // Tasks have a source of their own, so the two lists are merged into one order.
      found.sort((one, other) => compare(one.place, other.place));
      const page = found.slice(-most);
      const [oldest] = page;
      const next =
        page.length < found.length && oldest !== undefined
          ? (oldest.event.id ?? null)
          : after > compacted && !isPast
            ? `${after + 1}.0`
            : null;
      const isWhole = next === null && !isForgotten && (isPast || compacted === 0);
      return ok({ isWhole, events: page.map(({ event }) => event), next });
    },
  }),
];
