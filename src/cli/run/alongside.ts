/** Runs a command for as long as something is held that is no lock of a store: an issue, a membership. */
import { GatedChild, randomHex } from '../../host/index.ts';
import { MARK } from '../../host/mark.ts';
import { Failure } from '../../failure.ts';
import type { Ground } from '../../runtime/processes/children.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { attended } from './attended.ts';
import { givenDescriptors, stillOpen } from './descriptors.ts';
import type { RunEnded } from './ended.ts';
import { findProgram } from './program.ts';
import { begun, originalArgv } from './run.ts';
import type { Signals } from './signals.ts';
import { leaveStreamsAlone } from './streams.ts';
import { type Releasable, supervise, type Terms } from './supervise.ts';
import type { Tells, Voice } from './voice.ts';

export interface Alongside extends Releasable {
  /** Gives it up, if it is still held: the command did not begin. */
  abandon(): Promise<unknown>;
  /** What the messages call it: `issue #42`. */
  readonly what: string;
  /** What the command gets in its environment in addition to ours. */
  readonly environment: Readonly<Record<string, string>>;
  readonly isValid: boolean;
  /** Aborts when it is lost. */
  readonly signal: AbortSignal;
  /** Where the command is noted, so that the next holder ends it if this process is killed. */
  readonly noted?: {
    readonly box: Signalbox;
    readonly grounds: readonly Omit<Ground, 'isValid'>[];
    readonly ttlMs: number;
  };
}

/** `hold`: gets what is held, or throws; `signals.leaving` ends its wait. */
export async function runAlongside(
  given: readonly string[],
  terms: Terms,
  tells: Tells,
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
      if (held.noted !== undefined) return await begunWithNotes(held, held.noted, terms, child, signals, voice);
      try {
        if (signals.left !== undefined) throw new Failure('closed', 'left');
        if (!held.isValid) throw new CliExit(EXIT.notAcquired, `${held.what}: lost before the command could begin`);
        return await supervise({ terms, child, signals, voice, lost: held.signal }, [held]);
      } finally {
        await child.abandon();
      }
    } finally {
      await held.abandon();
    }
  });
}

/** As of `run`: the command begins once it is noted and nothing of an earlier holder runs. */
async function begunWithNotes(
  held: Alongside,
  { box, grounds, ttlMs }: NonNullable<Alongside['noted']>,
  terms: Terms,
  child: GatedChild,
  signals: Signals,
  voice: Voice,
): Promise<RunEnded> {
  const under = grounds.map((ground) => ({
    ...ground,
    get isValid() {
      return held.isValid;
    },
    signal: held.signal,
    release: held.release,
  }));
  const request = { ...terms, ttlMs };
  const ended = await begun(box, request, under, {}, child, signals, voice, undefined, undefined);
  if ('guard' in ended) throw new TypeError('there is no guard');
  return ended;
}
