/** A loss: how a hold ended although its holder did not release it, and who took it. */
import type { Hold } from './hold.ts';
import { NONE } from './machine.ts';

/** How a hold ended although its holder did not release it. */
export type LossReason = 'expired' | 'reclaimed' | 'forced' | 'released-elsewhere' | 'disconnected';

export interface Loss {
  readonly hold: Hold;
  readonly why: LossReason;
  /** Who took it by force, and for which stated reason. */
  readonly by?: string;
  readonly reason?: string;
}

/** Who took a hold by force, and for which stated reason. */
export type Taker = { readonly by: string; readonly reason: string };

/** The most characters of the reason in all losses of one taking together. */
const TOLD_REASONS = 64 * 1024;
const SHORTEST_REASON = 80;

/** Each lost hold carries the reason: of many holds, each carries only its beginning. */
export function takenBy(by: string, reason: string, count: number): Taker {
  const longest = Math.max(SHORTEST_REASON, Math.floor(TOLD_REASONS / Math.max(1, count)));
  return { by, reason: reason.length > longest ? `${reason.slice(0, longest)}…` : reason };
}

export function losses(holds: readonly Hold[], why: LossReason, who: Partial<Taker> = {}): readonly Loss[] {
  return holds.length === 0 ? NONE : holds.map((hold) => ({ hold, why, ...who }));
}
