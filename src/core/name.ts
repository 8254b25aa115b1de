/** Names: of resources, and of the holders that hold and wait for them. */
import { shown } from './shown.ts';

export const LONGEST_NAME = 200;

const PLAIN = /^[\x20-\x7e]+$/;

/** What is wrong with a name, and what is accepted; undefined if nothing is. */
export function nameProblem(name: unknown, what = 'name', longest = LONGEST_NAME): string | undefined {
  // Most names are plain, and this check is by far the cheaper.
  if (typeof name === 'string' && name.length <= longest && PLAIN.test(name)) return undefined;
  const accepted = `expected 1 to ${longest} printable characters`;
  if (typeof name !== 'string') return `${what} is ${shown(name)}, not a string; ${accepted}`;
  if (name.length === 0) return `${what} is empty; ${accepted}`;
  const unprintable = firstUnprintable(name);
  if (unprintable !== undefined) {
    return `${what} ${shown(name)} has the unprintable character ${codePoint(unprintable)}; ${accepted}`;
  }
  // A character takes one or two units, so a name of so few units need not be counted.
  if (name.length <= longest) return undefined;
  const length = [...name].length;
  return length > longest ? `${what} ${shown(name)} has ${length} characters; ${accepted}` : undefined;
}

/**
 * Finds a character that nobody sees when the name is printed: control characters, line separators, halves of characters (which
 * all become the same replacement character once written), and those that turn the direction of the text around. The two joiners
 * are allowed, because Persian words and many emoji cannot be written without them. V8 takes long to build these classes of
 * characters, so the expression is made on first use.
 */
function firstUnprintable(name: string): string | undefined {
  return /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.exec(name)?.[0];
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
