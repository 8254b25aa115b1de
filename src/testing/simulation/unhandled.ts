/** Catches errors that a simulated process throws and does not catch. */
import { type Checker, Violation } from './checker.ts';
import { Thrown } from './user.ts';

/**
 * An unhandled rejection would end a real process, and so would an error thrown out of a callback, unless the simulation threw it
 * on purpose.
 */
export function noticeUnhandled(checker: Checker): { stop(): void } {
  const notice = (error: unknown): void => {
    if (error instanceof Thrown || error instanceof Violation) return;
    try {
      checker.fail(`a process ended by what nobody caught: ${String(error)}`);
    } catch {
      // The checker keeps the violation.
    }
  };
  const before = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', notice);
  process.setUncaughtExceptionCaptureCallback(notice);
  return {
    stop: () => {
      process.off('unhandledRejection', notice);
      for (const listener of before) process.on('unhandledRejection', listener);
      process.setUncaughtExceptionCaptureCallback(null);
    },
  };
}
