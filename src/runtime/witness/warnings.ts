/** The warnings of maintenance, kept in the store so that a later process sees them too. */
import { isRecord } from '../../core/index.ts';
import type { WitnessWarnings } from '../../core/troubles.ts';
import { type KeyValue, readRange } from '../../store/index.ts';
import { stateKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';

export const WARNINGS_KEY = stateKey('witness', 'size');

/** The warnings that the processes of this store have already had. */
export interface Told {
  readonly filling?: boolean;
  readonly damaged?: readonly string[];
  readonly failed?: KeepingFailure;
  /** When a process last warned that the record fills up or is damaged. */
  readonly at?: number;
}

/** A task that maintenance could not do with the record. */
export interface KeepingFailure {
  readonly step: 'anchor' | 'archive' | 'trim';
  readonly why: string;
  /** How often it failed in a row. */
  readonly times: number;
  /** When it last failed. */
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
  if (!isRecord(document) || !isRecord(document['record'])) return { told: {}, pair, at: undefined };
  const told = document['record'] as Told;
  // Earlier versions kept it only in the event.
  const [event] = Array.isArray(document['events']) ? (document['events'] as readonly unknown[]) : [];
  const at = told.at ?? (isRecord(event) ? event['at'] : undefined);
  return { told, pair, at: typeof at === 'number' ? at : undefined };
}

export async function warningsOf(runtime: Runtime): Promise<WitnessWarnings> {
  const { told, at } = await readTold(runtime);
  const damaged = Array.isArray(told.damaged) ? told.damaged.filter((one) => typeof one === 'string') : [];
  return { isFilling: told.filling === true, damaged, ...(at !== undefined && { at }) };
}
