/**
 * The environment variables of a command, and what a run inside the command takes over from them.
 *
 *     SIGNALBOX_URL               the store, so that runs inside use the same one from any directory
 *     SIGNALBOX_HOLDER            the holder of what this run acquired
 *     SIGNALBOX_TOKEN             the token of the first lock or semaphore that was named
 *     SIGNALBOX_TOKEN_NAME        the token of each of them
 *     SIGNALBOX_SLOT_NAME         the lowest slot of a semaphore; SIGNALBOX_SLOTS_NAME has all, with spaces between
 *     SIGNALBOX_HOLDS             JSON of all that is held here and further out:
 *                                 {"lock/main":{"holder":…,"token":…,"hold":…}}
 *     SIGNALBOX_RUN               marks the processes of this run, and of the runs around it
 */
import { type Slots, slotsOf } from '../../core/index.ts';
import { MARK } from '../../host/index.ts';
import type { Hold } from '../holds/hold.ts';
import type { HoldTold } from '../holds/held-records.ts';

export interface HeldResource {
  readonly resource: string;
  readonly holder: string;
  readonly token: number;
  /** The id of the hold. */
  readonly hold: string;
  /** The slots of a semaphore. */
  readonly slots?: readonly number[];
}

/** A hold of a run around this one. */
export interface OuterHold {
  readonly holder: string;
  /** The token when the environment was made; it changes when a reader becomes the writer. */
  readonly token: number;
  /** The id of the hold. It never changes and is never used again, so it cannot name a later hold of the same holder. */
  readonly hold: string;
}

export type OuterHolds = Readonly<Record<string, OuterHold>>;

/** Takes nothing over from a run on another store, or if there is no run around this one. */
export function outerHolds(env: NodeJS.ProcessEnv, url: string): OuterHolds {
  if (env['SIGNALBOX_URL'] !== url) return {};
  let told: unknown;
  try {
    told = JSON.parse(env['SIGNALBOX_HOLDS'] ?? '{}');
  } catch {
    return {};
  }
  if (typeof told !== 'object' || told === null || Array.isArray(told)) return {};
  return Object.fromEntries(
    Object.entries(told).filter((entry): entry is [string, OuterHold] => isOuterHold(entry[1])),
  );
}

function isOuterHold(value: unknown): value is OuterHold {
  if (typeof value !== 'object' || value === null) return false;
  const { holder, token, hold } = value as Partial<OuterHold>;
  return typeof holder === 'string' && typeof token === 'number' && typeof hold === 'string';
}

export function asTold(outer: OuterHolds): readonly HoldTold[] {
  return Object.entries(outer).map(([resource, { holder, hold }]) => ({ resource, holder, hold }));
}

export function childEnvironment(
  env: NodeJS.ProcessEnv,
  run: {
    readonly url: string;
    readonly holder: string;
    readonly mark: string;
    /** In the order in which they were named. */
    readonly held: readonly HeldResource[];
    readonly outer: OuterHolds;
  },
): NodeJS.ProcessEnv {
  const own: Record<string, string> = {};
  // If two names make the same variable, the first one gets it; SIGNALBOX_HOLDS has both.
  for (const { resource, token, slots } of [...run.held].reverse()) {
    const name = variableName(resource);
    own[`SIGNALBOX_TOKEN_${name}`] = String(token);
    if (slots === undefined) continue;
    own[`SIGNALBOX_SLOT_${name}`] = String(slots.reduce((lowest, slot) => Math.min(lowest, slot)));
    own[`SIGNALBOX_SLOTS_${name}`] = slotsOf(slots).map(runOf).join(' ');
  }
  const holds = { ...run.outer };
  for (const { resource, holder, token, hold } of run.held) holds[resource] = { holder, token, hold };
  const around = env[MARK];
  return {
    ...env,
    ...own,
    SIGNALBOX_URL: run.url,
    SIGNALBOX_HOLDER: run.holder,
    SIGNALBOX_TOKEN: String(run.held[0]?.token ?? ''),
    SIGNALBOX_HOLDS: JSON.stringify(holds),
    [MARK]: around === undefined || around === '' ? run.mark : `${around}.${run.mark}`,
  };
}

/** A child's environment has no room for a million numbers. */
function runOf(run: Slots[number]): string {
  return typeof run === 'number' ? String(run) : `${run[0]}-${run[1]}`;
}

/** `MAIN_BRANCH` of `lock/main-branch`. */
function variableName(resource: string): string {
  return resource
    .slice(resource.indexOf('/') + 1)
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '_');
}

export function told(hold: Hold & { readonly slots?: readonly number[] }): HeldResource {
  const { resource, holder, token, id, slots } = hold;
  return { resource, holder, token, hold: id, ...(slots !== undefined && { slots }) };
}
