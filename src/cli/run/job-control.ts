/**
 * Job control. Ctrl-Z stops us together with the command, but not in the middle of a write to the store, which would block
 * every other process. A command that stops only itself stops us too: the shell waits for us and not for the command, and
 * would wait for ever. When the shell continues the job, it wakes both.
 */
import { systemClock } from '../../clock.ts';
import { readStat } from '../../host/index.ts';

/** How long our own stop signal may lag behind the news that the command has stopped. */
const OWN_WORD_MS = 20;
/** A signal that arrives this soon after we were woken was sent before we stopped. */
const OLD_WORD_MS = 100;

let wokenAt = Number.NEGATIVE_INFINITY;

/** Stops this process as if it did not handle the signal. Returns when it is continued; false if it had just been woken. */
export function stopOurselves(signal: 'SIGTSTP' | 'SIGSTOP', listener?: (signal: NodeJS.Signals) => void): boolean {
  if (systemClock.monotonic() - wokenAt < OLD_WORD_MS) return false;
  if (listener !== undefined) process.removeListener(signal, listener);
  process.kill(process.pid, signal);
  if (listener !== undefined) process.on(signal, listener);
  wokenAt = systemClock.monotonic();
  return true;
}

/** Returns a function that ends the watching. */
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
