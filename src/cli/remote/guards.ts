/** Guards that a server judges: checked once, or waited for. */
import type { RemoteSignalbox } from '../../client/connect.ts';
import { type Clock, pause, systemClock, timeLimit } from '../../clock.ts';
import { type Condition, type Explanation, type Guard, type GuardOutcome, spoken } from '../../core/index.ts';
import { outcomeOf } from '../../core/guard/guard.ts';
import { type CheckOptions, DEFAULT_POLL_MS } from '../../runtime/guards/executor.ts';
import { asGuard, type GuardWaitOptions, isFinal } from '../../runtime/guards/wait.ts';
import { Away } from './away.ts';

type Explain = (client: RemoteSignalbox, condition: Condition, options: CheckOptions) => Promise<Explanation>;

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

function anyOf(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((one) => one !== undefined));
}

/** Looks again whenever something happens in the store, and every `pollMs`. A server that is away may come back in time. */
async function waited(
  client: RemoteSignalbox,
  explain: Explain,
  guard: Guard,
  { pollMs = DEFAULT_POLL_MS, timeoutMs, onVerdict, signal, ...options }: GuardWaitOptions,
  clock: Clock,
): Promise<GuardOutcome> {
  const limits = timeoutMs === undefined ? [] : [timeLimit(timeoutMs, clock), timeLimit(timeoutMs + ANSWER_MS, clock)];
  const [limit, last] = limits.map((one) => one.signal);
  const away = new Away(Number.POSITIVE_INFINITY, clock);
  const [over, giveUp] = [limit, last].map((one) => anyOf(signal, one)) as [AbortSignal, AbortSignal];
  let wake = new AbortController();
  let outcome: GuardOutcome | undefined;
  const subscription = await client.on('*', () => wake.abort());
  try {
    for (;;) {
      wake = new AbortController();
      const explanation = await away.unless(explain(client, guard.condition, { ...options, signal: giveUp }), giveUp);
      signal?.throwIfAborted();
      if (explanation !== undefined) {
        outcome = outcomeOf(guard, explanation.verdict);
        onVerdict?.({ outcome, explanation });
        if (isFinal(outcome) || over.aborted) return outcome;
      } else if (over.aborted) {
        throw away.told(`after ${spoken(timeoutMs ?? 0)}`);
      }
      await pause(pollMs, AbortSignal.any([wake.signal, over]), clock);
    }
  } finally {
    for (const one of limits) one.cancel();
    subscription.unsubscribe();
  }
}
