/** Turns a subscription into an async iterator. It takes one item at a time: later ones wait in the subscriber's queue. */
import type { Subscription } from './subscription.ts';

type Handler<T> = (item: T) => Promise<void>;

/** Ends when `over` aborts, or when the loop is left. Throws the reason of `failed`, if that aborts first. */
export async function* iterated<T>(
  subscribe: (handler: Handler<T>) => Subscription | Promise<Subscription>,
  over: AbortSignal,
  failed?: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  let next: { readonly item: T; readonly taken: () => void } | undefined;
  let wake = (): void => {};
  const stop = (): void => wake();
  const subscription = await subscribe(
    (item) =>
      new Promise<void>((taken) => {
        next = { item, taken };
        wake();
      }),
  );
  over.addEventListener('abort', stop);
  failed?.addEventListener('abort', stop);
  try {
    while (!over.aborted) {
      failed?.throwIfAborted();
      if (next === undefined) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      const { item, taken } = next;
      next = undefined;
      taken();
      yield item;
    }
  } finally {
    over.removeEventListener('abort', stop);
    failed?.removeEventListener('abort', stop);
    subscription.unsubscribe();
  }
}
