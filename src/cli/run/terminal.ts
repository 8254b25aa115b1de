/** Whether there is a terminal. The command then uses it too, and receives the signals that it sends. */
import { isatty } from 'node:tty';
import { readStat } from '../../host/index.ts';

/** In the middle of a shell pipeline none of our descriptors is a terminal, but Ctrl-C and Ctrl-Z still come from it. */
export function hasTerminal(): boolean {
  const stat = readStat(process.pid);
  return stat === undefined ? [0, 1, 2].some((descriptor) => isatty(descriptor)) : stat.terminal !== 0;
}

/** Whether a signal may have come from a key. In the background it was sent to this process alone. */
export function mayHearKeys(): boolean {
  const stat = readStat(process.pid);
  return stat === undefined || stat.foreground === stat.group;
}
