/** The server's log: structured lines from pino on stderr, in the same form as the library's. */
import { pino } from 'pino';
import { type Log, logLevelIn, type LogLevel, safe, safeText } from '../runtime/log.ts';
import type { RequestNote } from './app.ts';

/** Without a level it logs what `SIGNALBOX_LOG` says, or else only trouble. It never writes to stdout, where the program prints. */
export function serverLog(name: string, level: LogLevel = logLevelIn(process.env) ?? 'warn'): Log {
  return pino(
    {
      level,
      base: { pid: process.pid, name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: safe },
      hooks: { logMethod: hidingSecrets },
    },
    // Written synchronously, so that the last lines of a killed server are not lost.
    pino.destination({ dest: 2, sync: true }),
  );
}

function hidingSecrets(this: unknown, given: unknown[], method: (...given: never[]) => void): void {
  method.apply(this, given.map((one) => (typeof one === 'string' ? safeText(one) : one)) as never[]);
}

/** Logs a request by its operation, never by its path, which contains names that users chose. */
export function logRequest(log: Log, { status, trouble, ...note }: RequestNote): void {
  const level = status === 500 ? 'error' : status > 500 ? 'warn' : 'info';
  log[level]({ ...note, ms: Math.round(note.ms * 1000) / 1000, status, ...(trouble && { trouble }) }, 'request');
}
