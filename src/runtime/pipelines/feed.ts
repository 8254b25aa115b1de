/** The one watch on pipelines that a process has: for drivers, which have to hear of a cancel, and for who waits for an end. */
import { type PipelineRecord, readRecord, type StoredRecord } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { Revision } from '../../store/index.ts';
import { follow } from '../follow.ts';
import { decode, type RecordDocument } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { ALL_PIPELINES, pipelineOfState } from './keys.ts';

/** How a pipeline stands, and since which revision. */
export interface Seen {
  /** Undefined: there is none. */
  readonly record: PipelineRecord | undefined;
  readonly mod: Revision;
}

export interface PipelineListener {
  saw(seen: Seen): void;
  /** Something was missed: how it stands has to be read. */
  missed(): void;
}

export class PipelineFeed {
  readonly #runtime: Runtime;
  readonly #listeners = new Map<string, Set<PipelineListener>>();
  #following: Promise<unknown> | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Resolves once nothing can be missed, with what ends it. */
  async listen(id: string, listener: PipelineListener): Promise<() => void> {
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    const stop = (): void => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id);
    };
    try {
      await (this.#following ??= this.#follow());
    } catch (error) {
      this.#following = undefined;
      stop();
      throw error;
    }
    return stop;
  }

  #follow(): Promise<unknown> {
    const { store, clock, stopped } = this.#runtime;
    return follow(
      store,
      clock,
      ALL_PIPELINES,
      {
        changes: ({ changes, revision }) => {
          for (const change of changes) {
            const key = change.kind === 'put' ? change.pair.key : change.key;
            const listeners = this.#listeners.get(pipelineOfState(key));
            if (listeners === undefined) continue;
            const record = change.kind === 'put' ? recordIn(change.pair) : undefined;
            for (const listener of listeners) listener.saw({ record, mod: revision });
          }
        },
        resync: async () => {
          const { revision } = await store.health(stopped);
          for (const listeners of this.#listeners.values()) for (const listener of listeners) listener.missed();
          return revision;
        },
      },
      stopped,
    );
  }
}

/** The record of today, also where an older version of signalbox wrote it. */
export function recordIn(pair: Parameters<typeof decode>[0]): PipelineRecord {
  const read = readRecord(decode<RecordDocument<StoredRecord>>(pair).record);
  if (read.ok) return read.record;
  const version = shown(read.version);
  throw new Failure(
    'corrupt',
    `${pair.key} has version ${version}, which this signalbox cannot read: update signalbox`,
  );
}
