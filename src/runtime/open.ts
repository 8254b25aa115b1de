/** From a URL to a signalbox. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, systemClock } from '../clock.ts';
import type { Json } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { thisProcess } from '../host/index.ts';
import { openMemory, openSharedMemory, type Store } from '../store/index.ts';
import { withDeadlines } from './deadline.ts';
import { shapeProblem } from './options.ts';
import { Runtime } from './runtime.ts';
import { Signalbox } from './signalbox.ts';

export interface OpenOptions {
  /** How long the store keeps what this process holds after it was last heard of; renewed at a third of it. */
  readonly sessionTtlMs?: number;
  /** A store that cannot be reached is told as `unavailable` after this time. */
  readonly requestTimeoutMs?: number;
  readonly maintenanceMs?: number;
  /** Whether maintenance frees stale holds, or only warns of them. */
  readonly reclaim?: boolean;
  /** Whether this process takes its turn at the maintenance of the store, or leaves it to others. */
  readonly maintains?: boolean;
  /** About this process, for people. */
  readonly about?: Json;
  readonly clock?: Clock;
  /** Makes ids that are unique for all time; tests make them repeatable. */
  readonly newId?: () => string;
}

const OPTIONS = [
  'sessionTtlMs',
  'requestTimeoutMs',
  'maintenanceMs',
  'reclaim',
  'maintains',
  'about',
  'clock',
  'newId',
];

/** `memory:` is a store of its own; `memory:NAME` is shared by all in this process who open the same name. */
export async function open(urlOrStore?: string | Store, options: OpenOptions = {}): Promise<Signalbox> {
  const misshapen = shapeProblem(options, OPTIONS);
  if (misshapen !== undefined) throw new Failure('invalid', misshapen);
  const {
    sessionTtlMs = 15_000,
    requestTimeoutMs = 5_000,
    maintenanceMs = 30_000,
    reclaim = true,
    maintains = true,
    clock = systemClock,
    newId = () => randomBytes(8).toString('hex'),
    // With all that tells it from others, so that whoever looks from the same machine can see whether it still runs.
    about = { host: hostname(), pid: process.pid, ...thisProcess() },
  } = options;
  for (const [name, value] of Object.entries({ sessionTtlMs, requestTimeoutMs, maintenanceMs })) {
    if (!Number.isFinite(value) || value <= 0) {
      throw new Failure('invalid', `${name} is ${shown(value)}; accepted is a number of milliseconds above zero`);
    }
  }
  const store = isStore(urlOrStore)
    ? urlOrStore
    : storeAt(urlOrStore === undefined ? process.env['SIGNALBOX_URL'] : urlOrStore, clock);
  const bounded = withDeadlines(store, clock, requestTimeoutMs);
  const runtime = new Runtime(bounded, { clock, newId, sessionTtlMs, requestTimeoutMs, about, process: thisProcess() });
  // So that a store that cannot be reached is told here, and not by the first one who wants something.
  await bounded.health();
  return new Signalbox(runtime, { maintenanceMs, reclaim, maintains });
}

function isStore(given: unknown): given is Store {
  return typeof given === 'object' && given !== null && 'transaction' in given;
}

function storeAt(url: unknown, clock: Clock): Store {
  const accepted = 'accepted is memory: or memory:NAME';
  if (url === undefined) throw new Failure('invalid', `no store was named, here or in SIGNALBOX_URL; ${accepted}`);
  if (url === 'memory:') return openMemory({ clock });
  if (typeof url === 'string' && url.startsWith('memory:'))
    return openSharedMemory(url.slice('memory:'.length), { clock });
  throw new Failure('invalid', `the store is ${shown(url)}; ${accepted}`);
}
