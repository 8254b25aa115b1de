/**
 * What becomes of a signal that this process gets.
 *
 *     waiting    the command has not begun: leave the queue, and end as if by that signal
 *     running    passed on to the command. What a terminal sends, it has sent to the command as well
 *     ending     the command was told to end, or has, and left others behind: no more patience
 */
import { constants } from 'node:os';
import { stopOurselves } from './stopping.ts';
import { mayHearKeys } from './terminal.ts';

export type Phase = 'waiting' | 'running' | 'ending';
export type Reaction = 'leave' | 'pass-on' | 'hurry' | 'stop' | 'none';

/** Those that would end us if nobody listened. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGALRM', 'SIGUSR1', 'SIGUSR2'];
const LISTENED: readonly NodeJS.Signals[] = [...ENDING, 'SIGTSTP', 'SIGCONT'];
const FROM_TERMINAL: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT'];

export function reaction(
  phase: Phase,
  signal: NodeJS.Signals,
  sharesTerminal: boolean,
  mayBeKey = (): boolean => true,
): Reaction {
  if (signal === 'SIGTSTP' || signal === 'SIGCONT') {
    if (phase === 'running' && !sharesTerminal) return 'pass-on';
    return signal === 'SIGTSTP' ? 'stop' : 'none';
  }
  switch (phase) {
    case 'waiting':
      return 'leave';
    case 'running':
      return sharesTerminal && FROM_TERMINAL.includes(signal) && mayBeKey() ? 'none' : 'pass-on';
    case 'ending':
      return signal === 'SIGUSR1' || signal === 'SIGUSR2' ? 'none' : 'hurry';
  }
}

export class Signals {
  readonly #sharesTerminal: boolean;
  readonly #leaving = new AbortController();
  readonly #hurrying = new AbortController();
  #phase: Phase = 'waiting';
  #passOn: (signal: NodeJS.Signals) => void = () => undefined;
  #left: NodeJS.Signals | undefined;

  constructor(sharesTerminal: boolean) {
    this.#sharesTerminal = sharesTerminal;
    for (const signal of LISTENED) process.on(signal, this.#heard);
  }

  /** Aborts when the command shall not begin any more. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Aborts when somebody has lost patience with what is still to end. */
  get hurrying(): AbortSignal {
    return this.#hurrying.signal;
  }

  /** The signal that ended the wait, if one did. */
  get left(): NodeJS.Signals | undefined {
    return this.#left;
  }

  running(passOn: (signal: NodeJS.Signals) => void): void {
    this.#phase = 'running';
    this.#passOn = passOn;
  }

  ending(): void {
    this.#phase = 'ending';
  }

  stop(): void {
    for (const signal of LISTENED) process.removeListener(signal, this.#heard);
  }

  readonly #heard = (signal: NodeJS.Signals): void => {
    switch (reaction(this.#phase, signal, this.#sharesTerminal, mayHearKeys)) {
      case 'pass-on':
        return this.#passOn(signal);
      case 'hurry':
        return this.#hurrying.abort();
      case 'stop':
        return void stopOurselves('SIGTSTP', this.#heard);
      case 'leave':
        // Asked a second time, we go at once: the store finds out that this process is gone.
        if (this.#left !== undefined) process.exit(128 + constants.signals[signal]);
        this.#left = signal;
        return this.#leaving.abort();
      case 'none':
    }
  };
}
