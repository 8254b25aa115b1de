/** A name that ends with what was surely meant as a mode: taken as a name, it would be a lock that nobody else uses. */
const WORDS: Readonly<Record<string, string>> = {
  read: 'shared',
  reader: 'shared',
  ro: 'shared',
  write: 'exclusive',
  writer: 'exclusive',
  rw: 'exclusive',
};
const MODES = ['shared', 'exclusive'];

/** `cfg:shared` of `cfg:share`; undefined where the last word is just part of the name. */
export function modeMeant(name: string): string | undefined {
  const colon = name.lastIndexOf(':');
  if (colon < 0) return undefined;
  const word = name.slice(colon + 1).toLowerCase();
  const mode = WORDS[word] ?? MODES.find((one) => distance(word, one) <= 2);
  return mode === undefined ? undefined : `${name.slice(0, colon)}:${mode}`;
}

/** How many letters have to be added, taken away or changed to make the one into the other. */
function distance(from: string, to: string): number {
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
