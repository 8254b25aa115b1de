/** What maintenance has warned of, as the store keeps it: a process that comes later sees it too. */
import type { WitnessWarnings } from '../../core/troubles.ts';
import { type KeyValue, readRange } from '../../store/index.ts';
import { stateKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { isObject } from '../stored.ts';

export const WARNINGS_KEY = stateKey('witness', 'size');

/** What the processes of this store have heard already. */
export interface Told {
  readonly filling?: boolean;
  readonly damaged?: readonly string[];
  readonly failed?: KeepingFailure;
}

/** What a keeper of the record could not do. */
export interface KeepingFailure {
  readonly step: 'anchor' | 'archive';
  readonly why: string;
  /** How often in a row. */
  readonly times: number;
  /** The last time. */
  readonly at: number;
  /** The process that tried. */
  readonly by: string;
}

export async function readTold(
  runtime: Runtime,
): Promise<{ readonly told: Told; readonly pair: KeyValue | undefined; readonly at: number | undefined }> {
  const { pairs } = await readRange(runtime.store, { key: WARNINGS_KEY }, runtime.stopped);
  const [pair] = pairs;
  const document = pair?.value.json;
  if (!isObject(document) || !isObject(document['record'])) return { told: {}, pair, at: undefined };
  const [event] = Array.isArray(document['events']) ? (document['events'] as readonly unknown[]) : [];
  const at = isObject(event) && typeof event['at'] === 'number' ? event['at'] : undefined;
  return { told: document['record'] as Told, pair, at };
}

export async function warningsOf(runtime: Runtime): Promise<WitnessWarnings> {
  const { told, at } = await readTold(runtime);
  const damaged = Array.isArray(told.damaged) ? told.damaged.filter((one) => typeof one === 'string') : [];
  return { isFilling: told.filling === true, damaged, ...(at !== undefined && { at }) };
}
