/** What a request may do if its resource is not free: the same on every store, and on GitHub Issues. */
export const STRATEGIES = ['retry', 'fail-fast', 'steal-stale', 'force'] as const;

/**
 * `retry` waits in the queue, `fail-fast` gives up at once, `steal-stale` takes a stale hold even if a person would have to
 * decide, and `force` (for administrators) takes the resource from its holder.
 */
export type Strategy = (typeof STRATEGIES)[number];

export function mayWait(strategy: Strategy | undefined): boolean {
  return strategy !== 'fail-fast';
}

/** The fields of a request that make the machine act by its strategy. */
export function strategyFields(strategy: Strategy | undefined): { readonly steal?: true; readonly force?: true } {
  if (strategy === 'steal-stale') return { steal: true };
  return strategy === 'force' ? { force: true } : {};
}
