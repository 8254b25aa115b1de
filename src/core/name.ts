/** Names: of resources, and of the holders that hold and wait for them. */
import { shown } from './shown.ts';

export const LONGEST_NAME = 200;

const ACCEPTED = `accepted are 1 to ${LONGEST_NAME} printable characters`;

/**
 * What nobody sees when the name is printed: control characters, line separators, halves of characters (all of which
 * become the same replacement character once written), and what turns the direction of the text around. The two
 * joiners are allowed, because Persian words and many emoji cannot be written without them.
 */
const UNPRINTABLE = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** What is wrong with a name, and what is accepted; undefined if nothing is. */
export function nameProblem(name: unknown, what = 'name'): string | undefined {
  if (typeof name !== 'string') return `${what} is ${shown(name)}, not a string; ${ACCEPTED}`;
  if (name.length === 0) return `${what} is empty; ${ACCEPTED}`;
  const unprintable = UNPRINTABLE.exec(name);
  if (unprintable !== null) {
    return `${what} ${shown(name)} has the unprintable character ${codePoint(unprintable[0])}; ${ACCEPTED}`;
  }
  // A character takes one or two units, so that most names need not be counted.
  if (name.length <= LONGEST_NAME) return undefined;
  const length = [...name].length;
  return length > LONGEST_NAME ? `${what} ${shown(name)} has ${length} characters; ${ACCEPTED}` : undefined;
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
