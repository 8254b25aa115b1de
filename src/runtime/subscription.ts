/** Stops a subscription. */
export interface Subscription extends Disposable {
  unsubscribe(): void;
}
