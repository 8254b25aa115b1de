/**
 * Node looks at its own stdout and stderr whenever a socket is closed, only to compare them. To be looked at they have to
 * be made, and that makes the pipes behind them non-blocking: for the command, and for everyone else who has them.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STREAMS = { stdout: 1, stderr: 2 } as const;

/** From now on nothing in this process makes them. */
export function leaveStreamsAlone(): void {
  for (const [name, descriptor] of Object.entries(STREAMS)) {
    // A terminal is opened anew, and stays as it is for others.
    if (isatty(descriptor)) continue;
    const write = (text: string): number => writeSync(descriptor, text);
    Object.defineProperty(process, name, { configurable: true, value: { isTTY: false, write } });
  }
}
