/** Finds the known word nearest to a misspelt one. */

/** Undefined if none is near enough to be meant. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const most = lower.length <= 4 ? 1 : 2;
  const [best] = words
    .map((one) => ({ one, far: distance(lower, one.toLowerCase(), most) }))
    .filter(({ far }) => far <= most)
    .sort((a, b) => a.far - b.far);
  return best?.one;
}

/**
 * How many letters have to be added, removed or changed to turn one word into the other; any number above `most` if there are
 * more.
 */
export function distance(from: string, to: string, most: number): number {
  // A long text is not a misspelt word, and comparing it would take too long.
  if (Math.abs(from.length - to.length) > most) return most + 1;
  let row = Array.from({ length: to.length + 1 }, (_, place) => place);
  for (const [place, letter] of [...from].entries()) {
    const next = [place + 1];
    for (let at = 1; at <= to.length; at++) {
      const changed = (row[at - 1] as number) + (letter === to[at - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[at] as number) + 1, (next[at - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
