/**
 * Job control. Ctrl-Z stops us with the command, but not in the middle of a write to the store: nobody else could write
 * until we go on. And a command that stops itself, and only itself, stops us too: the shell waits for us and not for
 * it, and would sit there for ever. When the shell goes on with the job, it wakes both.
 */
import { systemClock } from '../../clock.ts';
import { readStat } from '../../host/index.ts';

/** So long the word that we shall stop may be on its way after the word that the command has stopped. */
const OWN_WORD_MS = 20;
/** What is heard so soon after we were woken was sent before we stopped. */
const OLD_WORD_MS = 100;

let wokenAt = Number.NEGATIVE_INFINITY;

/** As if nobody had listened to the signal. Returns when somebody has let us go on; false if we had just been woken. */
export function stopOurselves(signal: 'SIGTSTP' | 'SIGSTOP', listener?: (signal: NodeJS.Signals) => void): boolean {
  if (systemClock.monotonic() - wokenAt < OLD_WORD_MS) return false;
  if (listener !== undefined) process.removeListener(signal, listener);
  process.kill(process.pid, signal);
  if (listener !== undefined) process.on(signal, listener);
  wokenAt = systemClock.monotonic();
  return true;
}

/** Answers how to end it. */
export function stopWithChild(pid: number): () => void {
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    if (readStat(pid)?.state !== 'T' || stopOurselves('SIGSTOP')) return;
    timer = setTimeout(look, OLD_WORD_MS);
  };
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(look, OWN_WORD_MS);
  };
  process.on('SIGCHLD', heard);
  return () => {
    clearTimeout(timer);
    process.removeListener('SIGCHLD', heard);
  };
}
