/** Which calls end with which signal: one listener for all calls of a signal, because adding one costs more than a call. */
export class Aborts<Call> {
  readonly #calls = new WeakMap<AbortSignal, Set<Call>>();
  readonly #onAbort: (call: Call, reason: unknown) => void;

  constructor(onAbort: (call: Call, reason: unknown) => void) {
    this.#onAbort = onAbort;
  }

  /** Those that end with it, to be added to and taken from. */
  of(signal: AbortSignal): Set<Call> {
    const known = this.#calls.get(signal);
    if (known !== undefined) return known;
    const calls = new Set<Call>();
    this.#calls.set(signal, calls);
    signal.addEventListener('abort', () => {
      for (const call of [...calls]) this.#onAbort(call, signal.reason);
    });
    return calls;
  }
}
