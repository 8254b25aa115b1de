/** The commands of the manager, and their checks. The manager fills in what is left out. */
import type { Claim } from '../hold.ts';
import type { LockCommand, LockMode } from '../lock.ts';
import type { Json } from '../machine.ts';
import { nameProblem } from '../name.ts';
import { type Asked, requestProblem } from '../request.ts';
import type { SemaphoreCommand } from '../semaphore.ts';
import { settingsProblem } from '../settings.ts';
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import type { ManagerClock, ResourceName } from './manager.ts';

export type ManagerCommand = ResourceCommand | AcquireTogether | Renew;

export type ResourceCommand =
  | ({ readonly resource: `lock/${string}` } & LockAsk)
  | ({ readonly resource: `semaphore/${string}` } & SemaphoreAsk);

/** `refuse` is not among them: the manager looks for deadlocks by itself. */
export type LockAsk =
  | (Asking & { readonly kind: 'acquire'; readonly mode?: LockMode; readonly wait?: boolean })
  | Extend
  | (Claim & { readonly kind: 'upgrade'; readonly request?: string; readonly steal?: true; readonly wait?: boolean })
  | Exclude<LockCommand, { kind: 'acquire' | 'extend' | 'upgrade' | 'refuse' }>;

export type SemaphoreAsk =
  /** The first to name a capacity makes the semaphore. */
  | (Asking & {
      readonly kind: 'acquire';
      readonly weight?: number;
      readonly capacity?: number;
      readonly wait?: boolean;
    })
  | Extend
  | Exclude<SemaphoreCommand, { kind: 'acquire' | 'extend' | 'refuse' }>;

export interface Asking {
  readonly holder: string;
  readonly id?: string;
  /** A lease that several holds and requests share; without one, each has its own. */
  readonly lease?: string;
  readonly ttlMs?: number;
  readonly priority?: number;
  readonly maxHoldMs?: number;
  readonly reason?: string;
  readonly metadata?: Json;
  readonly steal?: true;
  readonly force?: true;
}

/** From now on, this long without a heartbeat, and at most this long in all. */
export type Extend = Claim & { readonly kind: 'extend'; readonly ttlMs?: number; readonly maxHoldMs?: number };

/** All or nothing; they share one lease. */
export interface AcquireTogether extends Asking {
  readonly kind: 'acquire-together';
  readonly parts: readonly TogetherPart[];
}

export type TogetherPart =
  | { readonly resource: `lock/${string}`; readonly mode?: LockMode }
  | { readonly resource: `semaphore/${string}`; readonly weight?: number; readonly capacity?: number };

/** A sign of life: keeps everything alive that a holder holds and waits for, or that depends on a lease. */
export type Renew =
  | { readonly kind: 'renew'; readonly holder: string }
  | { readonly kind: 'renew'; readonly lease: string };

/** Says what is wrong with a command; undefined if nothing is. */
export function commandProblem(command: ManagerCommand): string | undefined {
  if (!isRecord(command as unknown)) return `command is ${shown(command)}; expected an object`;
  if (command.kind === 'renew') return requestProblem(command, 'lease' in command ? ['lease'] : ['holder']);
  if (command.kind === 'acquire-together') return togetherProblem(command);
  return resourceProblem(command.resource) ?? askProblem(command);
}

export function clockProblem(clock: ManagerClock): string | undefined {
  return isRecord(clock) && Number.isFinite(clock.now)
    ? undefined
    : `clock is ${shown(clock)}; expected { now: MILLISECONDS }`;
}

export function kindOf(resource: ResourceName): 'lock' | 'semaphore' {
  return resource.startsWith('lock/') ? 'lock' : 'semaphore';
}

/** `main` of `lock/main`. */
export function nameOf(resource: ResourceName): string {
  return resource.slice(resource.indexOf('/') + 1);
}

type Needs<Ask extends { kind: string }> = { readonly [Kind in Ask['kind']]: readonly (keyof Asked)[] };

const everyKind = {
  acquire: ['holder'],
  release: ['holder'],
  break: ['holder', 'reason'],
  heartbeat: ['holder'],
  extend: ['holder'],
  cancel: ['id'],
  settle: [],
  tick: [],
  maintain: [],
} as const;

const needs: { readonly lock: Needs<LockAsk>; readonly semaphore: Needs<SemaphoreAsk> } = {
  lock: { ...everyKind, upgrade: ['holder'], downgrade: ['holder'], configure: [] },
  semaphore: {
    ...everyKind,
    ...{ resize: ['capacity'], configure: [], drain: ['holder', 'reason'], undrain: ['holder'] },
  },
};

function resourceProblem(resource: unknown): string | undefined {
  const [, name] = /^(?:lock|semaphore)\/(.*)$/su.exec(String(resource)) ?? [];
  if (typeof resource === 'string' && name !== undefined) return nameProblem(name, 'the name of the resource');
  return `resource is ${shown(resource)}; expected lock/NAME or semaphore/NAME`;
}

function askProblem(command: ResourceCommand): string | undefined {
  const accepted: Readonly<Record<string, readonly (keyof Asked)[]>> = needs[kindOf(command.resource)];
  const required = Object.hasOwn(accepted, command.kind) ? accepted[command.kind] : undefined;
  if (required === undefined) return `kind is ${shown(command.kind)}; expected ${Object.keys(accepted).join(', ')}`;
  if (command.kind === 'extend' && command.ttlMs === undefined && command.maxHoldMs === undefined) {
    return 'extend has neither ttlMs nor maxHoldMs; expected either of them, or both';
  }
  if (command.kind === 'configure') {
    const { resource: _resource, kind: _kind, ...settings } = command;
    return settingsProblem(settings);
  }
  return requestProblem(withoutWeight(command as Asked), required);
}

function togetherProblem(command: AcquireTogether): string | undefined {
  if (!Array.isArray(command.parts)) return `parts is ${shown(command.parts)}; expected a list`;
  for (const part of command.parts) {
    if (!isRecord(part)) return `a part is ${shown(part)}; expected an object with a resource`;
    const problem = resourceProblem(part.resource) ?? requestProblem(withoutWeight(part));
    if (problem !== undefined) return problem;
  }
  return requestProblem(command, ['holder']);
}

/** Leaves a number that cannot be a weight to the semaphore, which refuses it as `impossible`. */
function withoutWeight(asked: Asked): Asked {
  return typeof asked.weight === 'number' ? { ...asked, weight: undefined } : asked;
}
