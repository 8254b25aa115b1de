/** Tells the program when a wait or a stream has lost its server for more than a second, and when it has one again. */
import type { Clock, Timer } from './clock.ts';

/** Nobody notices a shorter interruption. */
const UNTOLD_MS = 1_000;

interface Teller {
  readonly clock: Clock;
  tellAway(trouble?: unknown): void;
}

export interface Absence {
  lost(trouble: unknown): void;
  heard(): void;
  /** The wait or the stream is over. */
  end(): void;
}

export function absenceOf(teller: Teller): Absence {
  let timer: Timer | undefined;
  let isTold = false;
  let why: unknown;
  const end = (): void => timer?.cancel();
  return {
    end,
    lost(trouble) {
      why = trouble;
      timer ??= teller.clock.timer(UNTOLD_MS, () => {
        isTold = true;
        teller.tellAway(why);
      });
    },
    heard() {
      end();
      timer = undefined;
      if (isTold) teller.tellAway();
      isTold = false;
    },
  };
}
