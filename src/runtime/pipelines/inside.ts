/**
 * Which phases the calling code is part of. A function phase that waits for the end of its own pipeline waits for itself;
 * so whatever would wait for that asks here first.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { PipelineRecord, Token } from '../../core/index.ts';

export interface PhaseInside {
  readonly pipeline: string;
  /** Of the driver: another pipeline of the same id, in another store, is not meant. */
  readonly token: Token;
  /** Aborts when the phase is to end. */
  readonly stop: AbortSignal;
}

/** The innermost last: a function phase may drive another pipeline. */
const inside = new AsyncLocalStorage<readonly Entry[]>();

type Entry = PhaseInside & { isOver: boolean };

export async function callInside<T>(phase: PhaseInside, call: () => T): Promise<Awaited<T>> {
  const entry: Entry = { ...phase, isOver: false };
  try {
    return await inside.run([...(inside.getStore() ?? []), entry], call);
  } finally {
    // What the function left behind, to go on by itself, may wait for the pipeline.
    entry.isOver = true;
  }
}

/** The phase of this pipeline that the caller is part of; undefined if it is part of none. */
export function phaseAround({ id, driver }: PipelineRecord): PhaseInside | undefined {
  return inside
    .getStore()
    ?.find(({ pipeline, token, isOver }) => !isOver && pipeline === id && token === driver?.token);
}
