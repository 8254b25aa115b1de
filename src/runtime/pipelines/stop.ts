/** Why the driver ends the command of a phase early, and what that means for the pipeline. */
import { type PhaseResult, spoken } from '../../core/index.ts';
import { HoldLost } from '../refusal.ts';

export class Stop extends Error {
  readonly result: PhaseResult;
  /** The command gets at most this long to end by itself, even if the driver would wait longer. */
  readonly mostMs: number;

  private constructor(result: PhaseResult, mostMs = Number.POSITIVE_INFINITY) {
    super('why' in result ? result.why : result.kind);
    this.name = 'Stop';
    this.result = result;
    this.mostMs = mostMs;
  }

  static timedOut(ms: number): Stop {
    return new Stop({ kind: 'failed', why: `timed out after ${spoken(ms)}` });
  }

  static holdLost(lost: unknown): Stop {
    const why = lost instanceof HoldLost ? lost.message : 'a hold was lost';
    return new Stop({ kind: 'failed', why: `${why} while it ran` });
  }

  static stopped(why: string): Stop {
    return new Stop({ kind: 'stopped', why });
  }

  /** Another driver may soon go on, perhaps from a machine that cannot see this command. */
  static replaced(mostMs: number): Stop {
    return new Stop({ kind: 'stopped', why: 'its driver lost its hold' }, mostMs);
  }

  static readonly cancelled = new Stop({ kind: 'cancelled' });

  static of(signal: AbortSignal): Stop {
    return signal.reason instanceof Stop ? signal.reason : Stop.stopped('it was stopped');
  }
}

/** A signal, and what it means for the command when it aborts. */
export type StopReason = readonly [AbortSignal, () => Stop];

/** Aborts with the first of several reasons to stop a command. */
export class FirstStop {
  readonly #controller = new AbortController();
  readonly #undo: readonly (() => void)[];

  constructor(reasons: readonly StopReason[]) {
    this.#undo = reasons.map(([signal, why]) => {
      const onAbort = (): void => this.stop(why());
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      return () => signal.removeEventListener('abort', onAbort);
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(why: Stop): void {
    this.#controller.abort(why);
  }

  /** Takes the listeners off signals that may outlive the command by far. */
  forget(): void {
    for (const undo of this.#undo) undo();
  }
}
