/** Lets Ctrl-C end work cleanly: the work gives up its waits, and the command ends as shells expect. */
import { constants } from 'node:os';
import { CliExit } from './exit-code.ts';
import { readerGone } from './output.ts';

/** Aborts with the first of these signals that there are. */
export function anyOf(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((one) => one !== undefined));
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Aborts the signal of `work` when the process is interrupted, or when the reader of its output is gone. A second Ctrl-C
 * ends the process at once; its holds then end with their lease. If `hurry` is given, the second Ctrl-C aborts it, and only
 * the third ends the process.
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
  // A store's timers and watches do not keep the process alive, but unfinished work must.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const result = await work(AbortSignal.any([interrupted.signal, readerGone]));
    // It may have ended because of the interrupt.
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
