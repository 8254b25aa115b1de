/** Stops a subscription. */
export interface Subscription extends Disposable {
  /** Ends it: the handler is not called again. */
  unsubscribe(): void;
}

export function subscription(unsubscribe: () => void): Subscription {
  return { unsubscribe, [Symbol.dispose]: unsubscribe };
}
