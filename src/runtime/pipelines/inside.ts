/**
 * Knows which phases the calling code is part of. A function phase that waits for the end of its own pipeline would wait
 * for itself, so every such wait asks here first.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { PipelineRecord, Token } from '../../core/index.ts';

export interface PhaseInside {
  readonly pipeline: string;
  /** The token of the driver: every later driver of the pipeline has a larger one. */
  readonly token: Token;
  /** Aborts when the phase must end. */
  readonly stop: AbortSignal;
}

/** The innermost phase comes last: a function phase may drive another pipeline. */
const inside = new AsyncLocalStorage<readonly Entry[]>();

type Entry = PhaseInside & { isOver: boolean };

/** While the storage is in use, every promise of the process costs more (before Node 24), so it is given up after the last phase. */
const running = new Set<Entry>();

export async function callInside<T>(phase: PhaseInside, call: () => T): Promise<Awaited<T>> {
  const entry: Entry = { ...phase, isOver: false };
  running.add(entry);
  try {
    return await inside.run([...(inside.getStore() ?? []), entry], call);
  } finally {
    // Work that the function left running may wait for the pipeline.
    entry.isOver = true;
    running.delete(entry);
    if (running.size === 0) inside.disable();
  }
}

/** The phase of this pipeline that the caller is part of; undefined if there is none. */
export function phaseAround({ id, driver }: PipelineRecord): PhaseInside | undefined {
  return inside
    .getStore()
    ?.find(({ pipeline, token, isOver }) => !isOver && pipeline === id && token === driver?.token);
}
