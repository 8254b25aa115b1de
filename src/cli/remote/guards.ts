/** Guards that a server judges: checked once, or waited for. */
import type { Judged, RemoteCheckOptions, RemoteSignalbox } from '../../client/connect.ts';
import { type Clock, pause, systemClock, timeLimit } from '../../clock.ts';
import { type Condition, type Guard, type GuardOutcome, polledInputs, spoken, wakePatterns } from '../../core/index.ts';
import { outcomeOf } from '../../core/guard/guard.ts';
import { type CheckOptions, DEFAULT_POLL_MS, SHORTEST_POLL_AT_SERVER_MS } from '../../runtime/guards/executor.ts';
import { asGuard, type GuardWaitOptions, isFinal, retryMs } from '../../runtime/guards/wait.ts';
import { anyOf } from '../interrupt.ts';
import { tell } from '../output.ts';
import { Away } from './away.ts';

/** How long the server waits, and for what: see `RemoteCheckOptions`. */
export type Waits = Pick<RemoteCheckOptions, 'waitMs' | 'pollMs' | 'known'>;

type Judge = (
  client: RemoteSignalbox,
  condition: Condition,
  options: CheckOptions & { readonly waits?: Waits },
) => Promise<Judged>;

export function remoteGuards(client: RemoteSignalbox, judge: Judge, clock: Clock = systemClock): object {
  return {
    async check(guards: readonly Guard[], options: CheckOptions = {}): Promise<readonly GuardOutcome[]> {
      const judged = guards.map(async (guard) =>
        outcomeOf(guard, (await judge(client, guard.condition, options)).verdict),
      );
      return Promise.all(judged);
    },
    wait: (given: Condition | Guard, options: GuardWaitOptions = {}) =>
      waited(client, judge, asGuard(given), options, clock),
  };
}

/** If a look is under way when the time is over, the command waits this much longer for it. */
const ANSWER_MS = 3_000;
/** How long the server waits at once. */
const WAIT_MS = 30_000;
/** What is shown may change with each look, such as a time. */
const BETWEEN_MS = 100;

/**
 * The server waits, and answers when something looks different. One that is away may come back in time. It looks at an event at
 * once, and where nothing sends events, once per `pollMs`, however often it is asked; and after the `retry` of the guard.
 */
async function waited(
  client: RemoteSignalbox,
  judge: Judge,
  guard: Guard,
  { pollMs: asked = DEFAULT_POLL_MS, timeoutMs, onVerdict, signal, ...options }: GuardWaitOptions,
  clock: Clock,
): Promise<GuardOutcome> {
  const begun = clock.monotonic();
  const limits = timeoutMs === undefined ? [] : [timeLimit(timeoutMs, clock), timeLimit(timeoutMs + ANSWER_MS, clock)];
  const [limit, last] = limits.map((one) => one.signal);
  const away = new Away(Number.POSITIVE_INFINITY, clock);
  const [over, giveUp] = [limit, last].map((one) => anyOf(signal, one)) as [AbortSignal, AbortSignal];
  const isPolled = polledInputs(guard.condition).length > 0;
  // Then the server has nothing to wait for: this command asks once per `pollMs`.
  const sendsNoEvents = wakePatterns(guard.condition).length === 0;
  const pollMs = Math.max(asked, SHORTEST_POLL_AT_SERVER_MS);
  if (isPolled && pollMs > asked) tell(`signalbox: a server looks at its machine every ${spoken(pollMs)} at most`);
  const sliceMs = isPolled ? slice(pollMs) : WAIT_MS;
  // The server begins each wait with a look, so a guard with `retry` makes the waits shorter.
  const retryIn = (outcome: GuardOutcome): number => {
    return Math.max(retryMs(outcome) ?? Number.POSITIVE_INFINITY, SHORTEST_POLL_AT_SERVER_MS);
  };
  const waitsFor = (known: string, againMs: number): Waits => {
    const leftMs = timeoutMs === undefined ? sliceMs : timeoutMs - (clock.monotonic() - begun);
    const waitMs = Math.max(1, Math.min(leftMs, sliceMs, againMs - BETWEEN_MS));
    return { pollMs, waitMs, known };
  };
  let waits: Waits | undefined;
  // If there is no server at first, its user has to hear of it.
  let patience = new Away(0, clock);
  try {
    for (;;) {
      const judging = judge(client, guard.condition, { ...options, signal: giveUp, ...(waits && { waits }) });
      const told = await patience.unless(judging, giveUp);
      patience = away;
      signal?.throwIfAborted();
      if (told === undefined) {
        if (over.aborted) throw away.told(`after ${spoken(timeoutMs ?? 0)}`);
        await pause(isPolled ? pollMs : asked, over, clock);
        waits = undefined;
        continue;
      }
      const { explanation, text } = told;
      const outcome = outcomeOf(guard, explanation.verdict);
      onVerdict?.({ outcome, explanation });
      if (isFinal(outcome) || over.aborted) return outcome;
      const againMs = retryIn(outcome);
      await pause(sendsNoEvents ? Math.min(pollMs, againMs) : BETWEEN_MS, over, clock);
      signal?.throwIfAborted();
      // The last look is the answer: another one may take long.
      if (sendsNoEvents && over.aborted) return outcome;
      waits = sendsNoEvents ? {} : waitsFor(text, againMs);
    }
  } finally {
    for (const one of limits) one.cancel();
  }
}

/** How long the server waits at once, so that it has just looked when it answers. */
function slice(pollMs: number): number {
  return pollMs >= WAIT_MS ? WAIT_MS : WAIT_MS - (WAIT_MS % pollMs);
}
