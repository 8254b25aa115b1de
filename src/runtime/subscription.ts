/** Stops a subscription. */
export interface Subscription extends Disposable {
  unsubscribe(): void;
}

export function subscription(unsubscribe: () => void): Subscription {
  return { unsubscribe, [Symbol.dispose]: unsubscribe };
}
