/** Work that Ctrl-C ends cleanly: it gives up what it waits for, and the command ends as shells expect. */
import { constants } from 'node:os';
import { CliExit } from './exit-code.ts';
import { readerGone } from './output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The signal given to `work` aborts when we are interrupted, or when nobody reads our output any more. A second
 * Ctrl-C ends the process at once: what it held ends with its lease. With `hurry`, that is aborted first, and
 * only the third ends the process.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>, hurry?: AbortController): Promise<T> {
  const interrupted = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    if (exitCode !== undefined) {
      if (hurry === undefined || hurry.signal.aborted) process.exit(exitCode);
      return hurry.abort();
    }
    exitCode = 128 + constants.signals[name];
    interrupted.abort(new CliExit(exitCode, ''));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  // The timers and watches of a store keep no process alive, and this one is at work.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const result = await work(AbortSignal.any([interrupted.signal, readerGone]));
    // It may have ended just because it was told to.
    if (exitCode !== undefined) throw new CliExit(exitCode, '');
    return result;
  } catch (error) {
    if (error instanceof CliExit || (exitCode === undefined && !readerGone.aborted)) throw error;
    throw new CliExit(exitCode ?? 0, '');
  } finally {
    clearInterval(alive);
    for (const name of SIGNALS) process.removeListener(name, onSignal);
  }
}
