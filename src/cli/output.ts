/** Where output goes: results to stdout, everything else to stderr, and colours only where somebody sees them. */

const noReader = new AbortController();

/** Aborted once nobody reads our output any more (`| head`): there is nothing left to do it for. */
export const readerGone: AbortSignal = noReader.signal;

/** A reader that has gone is not an error: whoever printed for it just stops. */
export function quietlyWithoutReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      if (stream === process.stdout) noReader.abort();
    });
  }
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Always one line, so that several of them can be read one by one. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** For people who wait or watch; a script is not told. */
export function tell(line: string): void {
  if (process.stderr.isTTY) complain(line);
}

/** Resolves once it was handed over; throws if nobody takes it. */
export function handOver(line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

/** `2 locks and 1 semaphore with 1 hold`. */
export function counted(locks: number, semaphores: number, holds: number): string {
  const some = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
  return `${some(locks, 'lock')} and ${some(semaphores, 'semaphore')} with ${some(holds, 'hold')}`;
}

/** Text of others as one line that cannot do anything to the terminal it is shown on. */
export function printable(text: string): string {
  return text.replace(/[\t\r\n\u2028\u2029]+/g, ' ').replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�');
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow';
export type Paint = (colour: Colour, text: string) => string;

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
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
