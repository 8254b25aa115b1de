/**
 * The guards of a run. They are checked while everything is held, so that nothing that they depend on under those locks can
 * change before the command begins. While one does not pass, the run holds nothing: others may be what it waits for.
 *
 *     acquire ── check ── passed ──▶ begin
 *        ▲         └── not yet ── release ── wait until it passes ──┐
 *        └──────────────────────────────────────────────────────────┘
 */
import { type Guard, type GuardOutcome, spoken } from '../../core/index.ts';
import { type GuardLook, isFinal } from '../../runtime/guards/wait.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { pause } from '../../clock.ts';
import { DEFAULT_POLL_MS } from '../../runtime/guards/executor.ts';
import { backoffMs } from '../../runtime/write/backoff.ts';
import { adaptersFor, type GuardFlags } from '../guard/settings.ts';
import { reasonsOf } from '../guard/verdict.ts';
import { shown } from '../../failure.ts';
import type { RunRequest } from './request.ts';
import type { Voice } from './voice.ts';

type Open = Exclude<GuardOutcome, { readonly kind: 'passed' }>;

/** A guard that is in the way, and why. */
export interface Blocking {
  readonly guard: Guard;
  readonly open: Open;
}

/** Of the process around the check: what does not count as held, and what its commands get. */
export interface Around {
  /** Holders whose holds do not count. */
  readonly own: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export class Guarding {
  readonly #guards: readonly Guard[];
  readonly #flags: GuardFlags & { readonly poll?: number };
  /** How often a wait has ended, and the guard failed again under the locks. */
  #passedInVain = 0;

  constructor(guards: readonly Guard[], flags: GuardFlags & { readonly poll?: number }) {
    this.#guards = guards;
    this.#flags = flags;
  }

  /** The first guard in the way; undefined if the command may begin. */
  async check(box: Signalbox, around: Around, voice: Voice): Promise<Blocking | undefined> {
    const { own, env, signal } = around;
    const adapters = await adaptersFor(this.#flags, env);
    voice.waiting(() => {
      const told = `checking ${this.#guards.map(({ id }) => named(id)).join(', ')}`;
      return Promise.resolve({ line: told, lasting: told });
    });
    try {
      const outcomes = await box.guards.check(this.#guards, { own, adapters, signal, commandsLast: true });
      const all = this.#guards.flatMap((guard, place): readonly Blocking[] => {
        const open = outcomes[place];
        return open === undefined || open.kind === 'passed' ? [] : [{ guard, open }];
      });
      for (const { open } of all.filter(isWarning))
        voice.say(`warning: ${named(open.guard)} does not pass: ${reasonsIn(open).join('; ')}`);
      return all.find((one) => !isWarning(one));
    } finally {
      voice.done();
    }
  }

  /** Resolves when the guard passes; it has to be checked again under the locks. Throws if there is no use in waiting. */
  async wait(
    box: Signalbox,
    { guard, open }: Blocking,
    around: Around,
    request: RunRequest,
    leftMs: number | undefined,
    voice: Voice,
  ): Promise<void> {
    if (isFinal(open) || leftMs === 0) throw notBegun(open, request);
    const { own, env, signal } = around;
    const adapters = await adaptersFor(this.#flags, env);
    let last: Open = open;
    voice.waiting((sinceMs) => {
      const why = `for ${named(guard.id)}; ${reasonsIn(last).join('; ')}`;
      return Promise.resolve({ line: `waiting ${spoken(sinceMs)} ${why}`, lasting: `waiting ${why}` });
    });
    const saw = ({ outcome }: GuardLook): void => {
      if (outcome.kind !== 'passed') last = outcome;
    };
    const { poll: pollMs } = this.#flags;
    try {
      const pauseMs = pauseBeforeWaitMs(this.#passedInVain, pollMs);
      const isTooLong = leftMs !== undefined && pauseMs >= leftMs;
      await pause(isTooLong ? leftMs : pauseMs, signal);
      if (isTooLong) throw notBegun(open, request);
      const outcome = await box.guards.wait(guard, {
        ...{ own, adapters, signal, onVerdict: saw },
        ...(pollMs !== undefined && { pollMs }),
        ...(leftMs !== undefined && { timeoutMs: leftMs - pauseMs }),
      });
      if (outcome.kind !== 'passed') throw notBegun(outcome, request);
      this.#passedInVain += 1;
    } finally {
      voice.done();
    }
  }
}

/**
 * The pause before a run waits for its guard again. A guard may pass only while the locks are free: without pauses that grow, its
 * commands would run one after the other for ever. `passedInVain`: how often a wait has ended, and the guard failed again under
 * the locks.
 */
export function pauseBeforeWaitMs(passedInVain: number, pollMs = DEFAULT_POLL_MS): number {
  return passedInVain === 0 ? 0 : backoffMs(passedInVain, pollMs);
}

function notBegun(open: Open, { waitMs = 0 }: RunRequest): CliExit {
  const isUnknown = open.kind === 'needsInput';
  const within = waitMs === 0 || isFinal(open) ? '' : ` within ${spoken(waitMs)}`;
  const what = isUnknown ? `cannot be judged${within}` : within === '' ? 'does not pass' : `did not pass${within}`;
  const reasons = reasonsIn(open);
  const [first] = reasons;
  const why = reasons.length === 1 ? ` ${first}` : ['', ...reasons].join('\n  ');
  const message = `the command was not started: ${named(open.guard)} ${what}:${why}`;
  const details = { outcome: 'guard', guard: open.guard, verdict: open.kind, reasons };
  return new CliExit(isUnknown ? EXIT.unreachable : EXIT.notAcquired, message, details);
}

/** The guard's own message for its failure comes first. */
function reasonsIn(open: Open): readonly string[] {
  if (open.kind === 'needsInput') return reasonsOf(open);
  const { action } = open;
  const own = typeof action === 'object' && 'fail' in action && action.fail !== '' ? [action.fail] : [];
  return [...own, ...open.reasons];
}

function isWarning({ open }: Blocking): boolean {
  return open.kind === 'failed' && open.action === 'warn';
}

function named(id: string): string {
  return `guard ${shown(id)}`;
}
