/**
 * How large a record may become. Holds carry the metadata of their holders, and a store limits the size of a write (etcd:
 * 1.5 MiB). A record beyond that could never be written again, not even to take a hold out of it. So a request that would
 * make the record too large is refused; existing holds are not affected.
 */
import type { Hold } from './hold.ts';
import type { Json } from './machine.ts';
import type { Slots } from './slots.ts';
import { bytesIn } from './utf8.ts';

/**
 * A write contains the record, its grants once more in the letters to waiters, and the requests that arrive with it: twice
 * this limit and some 350 KiB are below etcd's limit.
 */
export const LARGEST_RECORD_BYTES = 512 * 1024;

/** A refusal for now: other holders have put too much into the record. */
export type TooLarge = {
  readonly kind: 'too-large';
  /** The size that the record would have. */
  readonly bytes: number;
  readonly most: number;
};

/** A hold, or a request that would become one. */
export interface Sized {
  readonly id: string;
  readonly holder: string;
  readonly lease: string;
  readonly slots?: Slots;
  readonly reason?: string;
  readonly metadata?: Json;
  readonly from?: Json;
}

/** The refusal if `one` does not fit together with `others`; undefined if it does. */
export function tooLarge(others: readonly Hold[], one: Sized): TooLarge | undefined {
  if (surelyFits(others, one)) return undefined;
  let bytes = sizeOf(one);
  for (let i = 0; i < others.length; i++) bytes += sizeOf(others[i] as Hold);
  return bytes <= LARGEST_RECORD_BYTES ? undefined : { kind: 'too-large', bytes, most: LARGEST_RECORD_BYTES };
}

/** The bytes of a hold in the record without the parts that are counted one by one. */
const OVERHEAD = 130;
/** Slot numbers are also in the event of the grant, and in the letter to its holder. */
const TIMES_TOLD = 3;

function sizeOf(one: Sized): number {
  return OVERHEAD + slotBytes(one) + textBytes(one);
}

function slotBytes({ slots }: Sized): number {
  if (slots === undefined) return 0;
  let bytes = 0;
  for (const run of slots) bytes += typeof run === 'number' ? digits(run) + 1 : digits(run[0]) + digits(run[1]) + 4;
  return TIMES_TOLD * bytes;
}

function digits(value: number): number {
  return value < 10 ? 1 : value < 100 ? 2 : String(value).length;
}

/** The sizes of texts by hold: they stay the same from one grant to the next. */
const texts = new WeakMap<Sized, number>();

function textBytes(one: Sized): number {
  const known = texts.get(one);
  if (known !== undefined) return known;
  const { id, holder, lease, reason, metadata, from } = one;
  const said = jsonBytes(reason) + jsonBytes(metadata) + jsonBytes(from);
  const bytes = bytesIn(id) + bytesIn(holder) + bytesIn(lease) + said;
  texts.set(one, bytes);
  return bytes;
}

/** Each unit of a text takes three bytes at most: for nearly every record this bound is enough. */
function surelyFits(others: readonly Hold[], one: Sized): boolean {
  let most = mostBytes(one);
  for (let i = 0; i < others.length && most <= LARGEST_RECORD_BYTES; i++) most += mostBytes(others[i] as Hold);
  return most <= LARGEST_RECORD_BYTES;
}

function mostBytes(one: Sized): number {
  const { id, holder, lease, reason, metadata, from } = one;
  if (reason !== undefined || metadata !== undefined || from !== undefined) return sizeOf(one);
  return OVERHEAD + slotBytes(one) + 3 * (id.length + holder.length + lease.length);
}

/** What a request says of itself, in bytes: its metadata, and its reason. */
export function saidBytes({ reason, metadata }: { readonly reason?: unknown; readonly metadata?: unknown }): number {
  return jsonBytes(reason as Json | undefined) + jsonBytes(metadata as Json | undefined);
}

/** Metadata never changes, and its size is needed for every other grant of the record. */
const measured = new WeakMap<object, number>();

function jsonBytes(value: Json | undefined): number {
  if (value === undefined) return 0;
  if (value === null || typeof value !== 'object') return bytesIn(JSON.stringify(value));
  const known = measured.get(value);
  if (known !== undefined) return known;
  const bytes = bytesIn(JSON.stringify(value));
  measured.set(value, bytes);
  return bytes;
}
