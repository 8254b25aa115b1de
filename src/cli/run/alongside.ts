/** Runs a command for as long as something is held that is no lock of a store: an issue, a membership. */
import { GatedChild, randomHex } from '../../host/index.ts';
import { MARK } from '../../host/mark.ts';
import { Failure } from '../../failure.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { attended } from './attended.ts';
import { givenDescriptors, stillOpen } from './descriptors.ts';
import type { RunEnded } from './ended.ts';
import { findProgram } from './program.ts';
import { originalArgv } from './run.ts';
import type { Signals } from './signals.ts';
import { leaveStreamsAlone } from './streams.ts';
import { type Releasable, supervise, type Terms } from './supervise.ts';
import type { Voice } from './voice.ts';

export interface Alongside extends Releasable {
  /** Gives it up, if it is still held: the command did not begin. */
  abandon(): Promise<unknown>;
  /** What the messages call it: `issue #42`. */
  readonly what: string;
  /** What the command gets in its environment, besides ours. */
  readonly environment: Readonly<Record<string, string>>;
  readonly isValid: boolean;
  /** Aborts when it is lost. */
  readonly signal: AbortSignal;
}

/** `hold`: gets what is held, or throws; `signals.leaving` ends its wait. */
export async function runAlongside(
  given: readonly string[],
  terms: Terms,
  tells: ConstructorParameters<typeof Voice>[0],
  hold: (signals: Signals, voice: Voice) => Promise<Alongside>,
): Promise<RunEnded> {
  const [name, ...args] = given;
  if (name === undefined) throw new Failure('invalid', 'there is no command to run; it goes after --');
  leaveStreamsAlone();
  const descriptors = givenDescriptors();
  const argv = originalArgv([name, ...args]);
  const program = findProgram(argv[0], process.env);
  return attended(tells, async ({ signals, voice, sharesTerminal }) => {
    const held = await hold(signals, voice);
    const mark = randomHex(8);
    const around = process.env[MARK] ?? '';
    const marked = { [MARK]: around === '' ? mark : `${around}.${mark}` };
    const environment = { ...process.env, ...held.environment, ...marked };
    try {
      const gate = { leads: !sharesTerminal, mark, given: stillOpen(descriptors) };
      const child = await GatedChild.start(program, argv, environment, gate);
      try {
        if (!held.isValid) throw new CliExit(EXIT.notAcquired, `${held.what}: lost before the command could begin`);
        return await supervise(terms, [held], child, signals, voice, held.signal);
      } finally {
        await child.abandon();
      }
    } finally {
      await held.abandon();
    }
  });
}
