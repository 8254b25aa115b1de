/** Says on the command line what to type next, where the error comes from a layer that does not know about commands. */
import type { Command } from 'commander';
import { ServerRefusal } from '../client/problem.ts';
import { Failure } from '../failure.ts';
import { storeUrl } from '../runtime/location/location.ts';
import { withoutPassword } from '../store/index.ts';
import { quoted } from './pipeline/words.ts';
import { serverOf } from './remote/url.ts';
import { WitnessOff } from './witness/with-witness.ts';

/** The same error, with the same code, in the words of the command line. */
export function advised(error: unknown, command: Command): unknown {
  if (!Failure.is(error)) return error;
  if (isWitnessOff(error)) return new Failure('invalid', witnessIsOff(command), { cause: error });
  if (error instanceof ServerRefusal) return refusalAdvised(error, command);
  if (isWrongPlace(error)) return new Failure(error.code, `${error.message}\n  ${OTHER_PLACE}`, { cause: error.cause });
  return error;
}

const OTHER_PLACE = 'to name another place: --store file:DIRECTORY, or SIGNALBOX_URL=file:DIRECTORY';

/** The system refused to make, read or write the directory of the store, and nothing says yet what to do. */
function isWrongPlace({ code, cause, message }: Failure): boolean {
  const refused = (cause as NodeJS.ErrnoException | undefined)?.code ?? '';
  return code === 'forbidden' && /^E[A-Z]+$/.test(refused) && !message.includes('SIGNALBOX_URL');
}

function isWitnessOff(error: Failure): boolean {
  return error instanceof WitnessOff || (error instanceof ServerRefusal && error.problem.code === 'witness-off');
}

function witnessIsOff(command: Command): string {
  const what = 'the witness of this store is off, so there is no record of its changes';
  if (serverOf(command) !== undefined) {
    const how = 'restart signalbox serve with ?witness=on at the end of the URL of its store';
    return `${what}\n  to switch it on, on the machine of the server:\n  ${how}`;
  }
  const url = withoutPassword(storeUrl(command.optsWithGlobals<{ readonly store?: string }>().store));
  const on = `${url}${url.includes('?') ? '&' : '?'}witness=on`;
  return `${what}\n  to switch it on, while no other process uses the store:\n  signalbox witness tail --no-follow --store ${quoted(on)}`;
}

function refusalAdvised(error: ServerRefusal, command: Command): ServerRefusal {
  const advice = ADVICE[error.problem.code]?.(error, command) ?? [];
  if (advice.length === 0) return error;
  const detail = advice.join('\n  ');
  return new ServerRefusal(error.code, { ...error.problem, detail });
}

type Advice = (error: ServerRefusal, command: Command) => readonly string[];

const ADVICE: Readonly<Record<string, Advice>> = {
  unauthenticated: ({ message }) => [
    // The server goes on with what a program has to send.
    `${message.split(': send ')[0]}${tokenSource()}`,
    'set SIGNALBOX_TOKEN_FILE to the file that has a valid one, or SIGNALBOX_SERVER_TOKEN to the token itself',
    'where the store is, signalbox token local prints one for that machine, and signalbox token create makes one',
  ],
  'foreign-holder': ({ message, problem }, command) => {
    const allowed = Array.isArray(problem['allowed']) ? problem['allowed'].map(String) : [];
    if (allowed.length === 0 || !command.options.some(({ long }) => long === '--holder')) return [];
    const what = message.replace('; name one of these as the holder', '');
    return [what, `say who you are: --holder NAME, where NAME fits ${allowed.join(' or ')}`];
  },
};

/** Several variables may name a token, and the user may have forgotten the one that counts. */
function tokenSource(): string {
  const named = ['SIGNALBOX_SERVER_TOKEN', 'SIGNALBOX_TOKEN_FILE'].find((name) => (process.env[name] ?? '') !== '');
  return named === undefined ? '' : ` (from ${named})`;
}
