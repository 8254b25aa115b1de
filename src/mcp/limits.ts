/** The times that govern waits and holds over MCP. Tests pass shorter ones. */

export interface McpLimits {
  /** The longest time that a call blocks. Clients give up a silent call after a minute or two. */
  readonly blockMs: number;
  /** How long a client that takes tasks waits for its first answer: a short wait is cheaper than a task. */
  readonly taskAfterMs: number;
  /** A ticket that nobody asks for leaves the queue after this time, and a grant that nobody collects goes back. */
  readonly windowMs: number;
  /** Over HTTP, a hold ends when its holder has called nothing for this long. */
  readonly ttlMs: number;
  /** A hold ends after this time unless its holder extends it. */
  readonly maxHoldMs: number;
  /** How often a call that waits reports progress. */
  readonly progressMs: number;
  /** How often a client should ask for its task. */
  readonly pollMs: number;
}

export const LIMITS: McpLimits = {
  blockMs: 45_000,
  taskAfterMs: 5_000,
  windowMs: 60_000,
  ttlMs: 600_000,
  maxHoldMs: 1_800_000,
  progressMs: 10_000,
  pollMs: 2_000,
};
