/** Prints an error to stderr: as one line, or as one JSON object. */
import { time } from '../json/time.ts';
import { NotAcquired, type Refusal } from '../runtime/refusal.ts';
import { redactedWords } from '../core/redacted.ts';
import { CliExit, errorCodeOf, EXIT, exitCodeOf } from './exit-code.ts';
import { complain, jsonText, printable } from './output.ts';

/** Returns the exit code. */
export function report(error: unknown, json: boolean): number {
  const exitCode = exitCodeOf(error);
  const message = redactedWords(messageOf(error, exitCode));
  if (message === '') return exitCode;
  if (json) complain(jsonText({ error: { code: errorCodeOf(error), message, ...detailsOf(error) } }));
  else complain(`signalbox: ${message.split('\n').map(printable).join('\n')}`);
  return exitCode;
}

function messageOf(error: unknown, exitCode: number): string {
  if (!(error instanceof Error)) return String(error);
  if (exitCode !== EXIT.internal) return error.message;
  return `a bug in signalbox: ${error.stack ?? error.message}`;
}

function detailsOf(error: unknown): object {
  if (error instanceof NotAcquired) return { resource: error.resource, refusal: withTimes(error.refusal) };
  if (!(error instanceof CliExit)) return {};
  const { refusal, ...details } = error.details;
  return refusal === undefined ? details : { ...details, refusal: withTimes(refusal as Refusal) };
}

/** Times are text in whatever a command prints as JSON; the library has numbers. */
function withTimes(refusal: Refusal): object {
  const holders = 'holders' in refusal ? refusal.holders : undefined;
  const drained = 'drained' in refusal ? refusal.drained : undefined;
  return {
    ...refusal,
    ...(holders !== undefined && {
      holders: holders.map((hold) => ({ ...hold, acquiredAt: time(hold.acquiredAt) })),
    }),
    ...(drained !== undefined && { drained: { ...drained, at: time(drained.at) } }),
  };
}
