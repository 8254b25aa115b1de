/** How long somebody waits for a task: until its time is over, its signal aborts, or the signalbox is closed. */
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';

export interface TaskWaitOptions {
  /** Give up after this time; zero: do not wait at all. Without it, as long as it takes. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** Ends a wait, once. */
export class WaitDeadline {
  /** Rejects with `NotAcquired` when the wait is over. */
  readonly over: Promise<never>;
  isOver = false;
  readonly #finish: () => void;
  #end: (refusal: Refusal) => void = () => undefined;

  constructor(runtime: Runtime, resource: string, { waitMs, signal }: TaskWaitOptions) {
    const alive = runtime.clock.keepAlive?.();
    const timer =
      waitMs === undefined || waitMs === 0
        ? undefined
        : runtime.clock.timer(waitMs, () => this.end({ kind: 'timed-out', waitedMs: waitMs }));
    const aborted = (): void => this.end({ kind: 'aborted', reason: signal?.reason as unknown });
    this.#finish = () => {
      this.isOver = true;
      alive?.cancel();
      timer?.cancel();
      signal?.removeEventListener('abort', aborted);
    };
    this.over = new Promise<never>((_, reject) => {
      this.#end = (refusal) => reject(new NotAcquired(resource, refusal));
    });
    // Whether anybody listens to it or not.
    this.over.catch(() => undefined);
    if (signal?.aborted === true) aborted();
    else signal?.addEventListener('abort', aborted, { once: true });
  }

  end(refusal: Refusal): void {
    if (this.isOver) return;
    this.finish();
    this.#end(refusal);
  }

  /** It got what it waited for. */
  finish(): void {
    this.#finish();
  }
}
