/**
 * Work that may be long is a generator that yields after each step. Where the event loop must not wait for the end of it,
 * `Slices` of the runtime runs it; elsewhere this does.
 */
export type Steps<Result> = Generator<void, Result, void>;

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
