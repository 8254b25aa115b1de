/**
 * Opens a server as if it were a store: `signalbox/client` carries out the methods that commands use. A method without a request
 * refuses with its name.
 */
import { connect, type Judged, type RemoteSignalbox } from '../../client/connect.ts';
import { systemClock } from '../../clock.ts';
import { type Condition, type Explanation, requiredInputs, Verifier } from '../../core/index.ts';
import { sha256 } from '../../host/index.ts';
import type { HoldTold } from '../../runtime/holds/held-records.ts';
import type { Entered, Ground } from '../../runtime/processes/children.ts';
import { addressesOf } from '../../runtime/location/loopback.ts';
import { serverToken } from '../../runtime/location/server-token.ts';
import type { EventHandler, EventPattern, ResyncEvent } from '../../runtime/observe/event-types.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { VerifyOptions } from '../../runtime/witness/log.ts';
import type { CheckOptions } from '../../runtime/guards/executor.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { holdsOf } from '../holding.ts';
import { tell } from '../output.ts';
import { tellAway } from './away.ts';
import { remoteGuards, type Waits } from './guards.ts';
import { eventsSince } from './past-events.ts';
import { remotePipelines } from './pipelines.ts';
import { notThroughServer } from './url.ts';

/** A person waits: after this time the server counts as unreachable. */
const RETRY_MS = 3_000;
/** `verify` prints its progress each time it has read this many entries. */
const PROGRESS_ENTRIES = 4096;

export function openRemote(url: string, options: { readonly ttlMs?: number | undefined } = {}): Promise<Signalbox> {
  const urls = addressesOf(url, process.env);
  const token = serverToken(urls, process.env);
  const client = connect(urls, { token, retryMs: RETRY_MS, onAway: tellAway, ...given(options) });
  const parts = {
    ...asIs(client, 'lock', 'semaphore', 'ensureLock', 'ensureSemaphore', 'acquireAll', 'survey', 'events', 'close'),
    ...asIs(client, 'tasks', 'members', 'tokens', 'bus'),
    on: <Pattern extends EventPattern>(pattern: Pattern, handler: EventHandler<Pattern>) =>
      // A command that looks again gets the refusal itself, and ends with it.
      client.subscribe(pattern, handler, () => void handler(resync())),
    // The server watches over its store, and answers with what is wrong.
    over: undefined,
    witness: remoteWitness(client),
    pipelines: { ...asIs(client.pipelines, 'list', 'show', 'logs', 'forget'), ...remotePipelines(client) },
    guards: remoteGuards(client, judged),
    children: remoteChildren(client),
    explain: async (condition: Condition, _known: object, options: CheckOptions): Promise<Explanation> =>
      (await judged(client, condition, options)).explanation,
    eventsSince: (...[pattern, at, listener, signal]: Parameters<Signalbox['eventsSince']>) =>
      eventsSince(client, pattern, at, listener, signal),
  };
  return Promise.resolve(known('signalbox', parts, url) as unknown as Signalbox);
}

/** What the client has under the same names. */
function asIs<T extends object>(client: T, ...names: readonly (keyof T & string)[]): object {
  const bound = (value: unknown): unknown => (typeof value === 'function' ? (value.bind(client) as unknown) : value);
  return Object.fromEntries(names.map((name) => [name, bound(client[name])]));
}

/** What a handler gets if there are no events for it any more: look at the state. */
function resync(): ResyncEvent {
  return { type: 'resync', resource: '*', holder: '', at: systemClock.now() };
}

/** Refuses a method that a server has no request for, when a command calls it. */
function known<T extends object>(name: string, parts: T, url: string): T {
  return new Proxy(parts, {
    get(target, member, receiver) {
      if (member in target || typeof member === 'symbol' || member === 'then') {
        const value: unknown = Reflect.get(target, member, receiver);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      }
      throw notThroughServer(`${name}.${member}`, url);
    },
  });
}

/** Conditions about files, branches and sessions concern the machine that checks them: here, the server. */
function judged(
  client: RemoteSignalbox,
  condition: Condition,
  { own, signal, waits }: CheckOptions & { readonly waits?: Waits },
): Promise<Judged> {
  const kinds = new Set(requiredInputs(condition).map(({ kind }) => kind));
  const looked = [...kinds].filter((kind) => !['lock', 'semaphore', 'pipeline', 'task', 'member'].includes(kind));
  if (looked.length > 0 && waits === undefined)
    tell(`signalbox: the server looks at its own machine (${looked.join(', ')})`);
  return client.judged(condition, { ...waits, ...given({ own: typeof own === 'string' ? [own] : own, signal }) });
}

/** Holds through a server depend only on their time: nothing notes the command, and no process stops it if this one is killed. */
function remoteChildren(client: RemoteSignalbox): object {
  return {
    areOfOneMachine: false,
    areOfSeveralUsers: true,
    async stillHeld(told: readonly HoldTold[]) {
      const found = await Promise.all(
        told.map(async ({ resource, hold: id }) => {
          const [kind, ...name] = resource.split('/');
          if (kind !== 'lock' && kind !== 'semaphore') return [];
          const holds = await holdsOf(client, { kind, name: name.join('/') }, true);
          return holds.filter((hold) => hold.id === id).map((grant) => ({ resource, grant }));
        }),
      );
      return found.flat();
    },
    enter(holds: readonly Ground[]): Promise<Entered> {
      const lost = holds.find((hold) => !hold.isValid);
      if (lost !== undefined) return Promise.resolve({ kind: 'lost', resource: lost.resource });
      return Promise.resolve({ kind: 'entered', keys: [], leftovers: [], unreadable: [] });
    },
    forget: () => Promise.resolve(),
  };
}

/** Reads the whole record and checks it here, so that nobody has to trust the server. */
async function verified(
  lines: AsyncIterable<string>,
  { onProgress, ...trust }: VerifyOptions,
): Promise<ReturnType<Verifier['finish']>> {
  const verifier = new Verifier({ digest: sha256, ...trust });
  for await (const line of lines) {
    verifier.line(line);
    if (verifier.isDecided) break;
    if (verifier.entries % PROGRESS_ENTRIES === 0) onProgress?.(verifier.entries);
  }
  return verifier.finish();
}

/** A server does not sign: with a key, it could sign for every user. */
function remoteWitness({ witness }: RemoteSignalbox): object {
  return {
    ...asIs(witness, 'isOn', 'entries', 'watch', 'record', 'warnings'),
    export: ({ only }: { readonly only?: readonly string[] } = {}) => witness.export(given({ only })),
    verify: (options: VerifyOptions) => verified(witness.export(), options),
    checkpoint({ sign }: { readonly sign?: unknown } = {}) {
      if (sign === undefined) return witness.checkpoint();
      const why = 'which makes the checkpoint: sign where the store is';
      throw new CliExit(EXIT.usage, `--sign does not work through a server, ${why}`);
    },
  };
}
