/** The log of a server: structured lines by pino, on stderr, in the form that the library has too. */
import { pino } from 'pino';
import { type Log, logLevelIn, type LogLevel, safe, safeText } from '../runtime/log.ts';
import type { RequestNote } from './app.ts';

/** Without a level: as `SIGNALBOX_LOG` says, and otherwise only trouble. stdout belongs to what the program prints. */
export function serverLog(name: string, level: LogLevel = logLevelIn(process.env) ?? 'warn'): Log {
  return pino(
    {
      level,
      base: { pid: process.pid, name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: safe },
      hooks: { logMethod: hidingSecrets },
    },
    // At once, so that the lines of a server that is killed are there.
    pino.destination({ dest: 2, sync: true }),
  );
}

function hidingSecrets(this: unknown, given: unknown[], method: (...given: never[]) => void): void {
  method.apply(this, given.map((one) => (typeof one === 'string' ? safeText(one) : one)) as never[]);
}

/** Enters a request: what was asked by its operation, never by its path, which has the names that users give. */
export function logRequest(log: Log, { status, trouble, ...note }: RequestNote): void {
  const level = status === 500 ? 'error' : status > 500 ? 'warn' : 'info';
  log[level]({ ...note, ms: Math.round(note.ms * 1000) / 1000, status, ...(trouble && { trouble }) }, 'request');
}
