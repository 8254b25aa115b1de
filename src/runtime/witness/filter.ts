/** Selects entries of the witness. */
import type { WitnessedCommand, WitnessEntry } from '../../core/witness/index.ts';
import { type Accepted, millisecondsFromZero, shortText } from '../options.ts';

/** An entry matches if every given field does. */
export interface WitnessFilter {
  /** The actor: the holder, the member, the user. */
  readonly actor?: string;
  /** A resource such as `lock/main`, or all of a kind, such as `lock/*`. */
  readonly resource?: string;
  /** An event such as `lock:released`, or all of a kind, such as `task:*`. */
  readonly event?: string;
  /** The trace id. */
  readonly trace?: string;
  /** The component that asked: `lock`, `cli`, … */
  readonly component?: string;
  /** The earliest time, in milliseconds since 1970. */
  readonly since?: number;
  /** The latest time. */
  readonly until?: number;
}

export const FILTER: Readonly<Record<keyof WitnessFilter, Accepted>> = {
  actor: shortText,
  resource: shortText,
  event: shortText,
  trace: shortText,
  component: shortText,
  since: millisecondsFromZero,
  until: millisecondsFromZero,
};

/** The one chain that the filter asks for, if it names one. */
export function chainOf({ resource }: WitnessFilter): string | undefined {
  return resource === undefined || resource.endsWith('*') || !resource.includes('/') ? undefined : resource;
}

export function fits(entry: WitnessEntry, filter: WitnessFilter): boolean {
  const { resource, since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = filter;
  if (resource !== undefined && !matches(entry.resource, resource)) return false;
  if (entry.time < since || entry.time > until) return false;
  return entry.commands.some((command) => commandFits(command, filter));
}

/** Whether the filter asks for this command of an entry that fits. */
export function commandFits(command: WitnessedCommand, { actor, event, trace, component }: WitnessFilter): boolean {
  if (actor !== undefined && command.actor !== actor) return false;
  if (trace !== undefined && command.trace !== trace) return false;
  if (component !== undefined && command.component !== component) return false;
  return event === undefined || command.events.some((name) => matches(name, event));
}

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
