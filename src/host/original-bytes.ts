/**
 * The original bytes of arguments and environment variables. Node decodes both as UTF-8: an invalid byte becomes U+FFFD, and
 * a variable with such a byte in its name is not in `process.env` at all. Linux still has the bytes.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { ifPossible } from './if-possible.ts';

/** What Node writes in place of a byte that is not UTF-8. */
const REPLACEMENT = '\uFFFD';
const EQUALS = 0x3d;

/** A string, or bytes that no string can represent. */
export type Text = string | Buffer;

/** Arguments or variables have bytes that are not UTF-8, and this platform does not show them. */
export class BytesLost extends Error {
  constructor(what: string) {
    super(`${what} is not UTF-8 (or has U+FFFD in it), and on this system it cannot be passed on unchanged`);
    this.name = 'BytesLost';
  }
}

/** The bytes of this process's last arguments, which Node has given as `decoded`. Throws `BytesLost`. */
export function originalArguments(decoded: readonly string[]): readonly Text[] {
  if (!decoded.some((each) => each.includes(REPLACEMENT))) return decoded;
  const all = splitAtNuls(ifPossible(() => readFileSync('/proc/self/cmdline')) ?? Buffer.alloc(0));
  const last = all.slice(all.length - decoded.length);
  const isSame = last.length === decoded.length && last.every((bytes, place) => bytes.toString() === decoded[place]);
  if (!isSame) throw new BytesLost('an argument of the command');
  return last.map((bytes, place) => (isUtf8(bytes) ? (decoded[place] as string) : bytes));
}

/**
 * The variables of this process that are not UTF-8, each as `NAME=VALUE`, by the name that Node has for them: several
 * names can become the same. Throws `BytesLost`.
 */
export function originalVariables(env: NodeJS.ProcessEnv): ReadonlyMap<string, readonly Buffer[]> {
  const found = new Map<string, Buffer[]>();
  const bytes = ifPossible(() => readFileSync('/proc/self/environ'));
  if (bytes === undefined) {
    const [name] = Object.entries(env).find(([, value]) => value?.includes(REPLACEMENT) === true) ?? [];
    if (name !== undefined && env[name] === process.env[name]) throw new BytesLost(`the variable ${name}`);
    return found;
  }
  if (isUtf8(bytes)) return found;
  for (const entry of splitAtNuls(bytes).filter((each) => !isUtf8(each))) {
    const equals = entry.indexOf(EQUALS);
    if (equals <= 0) continue;
    const name = entry.toString('utf8', 0, equals);
    // The program changed this variable since the start, so the changed value counts.
    if (!name.includes(REPLACEMENT) && env[name] !== entry.toString('utf8', equals + 1)) continue;
    found.set(name, [...(found.get(name) ?? []), entry]);
  }
  return found;
}

function splitAtNuls(bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const nul = bytes.indexOf(0, from);
    const to = nul < 0 ? bytes.length : nul;
    parts.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return parts;
}
