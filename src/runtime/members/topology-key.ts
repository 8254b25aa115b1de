/**
 * The key under which the topology is broadcast: its event reaches every process that runs, and its value every process that
 * starts later.
 */
import { type Topology, type Token, isCount, isRecord } from '../../core/index.ts';
import { shown } from '../../failure.ts';
import { type KeyValue, readRange, type Revision } from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { encode, stateKey, checked, type Fields } from '../layout.ts';
import { begun, listening, type ListenOptions, type Subscription } from '../subscription.ts';
import { frozenCopy } from '../own-copy.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import { readEach } from '../stored.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import { type NextStep, writeOnce } from '../write/write-once.ts';

const KEY = stateKey('topology', 'current');

interface Stored {
  readonly record: {
    readonly v: 1;
    /** The epoch of the leader that sent it: an earlier leader cannot overwrite it. */
    readonly epoch: Token;
    /** Identifies the broadcast, should its answer get lost. */
    readonly id: string;
  };
  readonly events: readonly [{ readonly topology: Topology }];
}

export async function lastTopology(runtime: Runtime): Promise<Topology | null> {
  const [stored] = await storedTopology(runtime);
  return stored?.events[0].topology ?? null;
}

async function storedTopology(runtime: Runtime): Promise<readonly [Stored | undefined, KeyValue | undefined]> {
  const { pairs } = await readRange(runtime.store, { key: KEY }, runtime.stopped);
  return [pairs[0] === undefined ? undefined : topologyIn(pairs[0]), pairs[0]];
}

/** Whether it was sent: not if a later leader has sent one. */
export function sendTopology(
  runtime: Runtime,
  epoch: Token,
  topology: Topology,
  signal: AbortSignal,
): Promise<boolean> {
  const id = runtime.options.newId();
  return writeOnce<readonly [Stored | undefined, KeyValue | undefined], boolean>(runtime, {
    read: () => storedTopology(runtime),
    found: ([stored]) => (stored?.record.id === id ? true : undefined),
    decide: ([stored, pair]): NextStep<readonly [Stored | undefined, KeyValue | undefined], boolean> => {
      if (stored !== undefined && stored.record.epoch > epoch) return { kind: 'answer', answer: false };
      const at = runtime.clock.now();
      const event = {
        type: 'topology:changed',
        at,
        holder: topology.coordinator ?? '',
        topology: frozenCopy(topology as never),
      };
      const value = encode({ record: { v: 1, epoch, id }, events: [event] });
      return {
        kind: 'write',
        transaction: ifUnchanged(KEY, pair?.modRevision ?? 0, [{ do: 'put', key: KEY, value }]),
        deeds: [
          {
            resource: 'topology/current',
            actor: topology.coordinator ?? '',
            command: 'broadcast',
            outcome: 'sent',
            events: [event.type],
            detail: { epoch, members: topology.members.length },
          },
        ],
        landed: () => true,
      };
    },
    until: signal,
  });
}

/** Calls `handler` with the last topology, then with every later one. A handler that is too slow skips some. */
export function followTopology(
  runtime: Runtime,
  handler: (topology: Topology) => void | Promise<void>,
  options: ListenOptions,
): Promise<Subscription> {
  return listening(runtime, options, async () => {
    const over = new AbortController();
    const signal = AbortSignal.any([runtime.stopped, over.signal]);
    let told: Revision = 0;
    let newest: KeyValue | undefined;
    const queue = new SubscriberQueue<KeyValue>(
      async (pair) => {
        if (pair.modRevision <= told) return;
        told = pair.modRevision;
        for (const { events } of readEach([pair], topologyIn)) await handler(events[0].topology);
      },
      () => (newest === undefined ? [] : [newest]),
    );
    const saw = (pair: KeyValue): void => {
      newest = pair;
      queue.add(pair);
    };
    const read = async (): Promise<Revision> => {
      const { pairs, revision } = await readRange(runtime.store, { key: KEY }, signal);
      for (const pair of pairs) saw(pair);
      return revision;
    };
    const stop = (): void => {
      over.abort();
      queue.stop();
    };
    const begin = async (): Promise<void> => {
      const changes = (seen: { readonly changes: readonly { kind: string; pair?: KeyValue }[] }): void => {
        for (const { pair } of seen.changes) if (pair !== undefined) saw(pair);
      };
      await follow(runtime.store, runtime.clock, { key: KEY }, { changes, resync: read }, signal);
      await read();
    };
    return begun(begin, stop);
  });
}

function topologyIn(pair: KeyValue): Stored {
  return checked<Stored>(pair, documentProblem);
}

function documentProblem({ record, events }: Fields): string | undefined {
  if (!isRecord(record) || !isCount(record['epoch'])) return `its record is ${shown(record)}`;
  const [event] = Array.isArray(events) ? (events as unknown[]) : [];
  const topology = isRecord(event) ? event['topology'] : undefined;
  const isFine = isRecord(topology) && Array.isArray(topology['members']);
  return isFine ? undefined : `its topology is ${shown(topology)}`;
}
