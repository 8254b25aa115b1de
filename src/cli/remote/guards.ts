/** Guards that a server judges: checked once, or waited for. */
import type { RemoteSignalbox } from '../../client/connect.ts';
import { pause } from '../../clock.ts';
import type { Condition, Explanation, Guard, GuardOutcome } from '../../core/index.ts';
import { outcomeOf } from '../../core/guard/guard.ts';
import { type CheckOptions, DEFAULT_POLL_MS } from '../../runtime/guards/executor.ts';
import { asGuard, type GuardWaitOptions, isFinal } from '../../runtime/guards/wait.ts';

type Explain = (client: RemoteSignalbox, condition: Condition, options: CheckOptions) => Promise<Explanation>;

export function remoteGuards(client: RemoteSignalbox, explain: Explain): object {
  return {
    async check(guards: readonly Guard[], options: CheckOptions = {}): Promise<readonly GuardOutcome[]> {
      const judged = guards.map(async (guard) =>
        outcomeOf(guard, (await explain(client, guard.condition, options)).verdict),
      );
      return Promise.all(judged);
    },
    wait: (given: Condition | Guard, options: GuardWaitOptions = {}) =>
      waited(client, explain, asGuard(given), options),
  };
}

/** Looks again whenever something happens in the store, and every `pollMs`. */
async function waited(
  client: RemoteSignalbox,
  explain: Explain,
  guard: Guard,
  { pollMs = DEFAULT_POLL_MS, timeoutMs, onVerdict, signal, ...options }: GuardWaitOptions,
): Promise<GuardOutcome> {
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  let wake = new AbortController();
  const subscription = await client.on('*', () => wake.abort());
  try {
    for (;;) {
      wake = new AbortController();
      const explanation = await explain(client, guard.condition, {
        ...options,
        ...(signal !== undefined && { signal }),
      });
      const outcome = outcomeOf(guard, explanation.verdict);
      onVerdict?.({ outcome, explanation });
      if (isFinal(outcome) || late?.aborted === true) return outcome;
      await pause(pollMs, AbortSignal.any([wake.signal, ...[signal, late].filter((one) => one !== undefined)]));
      signal?.throwIfAborted();
    }
  } finally {
    subscription.unsubscribe();
  }
}
