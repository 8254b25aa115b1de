/** What a listener gets back, to stop listening with. */
export interface Subscription extends Disposable {
  unsubscribe(): void;
}
