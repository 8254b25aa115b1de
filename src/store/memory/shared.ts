/**
 * `memory:NAME`: one store for several openers in this process. It lives for as long as one of them has not closed
 * its handle; the next opener after that finds it empty.
 */
import { Failure, shown } from '../../failure.ts';
import { MemoryEngine, type MemoryOptions } from './engine.ts';
import { MemoryStore } from './store.ts';

interface Shared {
  readonly engine: MemoryEngine;
  readonly options: MemoryOptions;
  handles: number;
}

const open = new Map<string, Shared>();

/** Opens the store of this name in this process; all openers of the same name share it. */
export function openSharedMemory(name: string, options: MemoryOptions = {}): MemoryStore {
  const shared = open.get(name) ?? create(name, options);
  refuseOtherOptions(name, shared.options, options);
  shared.handles++;
  return new MemoryStore(shared.engine, () => leave(name, shared));
}

function create(name: string, options: MemoryOptions): Shared {
  const shared = { engine: new MemoryEngine(options), options, handles: 0 };
  open.set(name, shared);
  return shared;
}

function leave(name: string, shared: Shared): void {
  if (--shared.handles > 0) return;
  shared.engine.leases.stop();
  open.delete(name);
}

/** Refuses options that differ from those of the open store; options that are not given match any. */
function refuseOtherOptions(name: string, existing: MemoryOptions, asked: MemoryOptions): void {
  for (const option of ['clock', 'historyLimit'] as const) {
    if (asked[option] === undefined || asked[option] === existing[option]) continue;
    throw new Failure(
      'invalid',
      `memory:${name} is open with another ${option}, ${shown(existing[option])}: open it with the same or none`,
    );
  }
}
