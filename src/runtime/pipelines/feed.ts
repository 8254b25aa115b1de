/** The one watch on pipelines of a process: for drivers, which must see a cancel, and for callers that wait for the end. */
import { type PipelineRecord, readRecord, type StoredRecord, isCount, isTime, isRecord } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { KeyValue, Revision } from '../../store/index.ts';
import { follow, startsOnce } from '../../store/follow.ts';
import { type RecordDocument, checked, type Fields } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';
import { begun } from '../subscription.ts';
import { ALL_PIPELINES, pipelineKeys, pipelineOfState } from './keys.ts';

/** The record of a pipeline, at a revision. */
export interface Seen {
  /** Undefined: there is no such pipeline. */
  readonly record: PipelineRecord | undefined;
  readonly mod: Revision;
}

export interface PipelineListener {
  saw(seen: Seen): void;
  /** Changes were missed: the listener has to read the record. */
  missed(): void;
}

/** Hears of every pipeline of the store. */
export interface AllPipelinesListener {
  /** `record` is undefined: there is no such pipeline any more, or its record cannot be read. */
  saw(id: string, record: PipelineRecord | undefined): void;
  /** Changes were missed: the listener has to read all records. */
  missed(): void;
}

export class PipelineFeed {
  readonly #runtime: Runtime;
  /** By the key of the state. */
  readonly #listeners = new Map<string, Set<PipelineListener>>();
  readonly #listenersToAll = new Set<AllPipelinesListener>();
  readonly #following = startsOnce(() => this.#follow());

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Resolves once no change can be missed, with the function that ends it. */
  async listen(id: string, listener: PipelineListener): Promise<() => void> {
    const { state } = pipelineKeys(id);
    const listeners = this.#listeners.get(state) ?? new Set();
    this.#listeners.set(state, listeners.add(listener));
    const stop = (): void => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(state) === listeners) this.#listeners.delete(state);
    };
    return this.#listening(stop);
  }

  /** Resolves once no change can be missed, with the function that ends it. */
  listenToAll(listener: AllPipelinesListener): Promise<() => void> {
    this.#listenersToAll.add(listener);
    return this.#listening(() => void this.#listenersToAll.delete(listener));
  }

  async #listening(stop: () => void): Promise<() => void> {
    await begun(this.#following, stop);
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
            const listeners = this.#listeners.get(key) ?? new Set();
            if (listeners.size + this.#listenersToAll.size === 0) continue;
            const [record] = change.kind === 'put' ? readEach([change.pair], recordIn) : [];
            for (const listener of listeners) {
              // A record that cannot be read throws for the process that reads it.
              if (change.kind === 'put' && record === undefined) listener.missed();
              else listener.saw({ record, mod: revision });
            }
            for (const listener of this.#listenersToAll) listener.saw(pipelineOfState(key), record);
          }
        },
        resync: async () => {
          const { revision } = await store.health(stopped);
          for (const listeners of this.#listeners.values()) for (const listener of listeners) listener.missed();
          for (const listener of this.#listenersToAll) listener.missed();
          return revision;
        },
      },
      stopped,
    );
  }
}

/** The record in today's form, also where an older version of signalbox wrote it. */
export function recordIn(pair: KeyValue): PipelineRecord {
  const { record } = checked<RecordDocument<StoredRecord>>(pair, (document) =>
    isRecord(document['record'])
      ? recordProblem(document['record'], pair.key)
      : `its record is ${shown(document['record'])}`,
  );
  const read = readRecord(record);
  if (read.ok) return read.record;
  const version = shown(read.version);
  throw new Failure(
    'corrupt',
    `${pair.key} has version ${version}: a newer signalbox wrote it, and this one cannot read it; update signalbox`,
  );
}

/** Checks the fields that every reader relies on. */
function recordProblem({ id, name, state, step, phases, outputs, startedAt }: Fields, key: string): string | undefined {
  if (id !== pipelineOfState(key)) return `its id is ${shown(id)}`;
  for (const [field, text] of Object.entries({ name, state })) {
    if (typeof text !== 'string') return `its ${field} is ${shown(text)}`;
  }
  if (!isRecord(step) || !isCount(step['phase'])) return `its step is ${shown(step)}`;
  if (!Array.isArray(phases) || !phases.every(isPhase)) return `its phases are ${shown(phases)}`;
  if (!isRecord(outputs)) return `its outputs are ${shown(outputs)}`;
  return isTime(startedAt) ? undefined : `its time is ${shown(startedAt)}`;
}

function isPhase(phase: unknown): boolean {
  return isRecord(phase) && typeof phase['name'] === 'string' && isCount(phase['runs']);
}
