/** Opens a signalbox on a URL or a store. */
import { hostname } from 'node:os';
import type { Adapters } from '../adapters/adapters.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Json } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { ownUser, thisProcess, randomHex } from '../host/index.ts';
import {
  isEtcdUrl,
  openEmbedded,
  openEtcdUrl,
  openMemory,
  openSharedMemory,
  type Store,
  withoutPassword,
} from '../store/index.ts';
import type { MembershipView } from './members/membership-view.ts';
import { refuseCheckedOut } from './location/checked-out.ts';
import { withDeadlines } from '../store/bounded-store.ts';
import { ACCEPTED_URLS, parseFileUrl, storeUrl, trustedOwnerOf, witnessIn } from './location/location.ts';
import {
  aFunction,
  anObject,
  anything,
  flag,
  milliseconds,
  refuseWrongValues,
  sessionTime,
  shortText,
} from './options.ts';
import { Runtime } from './runtime.ts';
import { Signalbox } from './signalbox.ts';
import { lineLog, type Log, logLevelIn, logTracer } from './log.ts';
import type { RecordKeeping } from './witness/retention.ts';

/** How to open a store. */
export interface OpenOptions {
  /** How long the store keeps the holds of this process after its last renewal; renewed after a third of this time. */
  readonly sessionTtlMs?: number;
  /** After this time, a store that cannot be reached fails with `unavailable`. */
  readonly requestTimeoutMs?: number;
  /** The time between two rounds of maintenance; 30 s if not given. */
  readonly maintenanceMs?: number;
  /** Whether maintenance frees stale holds, or only warns about them. */
  readonly reclaim?: boolean;
  /** Whether this process takes part in the maintenance of the store. */
  readonly maintains?: boolean;
  /** Describes this process to people. */
  readonly about?: Json;
  /** What guards look at besides the store; this machine, from the current directory, if not given. */
  readonly adapters?: Adapters;
  /** A view of your own, from which coordinator, registry, placement and topology are made. */
  readonly membership?: MembershipView;
  /**
   * Whether every change is entered in a record that shows tampering. If not given: as `?witness=on` or `off` in the URL says;
   * otherwise on where the store is kept, and off in memory. The first process that writes decides for the store.
   */
  readonly witness?: boolean;
  /**
   * Seals, signs, anchors and archives the record of the witness in this process, at the intervals that
   * `box.witness.configure` sets. Without it the maintainer of the store seals and trims the record, unsigned.
   */
  readonly keepsRecord?: RecordKeeping;
  /** What the witness names as acting; the primitive, such as `lock` or `task`, if not given. */
  readonly component?: string;
  /** The trace that all of this belongs to, or a `traceparent`; `SIGNALBOX_TRACE_ID` or `TRACEPARENT`, if not given. */
  readonly traceId?: string;
  /** Where this process logs, such as a logger of pino; on stderr as `SIGNALBOX_LOG` says, if not given: nothing by default. */
  readonly log?: Log;
  /** Gives up opening when it aborts; `open` then throws its reason. */
  readonly signal?: AbortSignal;
  /** Where time comes from; the system, if not given. */
  readonly clock?: Clock;
  /** Makes ids that are unique for all time; tests make them repeatable. */
  readonly newId?: () => string;
}

const OPTIONS = {
  sessionTtlMs: sessionTime,
  requestTimeoutMs: milliseconds,
  maintenanceMs: milliseconds,
  reclaim: flag,
  maintains: flag,
  about: anything,
  adapters: anObject,
  membership: anObject,
  witness: flag,
  keepsRecord: anObject,
  component: shortText,
  traceId: shortText,
  log: anObject,
  signal: anObject,
  clock: anObject,
  newId: aFunction,
};

/**
 * `file:DIRECTORY` is shared by all processes of this machine, `etcd://HOST:PORT` by all that reach that etcd; `memory:`
 * is a store of its own; `memory:NAME` is shared by all in this process that open the same name. Without a URL:
 * `SIGNALBOX_URL`, or the store of this repository or user.
 */
export async function open(urlOrStore?: string | Store, options: OpenOptions = {}): Promise<Signalbox> {
  refuseWrongValues(options, OPTIONS);
  const {
    sessionTtlMs = 15_000,
    requestTimeoutMs = 5_000,
    maintenanceMs = 30_000,
    reclaim = true,
    maintains = true,
    clock = systemClock,
    newId = () => randomHex(8),
    // Identifies the process, so that a reader on the same machine can see whether it still runs.
    about = aboutThisProcess(),
  } = options;
  const log = options.log ?? lineLog(logLevelIn(process.env), clock);
  const store = isStore(urlOrStore) ? urlOrStore : await storeAt(urlOrStore, clock, requestTimeoutMs);
  const bounded = withDeadlines(store, clock, requestTimeoutMs);
  const demanded = options.witness ?? (isStore(urlOrStore) ? undefined : witnessIn(urlOrStore));
  const witness = {
    isOn: demanded ?? false,
    isDemanded: demanded !== undefined,
    component: options.component,
    trace: traceFrom(options.traceId, process.env),
  };
  const runtime = new Runtime(bounded, {
    clock,
    newId,
    sessionTtlMs,
    requestTimeoutMs,
    about,
    process: thisProcess(),
    witness,
  });
  if (log !== undefined) runtime.measures.listen(logTracer(log, clock));
  // Fails here if the store cannot be reached, instead of at the first request.
  await bounded.health(options.signal).catch(async (error: unknown) => {
    await bounded.close().catch(() => undefined);
    throw error;
  });
  // Fails here if the caller demands one setting of the witness and the store has the other.
  if (demanded !== undefined) {
    await runtime.witness.known().catch(async (error: unknown) => {
      await bounded.close().catch(() => undefined);
      throw error;
    });
  }
  const place = isStore(urlOrStore) ? undefined : storeUrl(urlOrStore);
  runtime.measures.tracer?.happened?.('opened', { store: place === undefined ? 'given' : withoutPassword(place) });
  const url = place === undefined ? undefined : sharedUrl(place);
  return new Signalbox(runtime, {
    maintenanceMs,
    reclaim,
    maintains,
    adapters: adaptersFrom(options.adapters),
    given: options.adapters,
    url,
    membership: options.membership,
    keepsRecord: options.keepsRecord,
  });
}

/** Loaded when a guard first needs them. */
function adaptersFrom(given: Adapters | undefined): () => Promise<Adapters> {
  let loaded = given === undefined ? undefined : Promise.resolve(given);
  return () =>
    (loaded ??= import('../adapters/index.ts').then(({ localAdapters }) => localAdapters({ root: process.cwd() })));
}

/** Undefined if no other process could open it. */
function sharedUrl(url: string): string | undefined {
  return url.startsWith('memory:') ? undefined : url;
}

export function isStore(given: unknown): given is Store {
  return typeof given === 'object' && given !== null && 'transaction' in given;
}

export async function storeAt(given: unknown, clock: Clock, requestTimeoutMs: number): Promise<Store> {
  if (given !== undefined && typeof given !== 'string') {
    throw new Failure('invalid', `the store is ${shown(given)}; ${ACCEPTED_URLS}`);
  }
  const url = storeUrl(given);
  if (url === 'memory:') return openMemory({ clock });
  if (url.startsWith('memory:')) return openSharedMemory(url.slice('memory:'.length), { clock });
  // The store has to give up before the runtime does: only the store can say whether anything was applied.
  const givesUpMs = 0.8 * requestTimeoutMs;
  if (isEtcdUrl(url)) return openEtcdUrl(url, { clock, requestTimeoutMs: givesUpMs });
  if (/^https?:/i.test(url)) {
    throw new Failure(
      'invalid',
      `the store is ${shown(url)}, a server: this needs the store itself; connect of signalbox/client reaches a server`,
    );
  }
  if (!url.startsWith('file:'))
    throw new Failure('invalid', `the store is ${shown(withoutPassword(url))}; ${ACCEPTED_URLS}`);
  const { directory, durability, share } = parseFileUrl(url);
  refuseCheckedOut(directory);
  try {
    return await openEmbedded(directory, {
      clock,
      durability,
      share,
      trustedOwner: () => trustedOwnerOf(directory),
      busyMs: givesUpMs,
    });
  } catch (error) {
    if (!Failure.is(error, 'forbidden') || given !== undefined || (process.env['SIGNALBOX_URL'] ?? '') !== '')
      throw error;
    const wayOut =
      'name a place that you may write with SIGNALBOX_URL=file:DIRECTORY (all who are to meet must name the same), or ' +
      'have signalbox serve run outside and name it with SIGNALBOX_URL=http://127.0.0.1:7300, or give your agent ' +
      'signalbox mcp, which its client runs outside';
    if (error.message.includes('SIGNALBOX_URL')) throw error;
    throw new Failure(
      'forbidden',
      `${error.message}. This is the store that everybody here shares. Inside a sandbox: ${wayOut}`,
      { cause: error },
    );
  }
}

/** Shown to people who ask what holds a lock: where it runs, as which user, in which directory. */
function aboutThisProcess(): Json {
  const user = ownUser();
  const directory = workingDirectory();
  return {
    host: hostname(),
    pid: process.pid,
    ...(user !== undefined && { user }),
    ...(directory !== undefined && { directory }),
    ...thisProcess(),
  };
}

/** Undefined if it was deleted. */
function workingDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;
const LONGEST = 200;

/** `given` may be a trace id, or a whole `traceparent`. A variable without a usable value is ignored. */
export function traceFrom(
  given: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (given !== undefined) return traceIn(given);
  const { SIGNALBOX_TRACE_ID: own = '', TRACEPARENT: standard = '' } = environment;
  if (own !== '') return traceIn(own).slice(0, LONGEST);
  return TRACEPARENT.exec(standard)?.[1];
}

/** The trace of a `traceparent`; anything else is a trace id itself. */
function traceIn(text: string): string {
  return TRACEPARENT.exec(text)?.[1] ?? text;
}
