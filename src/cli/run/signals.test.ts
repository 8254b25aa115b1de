import { describe, expect, it } from 'vitest';
import { type Phase, reaction } from './signals.ts';

const SIGNALS = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT'] as const;

const plan = (phase: Phase, sharesTerminal: boolean): string =>
  SIGNALS.map((signal) => `${signal.slice(3)} ${reaction(phase, signal, sharesTerminal)}`).join(', ');

describe('a signal to run', () => {
  it('is for run itself while it waits', () => {
    const told = 'INT leave, QUIT leave, TERM leave, HUP leave, USR1 leave, USR2 leave, TSTP stop, CONT none';
    expect([plan('waiting', false), plan('waiting', true)]).toEqual([told, told]);
  });

  it('is for the command while that runs, unless the terminal has sent it to the command as well', () => {
    expect(plan('running', false)).toBe(
      'INT pass-on, QUIT pass-on, TERM pass-on, HUP pass-on, USR1 pass-on, USR2 pass-on, TSTP pass-on, CONT pass-on',
    );
    expect(plan('running', true)).toBe(
      'INT none, QUIT none, TERM pass-on, HUP pass-on, USR1 pass-on, USR2 pass-on, TSTP stop, CONT none',
    );
  });

  it('asks to hurry while the command is being ended, unless it is only another TERM', () => {
    const told = 'INT hurry, QUIT hurry, TERM none, HUP hurry, USR1 none, USR2 none, TSTP stop, CONT none';
    expect([plan('losing', false), plan('losing', true)]).toEqual([told, told]);
  });

  it('asks to hurry while leftovers are being ended', () => {
    const told = 'INT hurry, QUIT hurry, TERM hurry, HUP hurry, USR1 none, USR2 none, TSTP stop, CONT none';
    expect([plan('ending', false), plan('ending', true)]).toEqual([told, told]);
  });
});
