/** Notices what a simulated process throws and nobody catches. */
import { type Checker, Violation } from './checker.ts';
import { Thrown } from './user.ts';

/** A rejection that nobody handles would end a real process; so does what is thrown out of a callback, unless on purpose. */
export function noticeUnhandled(checker: Checker): { stop(): void } {
  const notice = (error: unknown): void => {
    if (error instanceof Thrown || error instanceof Violation) return;
    try {
      checker.fail(`a process ended by what nobody caught: ${String(error)}`);
    } catch {
      // Kept by the checker.
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
