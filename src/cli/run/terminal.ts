/** Whether somebody sits there: then the command may use the terminal too, and gets what the terminal sends. */
import { isatty } from 'node:tty';
import { readStat } from '../../host/index.ts';

/** In the middle of a pipeline none of our descriptors is a terminal; Ctrl-C and Ctrl-Z come from it all the same. */
export function hasTerminal(): boolean {
  const stat = readStat(process.pid);
  return stat === undefined ? [0, 1, 2].some((descriptor) => isatty(descriptor)) : stat.terminal !== 0;
}

/** Whether a signal can have come from a key. In the background it was sent by somebody, and to us alone. */
export function mayHearKeys(): boolean {
  const stat = readStat(process.pid);
  return stat === undefined || stat.foreground === stat.group;
}
