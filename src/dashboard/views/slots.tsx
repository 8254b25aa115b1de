/** Slots of a semaphore in one line: a cell for each, or a bar where they are many. */
import type { JSX } from 'preact';
import { usedOf } from '../model/slots.ts';
import type { Resource } from '../model/types.ts';

const MOST_CELLS = 24;

export function SlotStrip({ of }: { of: Resource }): JSX.Element {
  const used = usedOf(of);
  const label = `${used} of ${of.capacity} slots in use`;
  if (of.capacity > MOST_CELLS) {
    const part = `${Math.min(100, (used / of.capacity) * 100)}%`;
    return (
      <span class="bar" role="img" aria-label={label}>
        <i style={{ width: part }} />
      </span>
    );
  }
  const lost = new Set(of.holds.filter(({ isStale }) => isStale).flatMap(({ slots }) => slots));
  const taken = new Set(of.holds.flatMap(({ slots }) => slots));
  return (
    <span class="slots" role="img" aria-label={label}>
      {Array.from({ length: of.capacity }, (_, slot) => (
        <i key={slot} class={lost.has(slot) ? 'lost' : taken.has(slot) ? 'used' : ''} />
      ))}
    </span>
  );
}
