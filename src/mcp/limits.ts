/** The time limits of waits and holds over MCP. Tests pass shorter ones. */

export interface McpLimits {
  /** How long a call may block. Clients give up a silent call after a minute or two. */
  readonly blockMs: number;
  /** How long a client with the Tasks extension waits for its first answer: a short wait is cheaper than a task. */
  readonly taskAfterMs: number;
  /** After this time, a request whose ticket was not sent leaves the queue, and a grant that was not collected is released. */
  readonly windowMs: number;
  /** Over HTTP, a hold ends when its holder has made no call for this long. */
  readonly ttlMs: number;
  /** A hold ends after this time unless its holder extends it. */
  readonly maxHoldMs: number;
  /** How often a waiting call reports progress. */
  readonly progressMs: number;
  /** How often a client should poll its task. */
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
