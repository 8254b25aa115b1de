/** Ends calls when their signal aborts. All calls of a signal share one listener, because adding one costs more than a call. */
export class Aborts<Call> {
  readonly #those = new Map<AbortSignal, Those<Call>>();
  readonly #onAbort: (call: Call, reason: unknown) => void;

  constructor(onAbort: (call: Call, reason: unknown) => void) {
    this.#onAbort = onAbort;
  }

  add(signal: AbortSignal, call: Call): void {
    const those = this.#those.get(signal) ?? this.#listenTo(signal);
    those.calls.add(call);
  }

  delete(signal: AbortSignal, call: Call): void {
    this.#those.get(signal)?.calls.delete(call);
  }

  /** Must be called now and then: a listener keeps its signal in memory, even if the signal was made for a single call. */
  forgetIdle(): void {
    for (const [signal, { calls, listener }] of this.#those) {
      if (calls.size > 0) continue;
      signal.removeEventListener('abort', listener);
      this.#those.delete(signal);
    }
  }

  #listenTo(signal: AbortSignal): Those<Call> {
    const calls = new Set<Call>();
    const listener = (): void => {
      for (const call of [...calls]) this.#onAbort(call, signal.reason);
    };
    signal.addEventListener('abort', listener);
    const those = { calls, listener };
    this.#those.set(signal, those);
    return those;
  }
}

interface Those<Call> {
  readonly calls: Set<Call>;
  readonly listener: () => void;
}
