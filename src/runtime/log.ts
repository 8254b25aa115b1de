/**
 * Structured logs of a process: one line of JSON for each thing that happened. Silent unless `SIGNALBOX_LOG` or the option `log`
 * of `open` says otherwise. What is logged are names, numbers and outcomes: never data, metadata or reasons of users, and
 * whatever looks like a token or a password is hidden.
 */
import { writeSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { Failure, redactedWords, shown } from '../failure.ts';
import type { Occurrence, StepFields, Trace, Tracer } from './tracer.ts';

/** From the most to the least that is logged. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** How much is logged: nothing less important than this. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The fields of a line. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where lines go. A logger of pino is one; so is anything else that has these methods. */
export interface Log {
  /** Single steps, such as one acquire. */
  debug(fields: LogFields, message: string): void;
  /** What happens rarely, such as the end of a session. */
  info(fields: LogFields, message: string): void;
  /** What a person may want to know: a hold was lost, the store did not answer. */
  warn(fields: LogFields, message: string): void;
  /** What a person has to look at. */
  error(fields: LogFields, message: string): void;
}

/** As `SIGNALBOX_LOG` says; undefined if it says nothing. */
export function logLevelIn(environment: Readonly<Record<string, string | undefined>>): LogLevel | undefined {
  const given = environment['SIGNALBOX_LOG'] ?? '';
  if (given === '') return undefined;
  const level = LOG_LEVELS.find((one) => one === given);
  if (level !== undefined) return level;
  throw new Failure('invalid', `SIGNALBOX_LOG is ${shown(given)}; expected ${LOG_LEVELS.join(', ')}`);
}

/** Lines on stderr, in the same form as those of `serve`. Undefined if nothing is to be logged. */
export function lineLog(level: LogLevel | undefined, clock: Clock, write = toStderr): Log | undefined {
  if (level === undefined || level === 'silent') return undefined;
  const least = LOG_LEVELS.indexOf(level);
  const at =
    (name: LogLevel) =>
    (fields: LogFields, msg: string): void => {
      if (LOG_LEVELS.indexOf(name) < least) return;
      const time = new Date(clock.now()).toISOString();
      write(`${JSON.stringify({ level: name, time, pid: process.pid, name: 'signalbox', ...safe(fields), msg })}\n`);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Writes at once, so that a process that is killed leaves its lines. A reader that is gone must not end the process. */
function toStderr(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // Nobody reads it.
  }
}

const LONGEST = 500;

/** Hides what looks like a secret, in fields of fields too. */
export function safe(fields: LogFields): LogFields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, safeValue(value)]));
}

function safeValue(value: unknown): unknown {
  if (typeof value === 'string') return safeText(value);
  if (Array.isArray(value)) return value.map(safeValue);
  return typeof value === 'object' && value !== null ? safe(value as LogFields) : value;
}

/** Tokens of a server begin with `sbx_`; those of GitHub with `gh` and a letter, or `github_pat`. */
export function safeText(text: string): string {
  return redactedWords(text)
    .replace(/\b(sbx|gh[a-z]|github_pat)_[\w-]+/g, '$1_[hidden]')
    .replace(/\b(Bearer|Basic|token) +[\w.~+/=-]{8,}/gi, '$1 [hidden]')
    .slice(0, LONGEST);
}

const MESSAGES: Readonly<Record<Occurrence, readonly [level: keyof Log, message: string]>> = {
  opened: ['debug', 'opened the store'],
  'session-ended': ['info', 'the session ended'],
  'renewal-failed': ['warn', 'the lease of the session was not renewed'],
  resync: ['info', 'a watch missed history and reads again'],
  'transaction-failed': ['warn', 'the store did not carry out a transaction'],
};

/** A person may want to know if one of these steps fails. A refused acquire is not a failure but an answer. */
const MATTERS = ['hold', 'task', 'phase'];

/** Logs each step when it ends, with the time that it took. */
export function logTracer(log: Log, clock: Clock): Tracer {
  const begin: Tracer['begin'] = (step, fields) => {
    const since = clock.monotonic();
    const trace: Trace = {
      end(outcome, isFailure, more) {
        const ms = Math.round((clock.monotonic() - since) * 1000) / 1000;
        const level = isFailure && MATTERS.includes(step) ? 'warn' : 'debug';
        log[level](safe({ ...fields, ...more, outcome, ms }), step);
      },
      within: (work) => work(),
      next: begin,
    };
    return trace;
  };
  return {
    begin,
    happened(what: Occurrence, fields: StepFields) {
      const [level, message] = MESSAGES[what];
      log[level](safe(fields), message);
    },
  };
}
