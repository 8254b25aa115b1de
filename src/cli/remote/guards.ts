/** Guards that a server judges: checked once, or waited for. */
import type { RemoteCheckOptions, RemoteSignalbox } from '../../client/connect.ts';
import { type Clock, pause, systemClock, timeLimit } from '../../clock.ts';
import {
  type Condition,
  type Explanation,
  type Guard,
  type GuardOutcome,
  renderExplanation,
  spoken,
} from '../../core/index.ts';
import { outcomeOf } from '../../core/guard/guard.ts';
import { type CheckOptions, DEFAULT_POLL_MS } from '../../runtime/guards/executor.ts';
import { asGuard, type GuardWaitOptions, isFinal } from '../../runtime/guards/wait.ts';
import { Away } from './away.ts';

/** How long the server waits, and for what: see `RemoteCheckOptions`. */
export type Waits = Pick<RemoteCheckOptions, 'waitMs' | 'pollMs' | 'known'>;

type Explain = (
  client: RemoteSignalbox,
  condition: Condition,
  options: CheckOptions & { readonly waits?: Waits },
) => Promise<Explanation>;

export function remoteGuards(client: RemoteSignalbox, explain: Explain, clock: Clock = systemClock): object {
  return {
    async check(guards: readonly Guard[], options: CheckOptions = {}): Promise<readonly GuardOutcome[]> {
      const judged = guards.map(async (guard) =>
        outcomeOf(guard, (await explain(client, guard.condition, options)).verdict),
      );
      return Promise.all(judged);
    },
    wait: (given: Condition | Guard, options: GuardWaitOptions = {}) =>
      waited(client, explain, asGuard(given), options, clock),
  };
}

/** If a look is under way when the time is over, the command waits this much longer for it. */
const ANSWER_MS = 3_000;
/** How long the server waits at once. */
const WAIT_MS = 30_000;
/** What is shown may change with each look, such as a time. */
const BETWEEN_MS = 100;

function anyOf(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((one) => one !== undefined));
}

/** The server waits, and answers when something looks different. One that is away may come back in time. */
async function waited(
  client: RemoteSignalbox,
  explain: Explain,
  guard: Guard,
  { pollMs = DEFAULT_POLL_MS, timeoutMs, onVerdict, signal, ...options }: GuardWaitOptions,
  clock: Clock,
): Promise<GuardOutcome> {
  const begun = clock.monotonic();
  const limits = timeoutMs === undefined ? [] : [timeLimit(timeoutMs, clock), timeLimit(timeoutMs + ANSWER_MS, clock)];
  const [limit, last] = limits.map((one) => one.signal);
  const away = new Away(Number.POSITIVE_INFINITY, clock);
  const [over, giveUp] = [limit, last].map((one) => anyOf(signal, one)) as [AbortSignal, AbortSignal];
  let waits: Waits | undefined;
  let isFirst = true;
  try {
    for (;;) {
      const asked = explain(client, guard.condition, { ...options, signal: giveUp, ...(waits && { waits }) });
      // If there is no server at first, its user has to hear of it.
      const explanation = isFirst ? await asked : await away.unless(asked, giveUp);
      isFirst = false;
      signal?.throwIfAborted();
      if (explanation !== undefined) {
        const outcome = outcomeOf(guard, explanation.verdict);
        onVerdict?.({ outcome, explanation });
        if (isFinal(outcome) || over.aborted) return outcome;
      } else if (over.aborted) {
        throw away.told(`after ${spoken(timeoutMs ?? 0)}`);
      }
      const known = explanation && renderExplanation(explanation).join('\n');
      await pause(known === undefined ? pollMs : BETWEEN_MS, over, clock);
      const leftMs = timeoutMs === undefined ? WAIT_MS : timeoutMs - (clock.monotonic() - begun);
      waits = known === undefined ? undefined : { known, pollMs, waitMs: Math.min(Math.max(1, leftMs), WAIT_MS) };
    }
  } finally {
    for (const one of limits) one.cancel();
  }
}
