/** The witness over HTTP: read the record, follow it, verify it, seal it, prove an entry, enter something. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { Failure, shown } from '../../failure.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { WitnessEntry } from '../../core/index.ts';
import { chainPath, entryKey } from '../../runtime/layout.ts';
import type { WitnessFilter } from '../../runtime/witness/filter.ts';
import {
  type PlacedEntry,
  type PlacedTrim,
  TRIMMED_BEFORE_READ,
  type WatchPlace,
  WITNESS_IS_OFF,
} from '../../runtime/witness/log.ts';
import { actorOf } from '../acting.ts';
import { entryStream, lineStream, type SentEntry } from '../entry-stream.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, anyObject, holder, maybe, name } from '../schemas.ts';
import { shared } from '../shared.ts';
import { list } from './events.ts';

const tag = 'witness';
const DEFAULT_PAGE = 100;
const RESYNC = { type: 'resync', why: TRIMMED_BEFORE_READ };

const time = (what: string): z.ZodType<number | undefined> =>
  z.coerce
    .number()
    .min(0)
    .optional()
    .meta({ type: 'number', description: `${what}, in milliseconds since 1970.` });
const filter = {
  resource: z.string().max(300).optional().describe('A resource such as `lock/main`, or all of a kind: `lock/*`.'),
  actor: z.string().max(300).optional().describe('Who asked: the holder, the member, the user.'),
  event: z.string().max(300).optional().describe('An event such as `lock:released`, or all of a kind: `task:*`.'),
  trace: z.string().max(300).optional().describe('The trace id.'),
  component: z.string().max(300).optional().describe('What asked: `lock`, `cli`, …'),
  since: time('The earliest time'),
  until: time('The latest time'),
};
const entry = z.looseObject({ resource: z.string(), seq: z.int(), time: z.number(), hash: z.string() });

export const witness: readonly Operation[] = [
  operation({
    ...{ id: 'witness.show', method: 'get', path: '/v1/witness', tag, role: 'viewer' },
    summary: 'Whether the witness is on, and how large its record is',
    description: 'The record has an entry for every change, in chains of hashes that show tampering.',
    answers: answer('The record as a whole.', z.looseObject({ isOn: z.boolean() })),
    async run({ box }) {
      const isOn = await box.witness.isOn();
      return ok({ isOn, ...(isOn && { size: await box.witness.size(), warnings: await box.witness.warnings() }) });
    },
  }),
  operation({
    ...{ id: 'witness.entries', method: 'get', path: '/v1/witness/entries', tag, role: 'viewer' },
    summary: 'Read the record',
    description:
      'The matching entries, chain by chain, each chain in order, in pages; `next` begins the next page. One resource is read ' +
      'fastest: other filters look at every entry. `isTrimmed` says that entries right after the previous ' +
      'page, or the whole chain that it ended in, were trimmed meanwhile: begin again to miss nothing.',
    query: z.strictObject({
      ...filter,
      limit: z.coerce.number().int().min(1).max(1000).optional().meta({ type: 'integer' }),
      after: maybe(z.string().regex(/^\d{1,15}:.{1,300}$/s), 'The `next` of the previous page.'),
    }),
    answers: answer('The entries.', {
      entries: z.array(entry),
      next: z.string().nullable(),
      isTrimmed: z.boolean(),
      revision: z.int(),
    }),
    async run({ box, signal, query: { limit = DEFAULT_PAGE, after, ...rest } }) {
      const wanted = given(rest) as WitnessFilter;
      const place = after === undefined ? undefined : placeIn(after);
      const { found, isTrimmed } = await entriesAfter(box, wanted, place, limit + 1, signal);
      const page = found.slice(0, limit);
      const next = found.length > limit ? placeOf(page.at(-1) as WitnessEntry) : null;
      // Read last, so that every entry of the page was written before it.
      const { revision } = await box.health();
      return ok({ entries: page, next, isTrimmed, revision });
    },
  }),
  operation({
    ...{ id: 'witness.watch', method: 'get', path: '/v1/witness/watch', tag, role: 'viewer' },
    summary: 'Follow the record',
    description:
      'Server-sent events, an `entry` for each match: first the `last` existing ones, then each new one as it is ' +
      'written, without a gap. Each has an id: after a lost connection, send the last one as `Last-Event-ID`, as browsers do by ' +
      'themselves, and the stream goes on after it. An event `resync` says that entries may be missing here, because they were ' +
      'trimmed before this reader had them; it continues with those that exist.',
    query: z.strictObject({
      ...filter,
      last: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .meta({ type: 'integer', description: 'Begin with this many existing entries; 0 if not given.' }),
    }),
    answers: { 200: { description: 'A stream of `text/event-stream`.' } },
    async run({ box, signal, headers, query: { last = 0, ...rest } }) {
      const from = headers.get('last-event-id');
      const { revision } = await box.health();
      // Also a new reader begins at a place, because entries may be written before the watch has begun.
      const after = from === null ? { revision } : watchPlaceIn(from, revision);
      // Who has an entry has had the last ones.
      const how = { after, last: after.key === undefined ? last : 0 };
      const begin = (over: AbortSignal): AsyncIterable<SentEntry> =>
        sent(box.witness.watchPlaces(given(rest) as WitnessFilter, { ...how, signal: over }));
      return entryStream({ id: watchPlaceTold(after), event: 'entry' }, begin, signal);
    },
  }),
  operation({
    ...{ id: 'witness.verify', method: 'get', path: '/v1/witness/verify', tag, role: 'viewer' },
    summary: 'Verify the record',
    description:
      'Reads the whole record. `isIntact` says whether it is unchanged; `finding` names the first problem. Entries written after ' +
      '`revision` may be missing. If you do not trust the server, export the record and verify it yourself.',
    answers: answer('What was found.', z.looseObject({ isIntact: z.boolean(), entries: z.int(), revision: z.int() })),
    async run({ box }) {
      const { revision, found } = await verified(box);
      return ok({ isIntact: found.finding === undefined, revision, ...found });
    },
  }),
  operation({
    ...{ id: 'witness.export', method: 'get', path: '/v1/witness/export', tag, role: 'viewer' },
    summary: 'Export the record',
    description:
      'All of it, or with `resource` the entries of some resources and all checkpoints, as JSON Lines: `signalbox witness verify ' +
      'FILE` checks it on any machine, without trust in the server. The last line says that it is whole; a stream that ends ' +
      'without it broke off, or the record was trimmed meanwhile: begin again.',
    query: z.strictObject({
      resource: list.meta({ description: 'Only the entries of these, such as `lock/main`; repeatable.' }),
    }),
    answers: { 200: { description: 'The lines.', type: 'application/jsonl', isStream: true } },
    problems: ['witness-off'],
    async run({ box, signal, query: { resource: only } }) {
      await refuseUnlessOn(box);
      return lineStream(box.witness.export(given({ only })), signal);
    },
  }),
  operation({
    ...{ id: 'witness.checkpoints', method: 'get', path: '/v1/witness/checkpoints', tag, role: 'viewer' },
    summary: 'List the checkpoints',
    description: 'From the oldest to the newest.',
    answers: answer('The checkpoints.', { checkpoints: z.array(anyObject) }),
    run: async ({ box }) => ok({ checkpoints: await box.witness.checkpoints() }),
  }),
  operation({
    ...{ id: 'witness.checkpoint', method: 'post', path: '/v1/witness/checkpoints', tag, role: 'administrator' },
    summary: 'Seal the record up to now',
    description: 'Verifies the record first, and does not seal one that fails. Keep the answer somewhere else.',
    body: z.strictObject({}),
    answers: answer('The checkpoint.', anyObject, 201),
    problems: ['witness-off'],
    async run({ box }) {
      await refuseUnlessOn(box);
      return ok(await box.witness.checkpoint(), 201);
    },
  }),
  operation({
    ...{ id: 'witness.proof', method: 'get', path: '/v1/witness/proof', tag, role: 'viewer' },
    summary: 'Prove an entry',
    description:
      'Proves to a reader who has only a checkpoint that the entry is in the record. Needs a checkpoint made after the entry.',
    query: z.strictObject({
      resource: z.string().min(1).max(300),
      seq: z.coerce.number().int().min(1).meta({ type: 'integer' }),
    }),
    answers: answer('The proof.', anyObject),
    problems: ['not-found'],
    run: async ({ box, query }) => ok(await box.witness.proof(query)),
  }),
  operation({
    ...{ id: 'witness.record', method: 'post', path: '/v1/witness/entries', tag, role: 'worker' },
    summary: 'Enter something of your own',
    description: 'Goes into the chain of its component.',
    body: z.strictObject({
      component: name,
      event: z.string().min(1).max(200).describe('What happened, such as `deploy:started`.'),
      actor: holder.optional().describe('Who did it; the token, if not given.'),
      traceId: z.string().min(1).max(200).optional(),
      payload: z.unknown().optional().describe('Any JSON, at most 64 KiB; over 1 KiB only its hash is entered.'),
      sensitive: z.boolean().optional().describe('Enters only the hash of the payload.'),
    }),
    answers: answer('The entry.', entry, 201),
    problems: ['witness-off'],
    async run({ box, caller, body: { actor, ...own } }) {
      const who = actorOf(caller, actor);
      await refuseUnlessOn(box);
      return ok(await box.witness.record({ ...(given(own) as typeof own), actor: who } as never), 201);
    },
  }),
];

async function entriesAfter(
  box: Signalbox,
  wanted: WitnessFilter,
  place: Place | undefined,
  most: number,
  signal: AbortSignal,
): Promise<{ readonly found: readonly WitnessEntry[]; readonly isTrimmed: boolean }> {
  const first = async (entries: AsyncIterable<WitnessEntry>, last: string): Promise<WitnessEntry[]> => {
    const found: WitnessEntry[] = [];
    for await (const one of entries) {
      if (keyOf(one) > last) found.push(one);
      if (found.length === most) break;
    }
    return found;
  };
  if (place === undefined) return { found: await first(box.witness.entries(wanted, { signal }), ''), isTrimmed: false };
  try {
    return { found: await first(box.witness.entries(wanted, { after: place, signal }), ''), isTrimmed: false };
  } catch (error) {
    if (!Failure.is(error, 'compacted')) throw error;
    return { found: await first(box.witness.entries(wanted, { signal }), keyOf(place)), isTrimmed: true };
  }
}

/** An entry, by its chain and its number. */
type Place = Pick<WitnessEntry, 'resource' | 'seq'>;

/** The number comes first, because a resource may contain colons. */
function placeOf({ resource, seq }: WitnessEntry): string {
  return `${seq}:${resource}`;
}

function placeIn(text: string): Place {
  const colon = text.indexOf(':');
  return { resource: text.slice(colon + 1), seq: Number(text.slice(0, colon)) };
}

async function* sent(placed: AsyncIterable<PlacedEntry | PlacedTrim>): AsyncGenerator<SentEntry, void> {
  for await (const { entry, place } of placed) {
    const id = watchPlaceTold(place);
    yield entry === undefined ? { id, event: 'resync', data: RESYNC } : { id, data: entry };
  }
}

/** `812`: everything up to revision 812. `812:witness/lock/main/000000000007`: of revision 812 what comes up to this key. */
function watchPlaceTold({ revision, key }: WatchPlace): string {
  return key === undefined ? `${revision}` : `${revision}:${key}`;
}

/** `newest`: the revision of the store. A reader who has more was reading another store, which this one has replaced. */
function watchPlaceIn(text: string, newest: number): WatchPlace {
  const [, revision, key] = /^(\d{1,15})(?::(.{1,20000}))?$/.exec(text) ?? [];
  if (revision === undefined)
    throw new Failure('invalid', `Last-Event-ID is ${shown(text)}; expected the id of an entry of this stream`);
  if (Number(revision) > newest) return { revision: 0 };
  return { revision: Number(revision), ...given({ key }) };
}

/** Entries come in the order of their keys. */
function keyOf({ resource, seq }: Place): string {
  return entryKey(chainPath(resource), seq);
}

/**
 * Reading the whole record is expensive, so requests that arrive meanwhile share one answer. Every entry up to `revision` was read; a
 * later one may be missing.
 */
const verified = shared(async (box) => {
  const { revision } = await box.health();
  return { revision, found: await box.witness.verify() };
});

async function refuseUnlessOn(box: Signalbox): Promise<void> {
  if (await box.witness.isOn()) return;
  throw new Problem('witness-off', WITNESS_IS_OFF);
}
