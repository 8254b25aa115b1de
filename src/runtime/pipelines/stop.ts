/** Why the command of a phase is to end before it has ended by itself, and what that means for the pipeline. */
import { type PhaseResult, spoken } from '../../core/index.ts';
import { HoldLost } from '../refusal.ts';

export class Stop extends Error {
  readonly result: PhaseResult;

  private constructor(result: PhaseResult) {
    super('why' in result ? result.why : result.kind);
    this.name = 'Stop';
    this.result = result;
  }

  static timedOut(ms: number): Stop {
    return new Stop({ kind: 'failed', why: `timed out after ${spoken(ms)}` });
  }

  static holdLost(lost: unknown): Stop {
    const why = lost instanceof HoldLost ? lost.message : 'a hold was lost';
    return new Stop({ kind: 'failed', why: `${why} while it ran` });
  }

  /** The driver was told to stop, or has lost its own hold. */
  static stopped(why: string): Stop {
    return new Stop({ kind: 'stopped', why });
  }

  static readonly cancelled = new Stop({ kind: 'cancelled' });

  static of(signal: AbortSignal): Stop {
    return signal.reason instanceof Stop ? signal.reason : Stop.stopped('it was stopped');
  }
}
