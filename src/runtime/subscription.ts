/**
 * Subscriptions, and the process that they keep alive for as long as it listens. Node ends a program that waits for nothing but the
 * network of a store and timers of signalbox, because these never keep it alive by themselves; a program that only listens would
 * end at once.
 */
import type { Clock } from '../clock.ts';
import { type Accepted, flag } from './options.ts';

/** Stops a subscription. */
export interface Subscription extends Disposable {
  /** Ends it: the handler is not called again. */
  unsubscribe(): void;
}

export function subscription(unsubscribe: () => void): Subscription {
  return { unsubscribe, [Symbol.dispose]: unsubscribe };
}

/** Resolves with the subscription once it has begun. If it cannot begin, takes back what was registered for it. */
export async function begun(begin: () => Promise<unknown>, unsubscribe: () => void): Promise<Subscription> {
  try {
    await begin();
  } catch (error) {
    unsubscribe();
    throw error;
  }
  return subscription(unsubscribe);
}

export interface ListenOptions {
  /** Whether the process stays alive until this ends, or the signalbox is closed. True unless said otherwise. */
  readonly keepAlive?: boolean;
}

export const LISTEN: Readonly<Record<'keepAlive', Accepted>> = { keepAlive: flag };

interface Listening {
  readonly clock: Clock;
  readonly stopped: AbortSignal;
}

/** Gives the function that lets the process end. */
export function keepingAlive({ clock, stopped }: Listening, { keepAlive = true }: ListenOptions): () => void {
  const alive = keepAlive && !stopped.aborted ? clock.keepAlive?.() : undefined;
  if (alive === undefined) return () => undefined;
  const over = (): void => {
    alive.cancel();
    stopped.removeEventListener('abort', over);
  };
  stopped.addEventListener('abort', over);
  return over;
}

/** Begins to listen, and stays alive until the subscription ends. */
export async function listening(
  host: Listening,
  options: ListenOptions,
  begin: () => Promise<Subscription>,
): Promise<Subscription> {
  const over = keepingAlive(host, options);
  let listens: Subscription | undefined;
  const unsubscribe = (): void => {
    listens?.unsubscribe();
    over();
  };
  return begun(async () => (listens = await begin()), unsubscribe);
}
