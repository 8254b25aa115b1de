/** What each strategy means for a lock or a semaphore. This is the only place that knows. */
import type { Strategy } from '../core/strategy.ts';

export function mayWait(strategy: Strategy | undefined): boolean {
  return strategy !== 'fail-fast';
}

/** The fields of a request that make the machine act by its strategy. */
export function strategyFields(strategy: Strategy | undefined): { readonly steal?: true; readonly force?: true } {
  if (strategy === 'steal-stale') return { steal: true };
  return strategy === 'force' ? { force: true } : {};
}
