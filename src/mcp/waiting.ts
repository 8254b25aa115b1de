/**
 * Waits of tools. A call blocks for a while; a longer wait goes on as a task, if the client has the Tasks extension, or with a
 * ticket:
 *
 *     call ──▶ granted
 *       ├───▶ busy                      the client wanted to wait no longer
 *       ├───▶ task ──tasks/get──▶ …     costs the model no turn
 *       └───▶ ticket ──wait──▶ …        keeps its place for as long as it is asked for
 */
import type { Desk, ToolCall } from './tool.ts';

export interface Wait {
  /** How long the caller wants to wait in all. */
  readonly totalMs: number;
  /** How long this call blocks. */
  readonly blockMs: number;
  /** Whether the wait goes on after this call. */
  readonly goesOn: boolean;
}

export function waitOf({ takesTasks, limits }: ToolCall, totalMs: number): Wait {
  const { blockMs, taskAfterMs } = limits;
  if (totalMs <= blockMs) return { totalMs, blockMs: totalMs, goesOn: false };
  return { totalMs, blockMs: takesTasks ? Math.min(taskAfterMs, blockMs) : blockMs, goesOn: true };
}

/** Ends a wait: when the client leaves, and when the server stops. */
export function waitEnd({ signal, stopping }: { readonly signal: AbortSignal } & Pick<Desk, 'stopping'>): AbortSignal {
  return stopping === undefined ? signal : AbortSignal.any([signal, stopping]);
}

/** Whether the server cut a wait short: its client is still there, and goes on at another server or after the restart. */
export function isCutShort({ signal, stopping }: Pick<ToolCall, 'signal' | 'stopping'>): boolean {
  return stopping?.aborted === true && !signal.aborted;
}

/** Reports progress while `work` runs. `told` returns what the call waits for; it may have to read the store. */
export async function reporting<T>(
  { progress, clock, limits }: ToolCall,
  ofMs: number,
  told: () => Promise<string> | string,
  work: Promise<T>,
): Promise<T> {
  if (progress === undefined) return work;
  const begun = clock.monotonic();
  let isOver = false;
  const report = async (): Promise<void> => {
    const message = await Promise.resolve()
      .then(told)
      .catch(() => 'waiting');
    if (!isOver) progress(clock.monotonic() - begun, ofMs, message);
  };
  const next = (): void => {
    timer = clock.timer(limits.progressMs, next);
    void report();
  };
  let timer = clock.timer(limits.progressMs, next);
  try {
    return await work;
  } finally {
    isOver = true;
    timer.cancel();
  }
}
