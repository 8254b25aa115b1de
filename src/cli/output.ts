/**
 * Prints results to stdout and everything else to stderr, with colours only on a terminal.
 *
 * It writes straight to the descriptors. Node's streams would make a pipe non-blocking for every process that shares it,
 * the command of a `run` included, and such processes then lose output.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Malformed } from '../runtime/stored.ts';
import { CliExit, EXIT } from './exit-code.ts';

const STDOUT = 1;
const STDERR = 2;
/** The pause before the next try, if another process made the pipe non-blocking. */
const FULL_PIPE_MS = 5;

const noReader = new AbortController();

/** Aborts when the reader of our output is gone (`| head`): further work would be for nothing. */
export const readerGone: AbortSignal = noReader.signal;

/** A reader that is gone is not an error; printing just stops. */
export function print(line: string): void {
  printText(`${isatty(STDOUT) ? harmless(line) : line}\n`);
}

/** Prints the name unchanged for scripts, and without control characters on a terminal. */
export function printName(name: string): void {
  print(named(name));
}

export function named(name: string): string {
  return isatty(STDOUT) ? printable(name) : name;
}

export function printText(text: string | Buffer): void {
  if (readerGone.aborted) return;
  try {
    write(STDOUT, text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EPIPE') throw new CliExit(EXIT.unreachable, `stdout cannot be written: ${message}`);
    noReader.abort();
  }
}

/** Writes on a terminal until it is closed, and then nothing: the signal handler elsewhere reacts to that. */
export function terminalWriter(): (text: string) => void {
  let isGone = false;
  return (text) => {
    if (isGone) return;
    try {
      printText(text);
    } catch {
      isGone = true;
    }
  };
}

/** Prints one line, so that a program can read several values line by line. */
export function printJson(value: unknown): void {
  print(jsonText(value));
}

/** Escapes the characters that a terminal would obey; JSON itself escapes only some of them. The value stays the same. */
export function jsonText(value: unknown): string {
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  // Control characters, such as ESC, and characters that turn the direction of text. Not a constant of the module: V8 would look up
  // these classes of characters at every start, also of a command that prints nothing.
  const obeyed = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
  return JSON.stringify(value).replace(obeyed, (character) => character.split('').map(escaped).join(''));
}

export function complain(line: string): void {
  try {
    write(STDERR, `${isatty(STDERR) ? harmless(line) : line}\n`);
  } catch {
    // No reader is left to report to.
  }
}

/** Prints a message to stderr, under the name of the program, as one line that cannot control the terminal. */
export function say(text: string): void {
  complain(`signalbox: ${printable(text)}`);
}

const MOST_SKIPPED = 5;

/** Says which keys were skipped because their values cannot be read: without that, an incomplete answer would look complete. */
export function warnOf(malformed: readonly Malformed[]): void {
  for (const { why } of malformed.slice(0, MOST_SKIPPED)) say(`skipped: ${why}`);
  const more = malformed.length - MOST_SKIPPED;
  if (more > 0) say(`skipped ${more} more keys that cannot be read; signalbox doctor lists them`);
}

/** Prints for people at a terminal; scripts do not see it. */
export function tell(line: string): void {
  if (isatty(STDERR)) complain(line);
}

/** Throws if the reader is gone. */
export function handOver(line: string): void {
  write(STDOUT, `${line}\n`);
}

/** The terminal's properties, if stdout is one. */
export function screen(): { readonly isTTY?: boolean; readonly columns?: number } {
  return isatty(STDOUT) ? process.stdout : {};
}

function write(descriptor: number, text: string | Buffer): void {
  let rest = Buffer.from(text as string);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS);
    }
  }
}

/** Leaves out the parts that say nothing. */
export function joined(parts: readonly (string | undefined)[], between = ' · '): string {
  return parts.filter((part) => part !== undefined && part !== '').join(between);
}

/** `1 hold`, `2 holds`. */
export function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** `2 locks and 1 semaphore with 1 hold`. `rest`: what nobody holds; named if there is any of it. */
export function counted(
  locks: number,
  semaphores: number,
  holds: number,
  rest: { readonly tasks: number; readonly pipelines: number; readonly keys: number },
): string {
  const others = (['task', 'pipeline', 'key'] as const).flatMap((what) => {
    const count = rest[`${what}s`];
    return count === 0 ? [] : `, ${plural(count, what)}`;
  });
  return `${plural(locks, 'lock')} and ${plural(semaphores, 'semaphore')} with ${plural(holds, 'hold')}${others.join('')}`;
}

/**
 * The last filter before a terminal: of the characters that it obeys, only line breaks, tabs and our own colours pass.
 * Foreign text should have gone through `printable` before; where that was forgotten, this keeps it harmless.
 */
export function harmless(text: string): string {
  const obeyed = /\x1b\[(?:1|2|7|22|27|31|32|33|36|39)m|[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
  return text.replace(obeyed, (found) => (found.length > 2 || found === '\n' || found === '\t' ? found : '�'));
}

/** Turns foreign text into one line that cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\t\r\n\u2028\u2029]+/g, ' ').replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�');
}

export type Colour = 'bold' | 'dim' | 'inverse' | 'red' | 'green' | 'yellow' | 'cyan';
export type Paint = (colour: Colour, text: string) => string;

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  inverse: [7, 27],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export const unpainted: Paint = (_, text) => text;

export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Paint {
  const seen = stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  if (!seen) return unpainted;
  return (colour, text) => {
    const [on, off] = CODES[colour];
    return text === '' ? '' : `\x1b[${on}m${text}\x1b[${off}m`;
  };
}
