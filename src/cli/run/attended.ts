/**
 * The frame around every command that signalbox runs for its user: signals and messages are attended to, and the process
 * stays alive until `work` is over.
 */
import { NotStarted } from '../../host/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { LostWhileEnding, type RunEnded } from './ended.ts';
import { Signals } from './signals.ts';
import { hasTerminal } from './terminal.ts';
import { type Tells, Voice } from './voice.ts';

export const NOT_STARTED = 126;

export interface Attendance {
  readonly signals: Signals;
  readonly voice: Voice;
  /** The command is in our process group, so the keys of the terminal reach it too. */
  readonly sharesTerminal: boolean;
}

/** A signal that came before the command began ends `work` as if it had ended the command. */
export async function attended(tells: Tells, work: (attendance: Attendance) => Promise<RunEnded>): Promise<RunEnded> {
  const sharesTerminal = hasTerminal();
  const signals = new Signals(sharesTerminal);
  const voice = new Voice(tells);
  // A store's timers, watches and heartbeats do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    return await work({ signals, voice, sharesTerminal });
  } catch (error) {
    if (error instanceof NotStarted) throw new CliExit(NOT_STARTED, error.message);
    const by = (signal: NodeJS.Signals): RunEnded => ({ signal, interrupted: sharesTerminal && signal === 'SIGINT' });
    if (signals.left !== undefined) return by(signals.left);
    const isLoss = error instanceof CliExit && error.exitCode === EXIT.lost;
    throw isLoss && signals.endedBy !== undefined ? new LostWhileEnding(error, by(signals.endedBy)) : error;
  } finally {
    clearInterval(alive);
    voice.done();
    signals.stop();
  }
}
