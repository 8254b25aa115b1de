/** The names of what a request may do if its resource is not free: the same on every store, and on GitHub Issues. */
export const STRATEGIES = ['retry', 'fail-fast', 'steal-stale', 'force'] as const;

/**
 * `retry` waits in the queue, `fail-fast` gives up at once, `steal-stale` takes a stale hold even if a person would have to
 * decide, and `force` (for administrators) takes the resource from its holder.
 */
export type Strategy = (typeof STRATEGIES)[number];
