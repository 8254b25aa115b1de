/** The slots of a semaphore, as people read them. */
import type { Resource } from './types.ts';

/** How many slots these holds have, or these requests want. */
export function usedOf({ holds }: { readonly holds: readonly { readonly weight: number }[] }): number {
  return holds.reduce((sum, { weight }) => sum + weight, 0);
}

/** Slots in a row that belong to the same holder, or to nobody. */
export interface Run {
  readonly first: number;
  readonly length: number;
  /** The place of the hold in `holds`; undefined if the slots are free. */
  readonly place: number | undefined;
  /** How many slots the holder has in all. */
  readonly of: number;
}

export function runsOf({ capacity, holds }: Pick<Resource, 'capacity' | 'holds'>): readonly Run[] {
  const owners = Array.from({ length: capacity }, (): number | undefined => undefined);
  holds.forEach(({ slots }, place) => {
    for (const slot of slots) if (slot < capacity) owners[slot] = place;
  });
  const runs: Run[] = [];
  for (let first = 0; first < capacity;) {
    const place = owners[first];
    let end = first + 1;
    // Free slots are shown one by one.
    while (place !== undefined && end < capacity && owners[end] === place) end++;
    runs.push({ first, length: end - first, place, of: place === undefined ? 1 : (holds[place]?.weight ?? 1) });
    first = end;
  }
  return runs;
}

/** A to Z, then AA. */
export function letterOf(place: number): string {
  const last = String.fromCharCode(65 + (place % 26));
  return place < 26 ? last : letterOf(Math.floor(place / 26) - 1) + last;
}

/** `0–3, 8–9`. */
export function rangesOf(slots: readonly number[]): string {
  const sorted = [...slots].sort((one, other) => one - other);
  const parts: string[] = [];
  for (let place = 0; place < sorted.length;) {
    const first = sorted[place] as number;
    let end = place;
    while (sorted[end + 1] === (sorted[end] as number) + 1) end++;
    parts.push(end === place ? `${first}` : `${first}–${sorted[end] as number}`);
    place = end + 1;
  }
  return parts.join(', ');
}

/** Says what would let the waiter at this place in. */
export function fits({ capacity, holds, waiting, isDrained }: Resource, place: number): string {
  const free = Math.max(0, capacity - usedOf({ holds }));
  const wants = waiting[place]?.weight ?? 1;
  if (isDrained) return 'drained: nothing new is granted';
  if (wants > capacity) return `wants more than the ${capacity} there are`;
  if (place > 0) return free >= wants ? 'would fit now, waits its turn' : 'behind the head';
  const short = wants - free;
  if (short <= 0) return 'fits now';
  const enough = [...holds].sort((one, other) => one.weight - other.weight).find(({ weight }) => weight >= short);
  return enough === undefined ? `needs ${short} more, from several holders` : `fits when ${enough.holder} leaves`;
}
