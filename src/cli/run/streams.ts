/**
 * Whenever a socket closes, Node compares it with its own stdout and stderr. That creates those streams, which makes the
 * pipes behind them non-blocking for the command and for every other process that shares them.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STREAMS = { stdout: 1, stderr: 2 } as const;

/** Keeps this process from creating them. */
export function leaveStreamsAlone(): void {
  for (const [name, descriptor] of Object.entries(STREAMS)) {
    // Node reopens a terminal, so nothing changes for other processes.
    if (isatty(descriptor)) continue;
    const write = (text: string): number => writeSync(descriptor, text);
    Object.defineProperty(process, name, { configurable: true, value: { isTTY: false, write } });
  }
}
