/**
 * Decides what to do with a signal that this process receives.
 *
 *     waiting    the command has not begun: leave the queue and end as if by that signal
 *     running    pass it on to the command, unless the terminal has sent it to the command as well
 *     losing     the command is being ended because a hold was lost: hurry, unless the signal is a TERM. It asks for no
 *                more than what is being done, and may come from a program: the next holder sends one to everything that
 *                an outer run left behind when it was killed. If we hurried, the command would lose its time to clean up
 *     ending     the command has ended, but may have left processes behind: hurry
 */
import { constants } from 'node:os';
import { stopOurselves } from './job-control.ts';
import { mayHearKeys } from './terminal.ts';

export type Phase = 'waiting' | 'running' | 'losing' | 'ending';
export type Reaction = 'leave' | 'pass-on' | 'hurry' | 'stop' | 'none';

/** Signals that would end this process if it did not handle them. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGALRM', 'SIGUSR1', 'SIGUSR2'];
const LISTENED: readonly NodeJS.Signals[] = [...ENDING, 'SIGTSTP', 'SIGCONT'];
const INTERRUPTING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
/** Not HUP, by which many commands read their configuration again and go on. */
const ENDING_A_COMMAND: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGQUIT'];
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
    case 'losing':
      return signal === 'SIGTERM' ? 'none' : reaction('ending', signal, sharesTerminal);
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
  /** A signal that should end the command has arrived, no matter how it reaches the command. */
  wasInterrupted = false;
  #endedBy: NodeJS.Signals | undefined;

  constructor(sharesTerminal: boolean) {
    this.#sharesTerminal = sharesTerminal;
    for (const signal of LISTENED) process.on(signal, this.#heard);
  }

  /** Aborts when the command must not begin any more. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Aborts when a further signal asks us to hurry. */
  get hurrying(): AbortSignal {
    return this.#hurrying.signal;
  }

  /** The signal that ended the wait, if one did. */
  get left(): NodeJS.Signals | undefined {
    return this.#left;
  }

  /** The first signal that asked for the end of it all after the command had begun, if one did. */
  get endedBy(): NodeJS.Signals | undefined {
    return this.#endedBy;
  }

  running(passOn: (signal: NodeJS.Signals) => void): void {
    this.#phase = 'running';
    this.#passOn = passOn;
  }

  losing(): void {
    this.#phase = 'losing';
  }

  ending(): void {
    if (this.#phase !== 'losing') this.#phase = 'ending';
  }

  stop(): void {
    for (const signal of LISTENED) process.removeListener(signal, this.#heard);
  }

  readonly #heard = (signal: NodeJS.Signals): void => {
    if (INTERRUPTING.includes(signal)) this.wasInterrupted = true;
    if (this.#asksForTheEnd(signal)) this.#endedBy ??= signal;
    switch (reaction(this.#phase, signal, this.#sharesTerminal, mayHearKeys)) {
      case 'pass-on':
        return this.#passOn(signal);
      case 'hurry':
        return this.#hurrying.abort();
      case 'stop':
        return void stopOurselves('SIGTSTP', this.#heard);
      case 'leave':
        // At the second signal we exit at once; the store notices that this process is gone.
        if (this.#left !== undefined) process.exit(128 + constants.signals[signal]);
        this.#left = signal;
        return this.#leaving.abort();
      case 'none':
    }
  };

  #asksForTheEnd(signal: NodeJS.Signals): boolean {
    if (this.#phase === 'waiting') return false;
    return (this.#phase === 'running' ? ENDING_A_COMMAND : INTERRUPTING).includes(signal);
  }
}
